"""An invitation of one domain to another: all that the other needs to know, signed, and a secret that works once.

    (signed-peer-invitation <body> <signature> (one-time-secret <seed>))

    (peer-invitation (version "1") (from <name> <key>) (to <name> [<key>]) (period <begins> <ends>)
        (one-time-key <key>) (network [<owner> <name>]) (log <address>) (key-manager <key> [<address>])
        (history [<since>]) (keys (<name> <key>) …) (types <signed definition> …) (certificates <certificate> …)
        (title <text>) (row …) …)

Rules kept here:

- the domain that invites signs everything but the secret, and the body holds the public half of that: a file with
  another secret, another row or another key is an altered one;
- what it gives is in the rows, in words and as rights, as in an agreement. Nobody has a right by this file: rights are
  issued when the other side has answered, to the key that answered;
- the secret proves that whoever answers was given the file. It opens nothing, and counts until the invitation ends or
  is answered, whichever comes first. Who invites does not keep it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from maia.encoding import Sexp, encode
from maia.errors import ExpiredError, MalformedError, SignatureError
from maia.policy.agreement_text import parse_row
from maia.policy.agreements import MAX_ROWS, AgreementRow
from maia.policy.peers.files import (
    VERSION,
    PeerFileKind,
    check_signed,
    octets,
    read_file,
    read_key,
    read_number,
    write_file,
    wrong,
)
from maia.principals import (
    KeySigner,
    Kind,
    Principal,
    PublicKey,
    Signer,
    decode_text,
    encode_text,
    parse_principal,
)

_MAX_PARTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerInvitation:
    """What one domain tells another.

    Attributes:
        title: What both call the agreement.
        name: What the inviting domain calls itself.
        key: Its key.
        peer: What it calls the other.
        peer_key: The other's key, where only that may answer.
        begins: When it was made.
        ends: Until when it may be answered.
        one_time_key: The public half of the secret.
        network: Owner and name of the network, when there is one.
        log: Where the log is.
        manager: Who manages the keys of the types.
        manager_address: Where that is asked, when it is a service; else the log carries its answers.
        history: Events from then on are opened to the other; without it, those from its admission on.
        keys: Further keys that the types and the network speak of, by the names that they have at the inviting side.
        types: Signed definitions.
        certificates: By which the owners of the types name the key manager, where they are not it.
        rows: What is given to whom.
    """

    title: str
    name: str
    key: PublicKey
    peer: str
    peer_key: PublicKey | None = None
    begins: datetime
    ends: datetime
    one_time_key: PublicKey
    network: tuple[Principal, str] | None = None
    log: str
    manager: PublicKey
    manager_address: str | None = None
    history: datetime | None = None
    keys: tuple[tuple[str, PublicKey], ...] = ()
    types: tuple[bytes, ...]
    certificates: tuple[bytes, ...] = ()
    rows: tuple[AgreementRow, ...]

    def to_sexp(self) -> Sexp:
        """Write the body that is signed."""
        return (
                b"peer-invitation", VERSION,
                (b"from", encode_text(self.name, "a name"), self.key.to_sexp()),
                (b"to", encode_text(self.peer, "a name"), *_optional(self.peer_key)),
                (b"period", _seconds(self.begins), _seconds(self.ends)),
                (b"one-time-key", self.one_time_key.to_sexp()),
                (b"network", *_network(self.network)),
                (b"log", encode_text(self.log, "an address")),
                (b"key-manager", self.manager.to_sexp(), *_texts(self.manager_address)),
                (b"history", *(() if self.history is None else (_seconds(self.history),))),
                (b"keys", *((encode_text(name, "a name"), key.to_sexp()) for name, key in self.keys)),
                (b"types", *self.types),
                (b"certificates", *self.certificates),
                (b"title", encode_text(self.title, "a title")),
                *(row.to_sexp() for row in self.rows),
        )  # fmt: skip

    @property
    def digest(self) -> bytes:
        """What an answer names it by."""
        return hashlib.sha256(encode(self.to_sexp())).digest()

    def check_open(self, *, at: datetime) -> None:
        """Refuse it when its time is over, or has not begun.

        Raises:
            ExpiredError: ``PEER_INVITATION_OVER``.
        """
        if not self.begins <= at <= self.ends:
            raise ExpiredError(
                f"the invitation is open from {self.begins.isoformat()} to {self.ends.isoformat()}; "
                f"`{self.name}` makes another with `maia domain invite-peer`",
                code="PEER_INVITATION_OVER",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPeerInvitation:
    """An invitation whose signature was verified, and the secret that came with it. Shows no secret."""

    invitation: PeerInvitation
    signature: bytes
    secret: KeySigner | None = None

    def __repr__(self) -> str:
        """Name it, never show the secret."""
        return f"SignedPeerInvitation({self.invitation.title!r})"


def sign_peer_invitation(invitation: PeerInvitation, signer: Signer, secret: KeySigner) -> SignedPeerInvitation:
    """Sign an invitation as the domain that invites."""
    signature = signer.sign(Kind.PEER_INVITATION, encode(invitation.to_sexp()))
    return SignedPeerInvitation(invitation=invitation, signature=signature, secret=secret)


def format_peer_invitation(signed: SignedPeerInvitation) -> str:
    """Write the file; without its secret it is what the inviting side keeps."""
    seed = () if signed.secret is None else ((b"one-time-secret", signed.secret.export_seed()),)
    return write_file((PeerFileKind.INVITATION.value.encode(), signed.invitation.to_sexp(), signed.signature, *seed))


def parse_peer_invitation(data: bytes, *, with_secret: bool = True) -> SignedPeerInvitation:
    """Read a file and check who signed it.

    >>> parse_peer_invitation(b"(signed-peer-invitation)")
    Traceback (most recent call last):
    maia.errors.EncodingError: [PEER_FILE_SHAPE] not an invitation to a peer, nor an answer to one

    Raises:
        EncodingError: It is no invitation.
        SignatureError: It was altered: ``PEER_FILE_ALTERED``.
    """
    secret = None
    match read_file(data):
        case (b"signed-peer-invitation", body, bytes(signature), (b"one-time-secret", bytes(seed))) if with_secret:
            secret = _secret(seed)
        case (b"signed-peer-invitation", body, bytes(signature)) if not with_secret:
            pass
        case _:
            raise wrong()
    try:
        invitation = _read(body)
    except (MalformedError, OverflowError, ValueError) as error:
        raise wrong() from error
    check_signed(Kind.PEER_INVITATION, encode(body), signature, invitation.key)
    if secret is not None and secret.public_key != invitation.one_time_key:
        raise SignatureError("the secret of the invitation was altered; ask for it again", code="PEER_FILE_ALTERED")
    return SignedPeerInvitation(invitation=invitation, signature=signature, secret=secret)


def _read(body: Sexp) -> PeerInvitation:
    match body:
        case (
            b"peer-invitation", version,
            (b"from", name, key), (b"to", peer, *peer_key), (b"period", begins, ends), (b"one-time-key", one_time),
            (b"network", *network), (b"log", log), (b"key-manager", manager, *address), (b"history", *history),
            (b"keys", *keys), (b"types", *types), (b"certificates", *certificates),
            (b"title", title), *rows,
        ) if (
            version == VERSION and max(len(peer_key), len(address), len(history)) <= 1 and len(network) in (0, 2)
            and max(len(types), len(certificates), len(keys)) <= _MAX_PARTS and 1 <= len(rows) <= MAX_ROWS
        ):  # fmt: skip
            return PeerInvitation(
                title=decode_text(title, "a title"), name=decode_text(name, "a name"), key=read_key(key),
                peer=decode_text(peer, "a name"), peer_key=read_key(peer_key[0]) if peer_key else None,
                begins=_instant(begins), ends=_instant(ends), one_time_key=read_key(one_time),
                network=(parse_principal(network[0]), decode_text(network[1], "a name")) if network else None,
                log=decode_text(log, "an address"), manager=read_key(manager),
                manager_address=decode_text(address[0], "an address") if address else None,
                history=_instant(history[0]) if history else None, keys=tuple(map(_named_key, keys)),
                types=octets(types), certificates=octets(certificates), rows=tuple(map(parse_row, rows)),
            )  # fmt: skip
        case _:
            raise wrong()


def _named_key(item: Sexp) -> tuple[str, PublicKey]:
    match item:
        case (name, key):
            return decode_text(name, "a name"), read_key(key)
        case _:
            raise wrong()


def _secret(seed: bytes) -> KeySigner:
    try:
        return KeySigner(seed)
    except MalformedError as error:
        raise wrong() from error


def _optional(key: PublicKey | None) -> tuple[Sexp, ...]:
    return () if key is None else (key.to_sexp(),)


def _texts(text: str | None) -> tuple[Sexp, ...]:
    return () if text is None else (encode_text(text, "an address"),)


def _network(network: tuple[Principal, str] | None) -> tuple[Sexp, ...]:
    return () if network is None else (network[0].to_sexp(), encode_text(network[1], "a name"))


def _seconds(at: datetime) -> bytes:
    return b"%d" % int(at.timestamp())


def _instant(item: Sexp) -> datetime:
    return datetime.fromtimestamp(read_number(item), UTC)
