"""Inviting another domain: all that it needs to know, in one signed file.

Rules kept here:

- what is offered is what this domain may give now, in words that mean it; the file gives nothing by itself;
- the home remembers the invitation and not its secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from maia.authority import Action, Tag, can_give, cell_rights, is_nothing, network_right
from maia.domain.access_control import HomeHoldings
from maia.domain.manager_key import manager_signer
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.peers.brokers import assure_broker
from maia.domain.peers.names import key_name
from maia.domain.peers.records import SentInvitation, keep_sent
from maia.domain.releases import agreed_attributes, check_no_direct
from maia.domain.types import check_types
from maia.errors import DeniedError, NotFoundError, UsageError
from maia.events import EncryptionMode, EventType, TypeId, UnverifiedEventType
from maia.home import Home, check_key_name, words
from maia.kernel import KEY_MANAGER
from maia.policy import draft_rows, peers
from maia.principals import KeySigner, Naming, Principal, PublicKey, Signer

LIFE = timedelta(days=7)
"""How long an invitation is open unless it says otherwise."""
_LONGEST = timedelta(days=366)
_SHOWN = 8
_MAX_NAMES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitedPeer:
    """An invitation that was made. Shows no secret.

    Attributes:
        invitation: What it says.
        text: The file; whoever has it can answer, once.
    """

    invitation: peers.PeerInvitation
    text: str

    def __repr__(self) -> str:
        """Name it, never show the secret."""
        return f"InvitedPeer({self.invitation.peer!r}, until {self.invitation.ends.isoformat()})"

    def save(self, path: Path | str) -> Path:
        """Write the file, for its owner alone to read."""
        from maia.home import PRIVATE_FILE, write_file  # noqa: PLC0415 - only here

        write_file(Path(path), self.text.encode(), mode=PRIVATE_FILE)
        return Path(path)


def invite_peer(
    home: Home,
    signer: Signer,
    own: OwnKeyManager,
    peer: str,
    *,
    give: Sequence[str],
    at: datetime,
    until: datetime | None = None,
    peer_key: PublicKey | None = None,
    history: datetime | None = None,
    log: str | None = None,
) -> InvitedPeer:
    """Invite another domain.

    Args:
        home: The home of the domain that invites.
        signer: The key that speaks for it.
        own: The key manager that the home runs itself.
        peer: What people call the other domain.
        give: Rows of an agreement: ``researcher |- subscribe Result(ward, test)``.
        at: Now.
        until: Until when it may be answered; a week by default.
        peer_key: The other's key, when only that may answer.
        history: Since when events are opened to the other; without it, from its admission on.
        log: Where the other finds the log, when not where this home does.

    Raises:
        PolicySyntaxError: A row is none, or of a type that is not known here.
        DeniedError: This domain cannot give it: ``ISSUER_LACKS_RIGHT``.
        NotFoundError: Nobody manages the keys of a type: ``NO_KEY_MANAGER``.
        UsageError: Nothing is given, or only some rows (``PEER_ROWS``); or the invitation would be over, or open for
            longer than a year.
    """
    begins = at.replace(microsecond=0)
    ends = begins + LIFE if until is None else until.replace(microsecond=0)
    if not begins < ends <= begins + _LONGEST:
        raise UsageError("an invitation is open from now on, for at most a year", code="PEER_INVITATION_PERIOD")
    if not peer.isprintable() or not peer.strip():
        raise UsageError("a peer's name is one line of printable characters", code="DOMAIN_NAME")
    check_key_name(key_name(peer))
    if not give:
        raise UsageError(
            "say what the peer may read, such as --give 'researcher |- subscribe Result(ward, test)'",
            code="AGREEMENT_ROWS",
        )
    catalogue = HomeHoldings(home).types(at=at)
    check_no_direct(home)
    rows = draft_rows("\n".join(give), catalogue, allowed=agreed_attributes(home, peer, key_name(peer)))
    offered = peers.types_of_rows(rows)
    definitions = _definitions(home, offered, at=at)
    owners = {item.definition.type_id: item.definition.name.owner for item in definitions}
    for row in rows:
        if any(cells.served for cells in cell_rights(row.tag)):
            raise UsageError(
                f"`{row.words}` chooses rows, and keys open whole columns: the peer would get none; offer attributes",
                code="PEER_ROWS",
            )
        (type_id,) = peers.types_of_rows([row])
        _check_gift(home, signer.public_key, row.tag, owners[type_id], at=at)
    if home.network is not None:
        _check_gift(home, signer.public_key, network_right(*home.network, [Action.CONNECT]), home.network[0], at=at)
    assure_broker(home, signer, at=at)
    _require_manager(home, own, [item.definition for item in definitions if item.definition.type_id in offered], at=at)
    secret = KeySigner.generate()
    invitation = peers.PeerInvitation(
        title=f"{key_name(peer)}-{secret.public_key.key_id.hex()[:_SHOWN]}", name=home.config.name,
        key=signer.public_key, peer=peer, peer_key=peer_key, begins=begins, ends=ends, one_time_key=secret.public_key,
        network=home.network, log=home.log_place if log is None else log, manager=_manager_key(home),
        manager_address=home.config.key_manager, history=history, keys=_keys(home, definitions),
        types=tuple(item.raw for item in definitions), certificates=_manager_names(home), rows=rows,
    )  # fmt: skip
    signed = peers.sign_peer_invitation(invitation, signer, secret)
    keep_sent(home, SentInvitation(signed=signed))
    text = peers.format_peer_invitation(signed)
    if len(text.encode()) > peers.MAX_PEER_FILE:
        raise UsageError("the types of these rows are too many for one invitation", code="PEER_FILE_SIZE")
    return InvitedPeer(invitation=invitation, text=text)


def _definitions(home: Home, types: Iterable[TypeId], *, at: datetime) -> tuple[UnverifiedEventType, ...]:
    """Give the definitions of types that verify, parents included."""
    found: dict[bytes, UnverifiedEventType] = {}
    wanted, verifier = list(types), home.verifier()
    while wanted:  # bounded: each definition is looked at once, and a home keeps so many
        for item, verified in check_types(home, verifier=verifier, at=at, type_id=wanted.pop()):
            if verified is not None and item.definition_id not in found:
                found[item.definition_id] = item
                if item.definition.extends is not None:
                    wanted.append(item.definition.extends.type_id)
    return tuple(found.values())


def _require_manager(home: Home, own: OwnKeyManager, types: Iterable[EventType], *, at: datetime) -> None:
    """Refuse to offer events whose keys nobody could hand over."""
    for item in types:
        sealed = item.options.encryption is not EncryptionMode.PLAIN
        if sealed and home.config.key_manager is None and not own.manages(item, at=at):
            raise NotFoundError(
                f"nobody who can be asked manages the keys of `{item.name.name}`: its owner does so with the key that "
                "speaks for the domain, or names a key manager, whose address stands in `maia.toml`",
                code="NO_KEY_MANAGER",
            )


def _manager_key(home: Home) -> PublicKey:
    """Give the key of whoever manages the keys of this home's types."""
    return manager_signer(home).public_key if home.config.key_manager is None else home.key(KEY_MANAGER)


