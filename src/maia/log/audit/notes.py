"""Checkpoints: what a domain signs of its audit, and what others sign beside it; C2SP's signed notes.

    maia.audit/<the broker's key, hashed, in hex>
    <how many entries>
    <the root over them, base64>

    — maia.audit/<…> <four octets that name the key, and its signature, base64>
    — maia.cosigner/<…> <four octets, the time, and a cosignature, base64>

Rules kept here:

- what is signed begins with ``maia.audit/`` or ``cosignature/v1``, and nothing else that Maia signs does, so a
  checkpoint never stands for another signed object;
- a checkpoint counts only with the signature of the key that its first line names, and that key is the one that
  whoever reads it expects; lines of others are passed over;
- there is one text for one checkpoint, so that two are the same when their texts are.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from maia.errors import EncodingError, SignatureError
from maia.log.audit.tree import HASH_SIZE, MAX_SIZE
from maia.principals import Kind, PublicKey, Signer, verify_signature

MAX_NOTE = 64 << 10
_ORIGIN, _COSIGNER = "maia.audit/", "maia.cosigner/"
_BODY = re.compile(r"(maia\.audit/[0-9a-f]{64})\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n")
_LINE = re.compile("\u2014 ([!-*,-~]{1,200}) ([A-Za-z0-9+/]{1,400}={0,2})")
_ED25519, _COSIGNATURE = b"\x01", b"\x04"
_MAX_LINES = 64
_LAST_SECOND = 1 << 37


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A statement on an audit: so many entries, with this root.

    Attributes:
        origin: Whose audit.
        size: How many entries.
        root: The root over them.
        signatures: Lines of signatures: names, and what follows them.
    """

    origin: str
    size: int
    root: bytes
    signatures: tuple[tuple[str, bytes], ...] = ()

    @property
    def body(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n"

    @property
    def text(self) -> str:
        """The whole note."""
        lines = "".join(f"\u2014 {name} {b64encode(value).decode()}\n" for name, value in self.signatures)
        return f"{self.body}\n{lines}"

    def same(self, other: Checkpoint) -> bool:
        """Tell whether two state the same."""
        return self.body == other.body


def sign_checkpoint(size: int, root: bytes, signer: Signer) -> Checkpoint:
    """State what an audit is, as its domain's broker."""
    origin = origin_of(signer.public_key)
    bare = Checkpoint(origin=origin, size=size, root=root)
    signature = signer.sign(Kind.CHECKPOINT, bare.body.removeprefix(_ORIGIN).encode())
    line = _key_hint(origin, _ED25519, signer.public_key) + signature
    return replace(bare, signatures=((origin, line),))


def cosign(checkpoint: Checkpoint, signer: Signer, *, at: datetime) -> Checkpoint:
    """Sign beside a domain that this is the audit that was shown; one's own former line is replaced.

    What comes out can be read: of the lines that are there, those stay for which there is room, the first ones first.
    """
    name, time = _COSIGNER + signer.public_key.key_id.hex(), int(at.timestamp())
    signature = signer.sign(Kind.COSIGNATURE, _cosigned(checkpoint, time))
    line = _key_hint(name, _COSIGNATURE, signer.public_key) + time.to_bytes(8, "big") + signature
    kept = [item for item in checkpoint.signatures if item[0] != name]
    # SECURITY: a note that nobody reads any more would stand for the history that was cosigned, and hide it.
    return replace(checkpoint, signatures=(*kept[: _MAX_LINES - 1], (name, line)))


def signed_lines(checkpoint: Checkpoint, key: PublicKey, *, cosigned: bool = True) -> Checkpoint:
    """Leave the one line with which the key signed a checkpoint, first, and behind it the lines of cosigners, if any.

    Raises:
        SignatureError: The key did not: ``CHECKPOINT_SIGNATURE``.
    """
    others = [item for item in checkpoint.signatures if cosigned and item[0].startswith(_COSIGNER)]
    return replace(checkpoint, signatures=(_own_line(checkpoint, key), *others))


def origin_of(key: PublicKey) -> str:
    """Name the audit of a broker."""
    return _ORIGIN + key.key_id.hex()


def parse_checkpoint(data: bytes) -> Checkpoint:
    """Read a note; nothing is verified.

    Raises:
        EncodingError: It is none: ``CHECKPOINT_FORMAT``.
    """
    try:
        return _read(data)
    except ValueError as error:
        raise EncodingError("this is no checkpoint of an audit", code="CHECKPOINT_FORMAT") from error


def verify_checkpoint(checkpoint: Checkpoint, key: PublicKey) -> Checkpoint:
    """Give a checkpoint back when the key signed it, and its first line names that key.

    Raises:
        SignatureError: ``CHECKPOINT_SIGNATURE``.
    """
    _own_line(checkpoint, key)
    return checkpoint


def _own_line(checkpoint: Checkpoint, key: PublicKey) -> tuple[str, bytes]:
    origin = origin_of(key)
    # SECURITY: a checkpoint of another audit, or one that only others signed, states nothing about this one.
    if checkpoint.origin == origin:
        hint, content = _key_hint(origin, _ED25519, key), checkpoint.body.removeprefix(_ORIGIN).encode()
        for name, value in checkpoint.signatures:
            if name == origin and value[:4] == hint and _is_signed(Kind.CHECKPOINT, content, value[4:], key):
                return name, value
    raise SignatureError("the checkpoint is not signed by this audit's broker", code="CHECKPOINT_SIGNATURE")


def cosigners(checkpoint: Checkpoint, keys: Iterable[PublicKey]) -> list[tuple[PublicKey, datetime]]:
    """Tell who of these cosigned a checkpoint, and when each says that it did."""
    found = []
    for key in keys:
        name = _COSIGNER + key.key_id.hex()
        hint = _key_hint(name, _COSIGNATURE, key)
        for line, value in checkpoint.signatures:
            time = int.from_bytes(value[4:12], "big")
            known = line == name and value[:4] == hint and time < _LAST_SECOND
            if known and _is_signed(Kind.COSIGNATURE, _cosigned(checkpoint, time), value[12:], key):
                found.append((key, datetime.fromtimestamp(time, UTC)))
                break
    return found


def _read(data: bytes) -> Checkpoint:
    if len(data) > MAX_NOTE:
        raise ValueError
    text = data.decode("utf-8")
    body, gap, rest = text.partition("\n\n")
    found, lines = _BODY.fullmatch(body + "\n"), rest.split("\n")
    if found is None or not gap or lines.pop() or not 0 < len(lines) <= _MAX_LINES:
        raise ValueError
    parts = [_LINE.fullmatch(line) for line in lines]
    signatures = tuple((one[1], b64decode(one[2], validate=True)) for one in parts if one is not None)
    made = Checkpoint(
        origin=found[1], size=int(found[2]), root=b64decode(found[3], validate=True), signatures=signatures
    )
    if len(made.root) != HASH_SIZE or made.size > MAX_SIZE or made.text != text:
        raise ValueError
    return made


def _cosigned(checkpoint: Checkpoint, time: int) -> bytes:
    return f"time {time}\n{checkpoint.body}".encode()


def _key_hint(name: str, algorithm: bytes, key: PublicKey) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + algorithm + key.raw).digest()[:4]


def _is_signed(kind: Kind, content: bytes, signature: bytes, key: PublicKey) -> bool:
    try:
        verify_signature(kind, content, signature, key)
    except (SignatureError, ValueError):
        return False
    return True
