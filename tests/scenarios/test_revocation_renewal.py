"""Short-lived rights of a domain: renewed where the certificate says, refused after the policy changed."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.access_control import Settings
from maia.authority import Action, Decision, ask_type
from maia.domain import open_access_control, prove_key
from maia.errors import DeniedError
from maia.principals import Authenticated, Authorisation, Certificate, parse_certificate, verify_certificate
from maia.testing import DETECTIVE_POLICY, TYPE_NAME, TYPE_VERSION, DetectiveWorld, Loss, detective_world

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ADDRESS = "https://acs.met.example"


class Desk:
    """The police with rights that live for a minute, reached at one address; and Smith, who holds certificates."""

    def __init__(self, root: Path) -> None:
        """Open the service anew with short lives."""
        self.world: DetectiveWorld = detective_world(root, now=NOW)
        settings = Settings(life=timedelta(seconds=59), tests=(), renew=ADDRESS)
        self.service = open_access_control(self.world.met, settings=settings)
        self.service.apply(DETECTIVE_POLICY, at=NOW)
        for fact in Loss:
            (self.service.observe if fact is Loss.CASE else self.service.appoint)(fact.value, at=NOW)
        self.service.activate(self.world.smith, "npTracker('AE05 XYZ')", at=NOW)
        handed = self.service.capabilities(self.world.smith, at=NOW).certificates
        [self.right] = [item for item in handed if TYPE_NAME.encode() in item.raw]

    def decide(self, at: datetime) -> Decision:
        """Ask for Smith's right with what he holds now."""
        request = ask_type(Action.SUBSCRIBE, self.world.network.key("PITO"), TYPE_NAME, TYPE_VERSION)
        evidence = [*self.world.met.pool(), self.right]
        return self.world.met.verifier().decide(
            request, principal=self.world.network.key("Smith"), evidence=evidence, at=at
        )

    def fetch(self, address: str, certificate: Certificate, *, at: datetime) -> Certificate:
        """Ask for a fresh certificate where the old one says, as Smith, who proves his key."""
        assert address == ADDRESS
        nonce = secrets.token_bytes(32)
        who: Authenticated = prove_key(self.service, self.world.network.people["Smith"], nonce=nonce, at=at)
        [fresh] = self.service.renew(who, certificate.raw, at=at).certificates
        return verify_certificate(parse_certificate(fresh.raw))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give the desk at nine."""
    return Desk(tmp_path)


def test_an_expired_certificate_says_where_to_renew_it_and_the_retry_succeeds(desk: Desk) -> None:
    """C1 has expired; its address leads to C1', with which the same request is granted."""
    assert desk.decide(NOW)
    late = NOW + 90 * SECOND
    assert desk.decide(late).reason == "EXPIRED"
    old = desk.right
    assert isinstance(old.body, Authorisation)
    assert old.body.renew == ADDRESS
    desk.right = desk.fetch(old.body.renew, old, at=late)
    assert desk.right.certificate_id != old.certificate_id
    assert desk.decide(late)


def test_a_change_of_policy_is_effective_when_the_life_is_over_and_renewal_is_refused(desk: Desk) -> None:
    """Life 60 s, the assignment ends at 10: nobody needs a list; at 60 it is over, and renewal returns a refusal."""
    desk.service.retract(Loss.CASE.value, at=NOW + 10 * SECOND)
    assert desk.decide(NOW + 59 * SECOND)
    assert desk.decide(NOW + 60 * SECOND).reason == "EXPIRED"
    for second in (11, 60):
        with pytest.raises(DeniedError, match="RENEWAL_REFUSED"):
            desk.fetch(ADDRESS, desk.right, at=NOW + second * SECOND)
