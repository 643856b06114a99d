"""A domain as its certificates tell it: its kind and members, what may be named next, and who speaks for an owner.

Nothing here decides on access. What it shows is what the kernel goes by, read from the same certificates.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from maia.authority import Verifier
from maia.errors import NotFoundError, UsageError
from maia.home import Folder, keep_exchange, words
from maia.kernel import BROKERS, CLIENTS, DOMAINS, DomainTree, read_domain
from maia.principals import Certificate, KeyId, ObjectHash, PublicKey, Signer, Subject, Threshold, issue, principal_id

_WORDS = (BROKERS, CLIENTS, DOMAINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A domain in words: its name here, its kind, and what belongs to it.

    Attributes:
        name: What this home calls it, or its fingerprint.
        kind: ``group of brokers``, ``group of domains``, or ``empty``.
        brokers: Its brokers, in the words of this home.
        clients: Its clients.
        domains: Its sub-domains.
    """

    name: str
    kind: str
    brokers: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    domains: tuple[Structure, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        return {
            "name": self.name, "kind": self.kind, "brokers": list(self.brokers), "clients": list(self.clients),
            "domains": [domain.to_json() for domain in self.domains],
        }  # fmt: skip

    def lines(self, indent: int = 0) -> list[str]:
        """Write it for people."""
        found = [f"{' ' * indent}{self.name}: a {self.kind}" if self.kind != "empty" else f"{' ' * indent}{self.name}"]
        for word, names in ((BROKERS, self.brokers), (CLIENTS, self.clients)):
            found += [f"{' ' * indent}  {word}  {', '.join(names)}"] if names else []
        for domain in self.domains:
            found += domain.lines(indent + 2)
        return found


def domain_structure(folder: Folder, domain: PublicKey, *, at: datetime) -> Structure:
    """Read a domain and all below it from the names that are in force.

    Raises:
        ChainError: It names sub-domains beside brokers or clients (``DOMAIN_KIND``), or lies below itself.
    """
    return _in_words(_tree(folder, domain.key_id, at=at), folder)


def check_naming(folder: Folder, issuer: PublicKey, name: str, subject: Subject, *, at: datetime) -> None:
    """Refuse a name that would make a domain both kinds of group, before it is signed; other names mean nothing here.

    Raises:
        ChainError: ``DOMAIN_KIND``, or ``DOMAIN_LOOP`` for a domain that would lie below itself.
    """
    if name in _WORDS and not isinstance(subject, ObjectHash):
        _tree(folder, issuer.key_id, at=at).with_member(name, principal_id(subject))


def sign_exchange(folder: Folder, owner: Threshold, signer: Signer, *, out: PublicKey, in_: PublicKey) -> Certificate:
    """Sign a member's word that another key takes a member's place in an owner of several keys, and keep it.

    It counts when as many members as the owner asks for have signed the same.

    Raises:
        UsageError: The one who goes is no member now, or the one who comes is one: ``OWNER_MEMBERS``.
    """
    known = folder.book().successions
    current = known.speaker(owner)
    assert isinstance(current, Threshold)  # noqa: S101 - an exchange makes a threshold of a threshold
    keys = [member.key_id for member in current.members if hasattr(member, "key_id")]
    if out.key_id not in keys or in_.key_id in keys or signer.public_key.key_id not in keys:
        raise UsageError(
            f"the members are now {words.show_subject(current, folder)}: one of them signs, one of them goes, and the "
            "one who comes is none of them",
            code="OWNER_MEMBERS",
        )
    members = tuple(
        in_ if hasattr(member, "key_id") and member.key_id == out.key_id else member for member in current.members
    )
    made = issue(known.exchange(owner, Threshold(current.k, members), signer.public_key), signer)
    keep_exchange(folder.path, made)
    return made


def network_owner(folder: Folder, text: str | None) -> Threshold:
    """Find the owner of several keys that is meant: the one named, else that of the home's network.

    Raises:
        NotFoundError: The home belongs to no network, and none is named: ``NO_NETWORK``.
        UsageError: It is one key, whose members nobody can exchange: ``NOT_A_THRESHOLD``.
    """
    config = folder.config
    if text is None and (config is None or config.network is None):
        raise NotFoundError("this home belongs to no network; name the owner with --owner", code="NO_NETWORK")
    named = text if text is not None else config.network[0] if config is not None and config.network else ""
    owner = words.parse_principal_text(named, folder)
    if not isinstance(owner, Threshold):
        raise UsageError(f"`{named}` is no owner of several keys", code="NOT_A_THRESHOLD")
    return owner


def _tree(folder: Folder, domain: KeyId, *, at: datetime) -> DomainTree:
    return read_domain(domain, folder.pool(), verifier=Verifier(statements=folder.book()), at=at)


def _in_words(tree: DomainTree, folder: Folder) -> Structure:
    kind = "group of domains" if tree.domains else "group of brokers" if tree.brokers or tree.clients else "empty"
    return Structure(
        name=_called(tree.key, folder),
        kind=kind,
        brokers=tuple(sorted(_called(key, folder) for key in tree.brokers)),
        clients=tuple(sorted(_called(key, folder) for key in tree.clients)),
        domains=tuple(_in_words(domain, folder) for domain in tree.domains),
    )


def _called(key: KeyId, folder: Folder) -> str:
    return folder.names.get(key) or folder.show(key)
