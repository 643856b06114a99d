"""The access control service as a real process: `maia serve acs`, from invitation to withdrawal, killed, taken over."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import service_process
from domain_world import ASSIGNED, ORDER, PLATE, TRACKING, numberplate
from maia.authority import Action, CertificatePool, StatementBook, Verifier, parse_statement, verify_statement
from maia.clients import AccessControlClient, RemoteHanded
from maia.errors import DeniedError, MalformedError, UnavailableError, UsageError
from maia.events import sign_event_type
from maia.home import Home, HomeConfig
from maia.principals import KeySigner, parse_certificate
from maia.testing import NumberplateNetwork, numberplate_network
from service_process import LOOPBACK, Process, restless

pytestmark = pytest.mark.slow


class Force:
    """The Metropolitan Police's home, and the keys of those who deal with it."""

    def __init__(self, root: Path) -> None:
        now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
        self.network: NumberplateNetwork = numberplate_network(now=now)
        self.home = Home.create(root / "met", HomeConfig(name="met", domain="Met"))
        self.home.add_key("Met", self.network.people["Met"])
        self.home.add_public_key("PITO", self.network.key("PITO"))
        self.home.types.put(sign_event_type(numberplate(self.network), self.network.people["PITO"]).raw, at=now)
        for certificate in self.network.some("Cap1", "Cap12"):
            self.home.certificates.add(certificate)

    @contextmanager
    def serving(self, database: str, *, ready: bool = True) -> Iterator[Process]:
        """Run the service."""
        with service_process.serving("acs", self.home.path, database, ready=ready) as process:
            yield process

    def client(self, process: Process, who: str | KeySigner) -> AccessControlClient:
        """Give somebody's client."""
        signer = self.network.people[who] if isinstance(who, str) else who
        return AccessControlClient(
            process.url, signer=signer, server_key=self.network.key("Met"), policy=LOOPBACK, rest=restless()
        )

    def may_subscribe(self, handed: RemoteHanded) -> bool:
        """Ask a verifier that knows nothing but what was handed out."""
        book = StatementBook()
        for raw in handed.statements:
            book.accept(verify_statement(parse_statement(raw)))
        return bool(
            Verifier(statements=book).decide(
                self.network.on_type(Action.SUBSCRIBE),
                principal=self.network.key("Smith"),
                evidence=CertificatePool((*handed.certificates, *handed.chain)),
                at=datetime.now(UTC),
            )
        )


@pytest.fixture
def force(tmp_path: Path) -> Force:
    """Give the force."""
    return Force(tmp_path)


def bring_smith(force: Force, process: Process) -> RemoteHanded:
    """Bring Smith to the point where he tracks the plate; give his capabilities."""
    with force.client(process, "Met") as chief, force.client(process, "Smith") as smith:
        assert chief.apply_policy(TRACKING) == 1
        code = chief.invite("smith", appointments=["detective(smith)"])
        member, _ = smith.enrol(invitation=code)
        assert (member.name, member.key) == ("smith", force.network.key("Smith"))
        assert chief.appoint(ORDER)
        assert chief.observe(ASSIGNED)
        assert "npTracker" in smith.activate(PLATE)[0]
        return smith.capabilities()


def test_a_detective_from_invitation_to_withdrawal_over_a_kill(force: Force, database_url: str) -> None:
    """What was handed out and recorded survives kill -9; the withdrawal ends it, and a statement says so."""
    with force.serving(database_url) as process:
        handed = bring_smith(force, process)
        assert force.may_subscribe(handed)
        process.end(signal.SIGKILL)
    with force.serving(database_url) as process:
        with force.client(process, "Smith") as smith, force.client(process, "Met") as chief:
            assert smith.capabilities().certificates == handed.certificates
            (renewed,) = smith.renew(handed.certificates[0]).certificates
            assert parse_certificate(renewed).body.subject == force.network.key("Smith")
            assert [member.name for member in chief.members()] == ["smith"]
            assert chief.policy() == TRACKING
            assert set(handed.certificates) <= set(chief.register())
            assert len(chief.preview_policy("")["differences"]) == 1  # type: ignore[arg-type]
            would = chief.revoke(principal="smith", preview=True)
            assert would.members == ("smith",)
            ended = chief.retract(ASSIGNED)
            assert {holder for _, holder in ended.certificates} == {"smith"}
            assert chief.roles() == ()
            after = RemoteHanded(
                certificates=handed.certificates, chain=handed.chain, statements=smith.statements(), refused=()
            )
            assert not force.may_subscribe(after)
            assert set(smith.capabilities().certificates) < set(handed.certificates)  # his name is left
            assert [line["action"] for line in chief.journal()][-2:] == ["retract", "fall"]
            with pytest.raises(UsageError) as refusal:
                smith.enrol(invitation=chief.invite("smith2"))
            assert refusal.value.code == "MEMBER_KEY"
        assert process.end(signal.SIGTERM) == 0


@pytest.mark.threat("T57")
@pytest.mark.threat("T3")
def test_strangers_and_members_learn_nothing_that_is_not_theirs(force: Force, tmp_path: Path) -> None:
    """Whatever they ask of the domain, they are denied in the same words; somebody else's certificate is no good."""
    eve = KeySigner.generate()
    with force.serving(str(tmp_path / "store.db")) as process:
        handed = bring_smith(force, process)
        for who in (eve, "Smith"):
            with force.client(process, who) as asked:
                for ask in (
                    asked.members, asked.policy, asked.register, asked.journal, asked.roles,
                    lambda: asked.invite("eve"), lambda: asked.appoint("detective(eve)"),
                    lambda: asked.apply_policy(TRACKING), lambda: asked.revoke(principal="smith"),
                    lambda: asked.revoke(principal="nobody"), lambda: asked.retract(ORDER),
                ):  # fmt: skip
                    with pytest.raises(DeniedError) as refusal:
                        ask()
                    assert refusal.value.code == "DENIED"
        with force.client(process, eve) as stranger:
            for ask in (
                lambda: stranger.renew(handed.certificates[0]),
                lambda: stranger.enrol(invitation="wrong"),
                lambda: stranger.activate(PLATE),
                stranger.capabilities,
            ):
                with pytest.raises(DeniedError):
                    ask()
            with pytest.raises(MalformedError):
                stranger.activate("npTracker(((")


@pytest.mark.postgres
def test_a_standby_of_the_domain_takes_over(force: Force, postgres: str) -> None:
    """The second process stands by, and after the first was killed Smith goes on with it."""
    with force.serving(postgres) as leader:
        handed = bring_smith(force, leader)
        with force.serving(postgres, ready=False) as second:
            assert second.state("/readyz") == 503
            with force.client(second, "Smith") as smith, pytest.raises(UnavailableError) as refusal:
                smith.activate(PLATE)
            assert refusal.value.code == "NOT_LEADER"
            leader.end(signal.SIGKILL)
            second.wait_for("/readyz", 200)
            with force.client(second, "Smith") as smith:
                assert smith.capabilities().certificates == handed.certificates