def _manager_names(home: Home) -> tuple[bytes, ...]:
    """Give the certificates by which owners of types name the key manager."""
    names = (item for item in home.pool() if isinstance(item.body, Naming) and item.body.name == KEY_MANAGER)
    return tuple(item.raw for item in names)[:_MAX_NAMES]


def _keys(home: Home, definitions: Iterable[UnverifiedEventType]) -> tuple[tuple[str, PublicKey], ...]:
    """Give the keys, with their names here, that own the network and the types."""
    owners: list[Principal] = [
        *(item.definition.name.owner for item in definitions),
        *(() if home.network is None else (home.network[0],)),
    ]
    own = home.key(home.config.domain)
    found = {owner.key_id: owner for owner in owners if isinstance(owner, PublicKey) and owner != own}
    return tuple((home.folder.names.get(key.key_id, key.fingerprint), key) for key in found.values())


def _check_gift(home: Home, issuer: PublicKey, tag: Tag, owner: Principal, *, at: datetime) -> None:
    """Refuse to offer what would be worth nothing."""
    folder = home.folder
    gift = can_give(tag, issuer=issuer, owner=owner, roots=(), pool=folder.pool(), book=folder.book(), at=at)
    if not gift.possible:
        lacks = [part for part in gift.missing if not is_nothing(part)] or [tag]
        missing = "; ".join(words.describe_tag(part.to_sexp(), folder) for part in lacks)
        raise DeniedError(
            f"this domain cannot give: {missing}; ask the owner for a right that may be passed on",
            code="ISSUER_LACKS_RIGHT",
        )
