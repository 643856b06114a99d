"""What a home remembers of its peers, in ``peers/``.

    <digest>.sent     an invitation as it was signed, without its secret; and who answered it, once somebody did
    <digest of its title>.joining
                      the private keys of joins that were not answered yet (0600)

Rules kept here:

- an invitation is bound to the key that answered it before anything is issued on it, and stays so: the record is
  durable, and whoever answers with another key finds it used;
- the private key of a join is erased when its answer was opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import DeniedError, EncodingError, MaiaError, NotFoundError
from maia.events import TypeId
from maia.home import PRIVATE_FILE, PRIVATE_FOLDER, Home, list_files, locked, make_folder, read_file, write_file
from maia.policy import peers
from maia.principals import CertificateId, PublicKey, public_key

_FOLDER = "peers"
_LIMITS = SexpLimits(max_bytes=4 << 20, max_depth=4, max_atom=2 << 20)
_VERSION: Sexp = (b"version", b"1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentInvitation:
    """An invitation of this domain.

    Attributes:
        signed: As it was signed, without the secret.
        bound: Who answered.
        certificates: What was issued on it.
    """

    signed: peers.SignedPeerInvitation
    bound: PublicKey | None = None
    certificates: tuple[CertificateId, ...] = ()


def keep_sent(home: Home, sent: SentInvitation) -> None:
    """Remember an invitation."""
    text = peers.format_peer_invitation(replace(sent.signed, secret=None)).encode()
    bound: tuple[Sexp, ...] = () if sent.bound is None else (sent.bound.raw,)
    data = encode((b"peer-sent", _VERSION, text, (b"bound", *bound), (b"certificates", *sent.certificates)))
    make_folder(home.path / _FOLDER, mode=PRIVATE_FOLDER)
    write_file(_sent_path(home, sent.signed.invitation.digest), data, mode=PRIVATE_FILE)


def find_sent(home: Home, digest: bytes) -> SentInvitation:
    """Find an invitation by its digest.

    Raises:
        NotFoundError: This home made none like it: ``PEER_INVITATION_UNKNOWN``.
    """
    path = _sent_path(home, digest)
    if not path.is_file():
        raise NotFoundError(
            "this home made no such invitation; the answer belongs to the domain that invited",
            code="PEER_INVITATION_UNKNOWN",
        )
    return _read_sent(path)


def all_sent(home: Home) -> tuple[SentInvitation, ...]:
    """List the invitations of this home that can be read."""
    found = []
    for path in list_files(home.path / _FOLDER, suffix=".sent"):
        try:
            found.append(_read_sent(path))
        except MaiaError:
            continue
    return tuple(found)


def bind_sent(home: Home, digest: bytes, key: PublicKey) -> SentInvitation:
    """Bind an invitation to the key that answered it; durable when this returns.

    Raises:
        DeniedError: Another key answered it: ``PEER_INVITATION_USED``.
    """
    with locked(_sent_path(home, digest)):
        sent = find_sent(home, digest)
        if sent.bound not in (None, key):
            raise DeniedError(
                "another domain has answered this invitation, which works once; "
                "make one for each with `maia domain invite-peer`",
                code="PEER_INVITATION_USED",
            )
        bound = replace(sent, bound=key)
        keep_sent(home, bound)
        return bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What this home's broker asked of another domain. Shows no key.

    Attributes:
        title: What both call the agreement.
        giver: The other domain.
        manager: Its key manager.
        keys: By type, the private key of the join.
    """

    title: str
    giver: PublicKey
    manager: PublicKey
    keys: tuple[tuple[TypeId, bytes], ...]

    def __repr__(self) -> str:
        """Name it, never show a key."""
        return f"Joining({self.title!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("the keys of a join cannot be pickled")


def keep_joining(home: Home, joining: Joining) -> None:
    """Remember what was asked, until it is answered."""
    data = encode(
        (
            b"peer-joining", _VERSION, joining.title.encode(), joining.giver.raw, joining.manager.raw,
            (b"keys", *joining.keys),
        )
    )  # fmt: skip
    make_folder(home.path / _FOLDER, mode=PRIVATE_FOLDER)
    write_file(_joining_path(home, joining.title), data, mode=PRIVATE_FILE)


def all_joining(home: Home) -> Iterator[Joining]:
    """Give what was asked and is not answered."""
    for path in list_files(home.path / _FOLDER, suffix=".joining"):
        try:
            yield _read_joining(path)
        except MaiaError:
            continue  # what cannot be read is asked for again


def forget_joining(home: Home, joining: Joining) -> None:
    """Erase the keys of joins that were answered."""
    _joining_path(home, joining.title).unlink(missing_ok=True)


def _sent_path(home: Home, digest: bytes) -> Path:
    return home.path / _FOLDER / f"{digest.hex()}.sent"


def _joining_path(home: Home, title: str) -> Path:
    return home.path / _FOLDER / f"{hashlib.sha256(title.encode()).hexdigest()}.joining"


def _read_sent(path: Path) -> SentInvitation:
    match parse_canonical(read_file(path, limit=_LIMITS.max_bytes), limits=_LIMITS):
        case (b"peer-sent", version, bytes(text), (b"bound", *bound), (b"certificates", *ids)) if version == _VERSION:
            keys = [public_key(item) for item in bound if isinstance(item, bytes)]
            return SentInvitation(
                signed=peers.parse_peer_invitation(text, with_secret=False), bound=keys[0] if keys else None,
                certificates=tuple(CertificateId(item) for item in ids if isinstance(item, bytes)),
            )  # fmt: skip
        case _:
            raise _wrong(path)


def _read_joining(path: Path) -> Joining:
    match parse_canonical(read_file(path, limit=_LIMITS.max_bytes), limits=_LIMITS):
        case (
            b"peer-joining", version, bytes(title), bytes(giver), bytes(manager), (b"keys", *keys),
        ) if version == _VERSION:  # fmt: skip
            return Joining(
                title=title.decode(), giver=public_key(giver), manager=public_key(manager),
                keys=tuple(_join_key(item, path) for item in keys),
            )  # fmt: skip
        case _:
            raise _wrong(path)


def _join_key(item: Sexp, path: Path) -> tuple[TypeId, bytes]:
    match item:
        case (bytes(type_id), bytes(private)):
            return TypeId(type_id), private
        case _:
            raise _wrong(path)


def _wrong(path: Path) -> EncodingError:
    return EncodingError(f"`{path.name}` is no record of a peer", code="PEER_RECORD_SHAPE")
