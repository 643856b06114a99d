"""The detective's court order, from appointment to revocation: two domains over one log, and a role policy.

The congestion charge service publishes sightings; the police follow one car while a court order, the detective's status
and the assignment to the case all hold. Keys, certificates, lists and the policy engine are real; time is the caller's.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path

from maia.access_control import AccessControl, Revocation
from maia.authority import Exposure, Rhythm
from maia.domain import OwnKeyManager, ensure_keys, open_access_control, prove_key
from maia.encryption import Keyring
from maia.errors import NotFoundError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.principals import Authenticated, Authorisation, Certificate, KeySigner
from maia.testing.homes import write_settings
from maia.testing.numberplate import (
    ATTRIBUTES,
    NETWORK_NAME,
    TYPE_NAME,
    TYPE_VERSION,
    NumberplateNetwork,
    numberplate_network,
)
from maia.testing.publishing import publish_here

DETECTIVE_POLICY = """\
npTracker(plate)  <-  courtOrder(case, plate)* , detective(self)* , ?caseAssignment(self, case)*
npTracker(plate)  |-  subscribe Numberplate(location, timestamp, numberplate = plate)
"""
PLATE = "AE05 XYZ"
CASE = "c1"
ROLE = f"npTracker('{PLATE}')"
_KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}


class Loss(Enum):
    """The three ways to lose the role: the fact that is taken back, and what people call it."""

    ORDER = f"courtOrder({CASE}, '{PLATE}')"
    STATUS = "detective(smith)"
    CASE = f"caseAssignment(smith, {CASE})"

    @property
    def title(self) -> str:
        """Say it in words."""
        return {"ORDER": "court order revoked", "STATUS": "detective status lost", "CASE": "removed from the case"}[
            self.name
        ]


@dataclass(slots=True)
class DetectiveWorld:
    """Homes, services and people. Make one with `detective_world`.

    Attributes:
        network: Keys and certificates of the numberplate network.
        ccs: The home that publishes.
        met: The home of the police, whose access control service runs in process.
        service: That service.
        smith: The detective, who has proven his key.
        certificate: The capability that he has now, if any.
    """

    network: NumberplateNetwork
    ccs: Home
    met: Home
    service: AccessControl
    smith: Authenticated
    certificate: Certificate | None = None

    def appoint(self, facts: Iterable[Loss], *, at: datetime, order_until: datetime | None = None) -> None:
        """Let facts hold: the order up to its end, the others until they are taken back."""
        for fact in facts:
            if fact is Loss.CASE:
                self.service.observe(fact.value, at=at)
            else:
                self.service.appoint(fact.value, at=at, until=order_until if fact is Loss.ORDER else None)

    def activate(self, *, at: datetime) -> Certificate:
        """Activate the role and fetch its capability; the broker keeps what Smith presents.

        Raises:
            DeniedError: The conditions of the role are not met.
        """
        self.service.activate(self.smith, ROLE, at=at)
        for certificate in self.service.capabilities(self.smith, at=at).certificates:
            self.met.certificates.add(certificate)
            if isinstance(certificate.body, Authorisation) and TYPE_NAME.encode() in certificate.raw:
                self.certificate = certificate
        if self.certificate is None:
            raise NotFoundError("the role gave no capability", code="NO_CERTIFICATE")
        return self.certificate

    def lose(self, loss: Loss, *, at: datetime) -> Revocation:
        """Take a fact back; the role, its capability and what stands on it end."""
        revocation = self.service.retract(loss.value, at=at)
        self.certificate = None
        return revocation

    def exposure(self, revocation: Revocation) -> Exposure:
        """Give the window that was printed for the capability when it was withdrawn."""
        [found] = [item.exposure for item in revocation.certificates if "Numberplate" in (item.privilege or "")]
        return found

    def sight(self, plates: Iterable[str], *, at: datetime) -> int:
        """Let the camera report cars."""
        rows = [{"numberplate": plate, "timestamp": at, "location": "Victoria"} for plate in plates]
        return publish_here(self.ccs, TYPE_NAME, rows, as_="CCTV", at=at)


def detective_world(
    root: Path,
    *,
    now: datetime,
    seed: str | None = "numberplate",
    rhythm: Rhythm = Rhythm(period=timedelta(seconds=5), lead=timedelta(seconds=2)),  # noqa: B008 - frozen
) -> DetectiveWorld:
    """Build the homes, apply the policy, and enrol Smith, who has no role yet.

    Args:
        root: An empty folder.
        now: When it begins.
        seed: Whence the keys come; ``None`` makes fresh ones.
        rhythm: How often the police sign their list.
    """
    network = numberplate_network(seed, now=now)
    people = network.people
    definition = EventType(
        name=TypeName(network.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
        attributes=tuple(attribute(name, uid, _KINDS[name]) for name, uid in ATTRIBUTES.items()),
    )
    signed = sign_event_type(definition, people["PITO"])
    ccs = _home(root / "ccs", network, broker="CB", domain="CCS", keys=("CCTV",), definition=signed.raw, now=now)
    met = _home(root / "met", network, broker="MB", domain="Met", keys=("Smith",), definition=signed.raw, now=now)
    ensure_keys(ccs, OwnKeyManager(ccs), definition, at=now)
    met.save_keyring(Keyring.from_bytes(ccs.keyring().to_bytes()))  # which keys it may have is a key manager's question
    write_settings(met, life=timedelta(days=365), rhythm=rhythm)
    service = open_access_control(met)
    service.apply(DETECTIVE_POLICY, at=now)
    code = service.invite("smith", at=now)
    smith = _prove(service, people["Smith"], at=now)
    for certificate in service.enrol(smith, invitation=code, at=now).handed.certificates:
        met.certificates.add(certificate)
    service.beat(at=now)
    return DetectiveWorld(network, ccs, met, service, smith)


def _home(
    path: Path,
    network: NumberplateNetwork,
    *,
    broker: str,
    domain: str,
    keys: tuple[str, ...],
    definition: bytes,
    now: datetime,
) -> Home:
    config = HomeConfig(name=path.name, broker=broker, domain=domain, network=("PITO", NETWORK_NAME), log="../log")
    home = Home.create(path, config, broker=network.people[broker])
    home.add_public_key("PITO", network.key("PITO"))
    for key in (domain, *keys):
        home.add_key(key, network.people[key])
    for name, certificate in network.certificates.items():
        if name not in ("Cap3", "Cap10"):  # what Smith may do is for the policy to say
            home.certificates.add(certificate)
    home.types.put(definition, at=now)
    return home


def _prove(service: AccessControl, signer: KeySigner, *, at: datetime) -> Authenticated:
    return prove_key(service, signer, nonce=secrets.token_bytes(32), at=at)
