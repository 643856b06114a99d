"""Three homes over one log: an owner that manages keys, a sender, and a member that can be put out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from maia.authority import Action, type_right
from maia.domain import push_certificates
from maia.events import EncryptionMode, EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS, DOMAINS
from maia.log import NoticeLog, publish_statement
from maia.principals import Certificate, KeySigner, TestKind
from maia.testing.building import book, grant, listing, naming, online
from maia.testing.people import People

TYPE = "org.example.Reading"
_TOGETHER = 64
_PEOPLE = ("owner", "sender", "member", "camera", "reader", "sender-broker", "member-broker")


@dataclass(frozen=True, slots=True)
class ManagedHomes:
    """The homes of an owner, of a sender and of a member.

    Attributes:
        people: Signers by name: ``owner``, ``sender``, ``member`` and their ``camera`` and ``reader``.
        owner: The home that manages the key groups of the type.
        sender: Publishes as ``camera``.
        member: Reads as ``reader``, on a right that the owner's lists can end.
        log: The log that they share.
        revocable: The member's right.
    """

    people: People
    owner: Path
    sender: Path
    member: Path
    log: Path
    revocable: Certificate

    def point_to(self, url: str) -> None:
        """Let the sender and the member ask the owner's key manager at an address."""
        for path in (self.sender, self.member):
            home = Home.open(path)
            home.add_public_key("key-manager", self.people["owner"].public_key)
            (path / "maia.toml").write_text(replace(home.config, key_manager=url).to_toml())

    def push(self, sender: str, to: str, certificates: Sequence[Certificate]) -> None:
        """Send certificates to a domain over the log, as somebody's access control service does."""
        notices = NoticeLog(self.log, own=self.log.parent / f"{sender}-lanes")
        domain = self.people[to].public_key.key_id
        for first in range(0, len(certificates), _TOGETHER):
            part = certificates[first : first + _TOGETHER]
            push_certificates(notices, self.people[sender], domain, part, at=datetime.now(UTC))

    def withdraw(self) -> None:
        """Let the owner's list end the member's right, and say so in the log."""
        notices = NoticeLog(self.log, own=self.owner / "lanes")
        list_ = listing(TestKind.CRL, self.people["owner"], [self.revocable], sequence=2)
        publish_statement(notices, self.people["owner"], list_.raw, at=datetime.now(UTC))

    def settle(self, path: Path, **settings: object) -> None:
        """Change settings of a home."""
        home = Home.open(path)
        (path / "maia.toml").write_text(replace(home.config, **settings).to_toml())  # type: ignore[arg-type]


def managed_homes(root: Path) -> ManagedHomes:
    """Build the homes, with certificates that are valid; nobody has joined a key group yet."""
    people, now = People(*_PEOPLE), datetime.now(UTC).replace(microsecond=0)
    owner, sender, member = people["owner"], people["sender"], people["member"]
    both, see = (Action.PUBLISH, Action.SUBSCRIBE), (Action.SUBSCRIBE,)
    whole = [type_right(owner.public_key, TYPE, actions=actions) for actions in (both, see)]
    revocable = grant(owner, member, whole[1], delegate=True, tests=[online(TestKind.CRL, owner)])
    certificates = [
        revocable,
        naming(owner, DOMAINS, sender),
        naming(owner, DOMAINS, member),
        naming(sender, BROKERS, people["sender-broker"]),
        naming(member, BROKERS, people["member-broker"]),
        grant(owner, sender, whole[0], delegate=True),
        grant(sender, people["sender-broker"], type_right(None, actions=both)),
        grant(sender, people["camera"], whole[0]),
        grant(member, people["member-broker"], type_right(None, actions=see)),
        grant(member, people["reader"], whole[1]),
    ]
    definition = EventType(
        name=TypeName(owner.public_key, TYPE, parse_version("1")),
        attributes=(attribute("place", "1", "string"), attribute("value", "2", "string")),
        options=Options(encryption=EncryptionMode.ATTRIBUTE),
    )
    signed = sign_event_type(definition, owner).raw
    clients = {"owner": (), "sender": ("camera",), "member": ("reader",)}
    for name, names in clients.items():
        broker = people[f"{name}-broker"] if name != "owner" else KeySigner.generate()
        home = Home.create(root / name, HomeConfig(name=name, domain=name, log="../log"), broker=broker)
        for who in (name, *names):
            home.add_key(who, people[who])
        for who in clients:
            home.add_public_key(who, people[who].public_key)
        for certificate in certificates:
            home.certificates.add(certificate)
        home.types.put(signed, at=now)
        home.statements.save(book(listing(TestKind.CRL, owner, sequence=1)))
    return ManagedHomes(people, root / "owner", root / "sender", root / "member", root / "log", revocable)
