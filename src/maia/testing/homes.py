"""The homes of the numberplate network over one log: the congestion charge service, which publishes, and the police."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from maia.authority import Rhythm
from maia.domain import OwnKeyManager, ensure_keys
from maia.events import EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.principals import Certificate, KeySigner
from maia.testing.numberplate import (
    ATTRIBUTES,
    NETWORK_NAME,
    TYPE_NAME,
    TYPE_VERSION,
    NumberplateNetwork,
    numberplate_network,
)

_KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}
_HOMES = {"ccs": ("CB", "CCS", ("BO", "SO", "CCTV")), "met": ("MB", "Met", ("Smith",))}


@dataclass(frozen=True, slots=True)
class NumberplateHomes:
    """Two homes over one log.

    Attributes:
        network: Keys and certificates.
        ccs: The home of the congestion charge service: BO, SO and CCTV are its clients.
        met: The home of the police: Smith is its client.
        event_type: The type as it was signed.
    """

    network: NumberplateNetwork
    ccs: Path
    met: Path
    event_type: EventType

    def add(self, home: Path, *certificates: Certificate) -> None:
        """Let a home have certificates."""
        opened = Home.open(home)
        for certificate in certificates:
            opened.certificates.add(certificate)

    def add_key(self, home: Path, name: str, signer: KeySigner | None = None) -> KeySigner:
        """Let a home have a key pair of this network, or a given one."""
        found = self.network.people[name] if signer is None else signer
        Home.open(home).add_key(name, found)
        return found

    def define(self, home: Path, definition: EventType, signer: KeySigner) -> None:
        """Sign a type and put it into a home."""
        Home.open(home).types.put(sign_event_type(definition, signer).raw, at=datetime.now(UTC))

    def share_keys(self, source: Path, target: Path) -> None:
        """Give one home the keys that another has; which it may have is a key manager's question."""
        Home.open(target).save_keyring(Home.open(source).keyring())


def numberplate_homes(
    root: Path,
    *,
    options: Options | None = None,
    network: bool = False,
    without: Iterable[str] = (),
    since: timedelta = timedelta(0),
) -> NumberplateHomes:
    """Build the homes, with fresh certificates and the keys of the type.

    Args:
        root: An empty folder.
        options: How the type is sealed and shown.
        network: Whether the homes belong to the UK Police Network, so that clients must connect and types be installed.
        without: Names of certificates that are left out.
        since: For how long the keys of the type have been there, at most an hour: so far back events can be stamped.
    """
    begun = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    people = numberplate_network(now=begun)
    definition = EventType(
        name=TypeName(people.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
        attributes=tuple(attribute(name, uid, _KINDS[name]) for name, uid in ATTRIBUTES.items()),
    )
    definition = definition if options is None else replace(definition, options=options)
    made = NumberplateHomes(people, root / "ccs", root / "met", definition)
    for name, (broker, domain, clients) in _HOMES.items():
        config = HomeConfig(
            name=name, broker=broker, domain=domain, network=("PITO", NETWORK_NAME) if network else None, log="../log"
        )
        home = Home.create(root / name, config, broker=people.people[broker])
        home.add_public_key("PITO", people.key("PITO"))
        for key in (domain, *clients):
            home.add_key(key, people.people[key])
        for title, certificate in people.certificates.items():
            if title not in set(without):
                home.certificates.add(certificate)
        made.define(home.path, definition, people.people["PITO"])
    ccs = Home.open(made.ccs)
    ensure_keys(ccs, OwnKeyManager(ccs), definition, at=datetime.now(UTC) - since)
    made.share_keys(made.ccs, made.met)
    return made


def write_settings(home: Home, *, life: timedelta, rhythm: Rhythm) -> None:
    """Write into a home how its domain issues: every process that signs its lists reads it there."""
    seconds = {"life": life, "period": rhythm.period, "lead": rhythm.lead}
    file = home.path / "policy" / "domain.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{name} = {value // timedelta(seconds=1)}\n" for name, value in seconds.items()))
