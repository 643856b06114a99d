"""Proofs from an audit, as texts that another party checks with the broker's public key alone.

Inclusion is C2SP's tlog-proof: that an entry is in the audit which a checkpoint states; ``extra`` is the entry itself.

    c2sp.org/tlog-proof@v1
    extra <the entry's line without its signature, base64>
    index <its number>
    <hashes, base64, one a line>

    <a checkpoint>

Consistency is that a later audit begins with the earlier one, so that nothing was dropped, edited or put elsewhere:

    maia.audit/consistency@v1
    old <the size of the earlier one>
    <hashes>

    <the later checkpoint>
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from maia.errors import EncodingError, VerificationError
from maia.log.audit.notes import MAX_NOTE, Checkpoint, parse_checkpoint, verify_checkpoint
from maia.log.audit.tree import HASH_SIZE, MAX_SIZE, inclusion_root, is_consistent, leaf_hash
from maia.principals import PublicKey

INCLUSION, CONSISTENCY = "c2sp.org/tlog-proof@v1", "maia.audit/consistency@v1"
MAX_PROOF = 32 << 20
_MAX_HASHES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditProof:
    """A proof, as it was read; nothing is verified.

    Attributes:
        kind: `INCLUSION` or `CONSISTENCY`.
        number: The number of the entry; or the size of the earlier audit.
        hashes: The hashes.
        checkpoint: What it is proven against.
        entry: Of inclusion: the entry, without its signature.
    """

    kind: str
    number: int
    hashes: tuple[bytes, ...]
    checkpoint: Checkpoint
    entry: bytes = b""

    @property
    def text(self) -> str:
        """Write it."""
        head = [f"index {self.number}"] if self.kind == INCLUSION else [f"old {self.number}"]
        if self.kind == INCLUSION:
            head.insert(0, f"extra {b64encode(self.entry).decode()}")
        lines = [self.kind, *head, *(b64encode(one).decode() for one in self.hashes)]
        return "\n".join(lines) + "\n\n" + self.checkpoint.text


def parse_proof(data: bytes) -> AuditProof:
    """Read a proof.

    Raises:
        EncodingError: It is none: ``AUDIT_PROOF_FORMAT``, ``CHECKPOINT_FORMAT``.
    """
    try:
        return _read(data)
    except (ValueError, IndexError) as error:
        raise EncodingError("this is no proof from an audit", code="AUDIT_PROOF_FORMAT") from error


def check_inclusion(proof: AuditProof, key: PublicKey) -> AuditProof:
    """Give a proof back when it shows that its entry is in the audit that the key's checkpoint states.

    Raises:
        VerificationError: It does not: ``AUDIT_NOT_INCLUDED``, ``CHECKPOINT_SIGNATURE``.
    """
    checkpoint = verify_checkpoint(proof.checkpoint, key)
    leaf = leaf_hash(hashlib.sha256(proof.entry).digest())
    found = inclusion_root(leaf, proof.number, checkpoint.size, proof.hashes)
    if proof.kind != INCLUSION or found != checkpoint.root:
        raise VerificationError("the entry is not in the audit that is stated there", code="AUDIT_NOT_INCLUDED")
    return proof


def check_consistency(old: Checkpoint, new: Checkpoint, key: PublicKey, hashes: Sequence[bytes]) -> Checkpoint:
    """Give the later checkpoint back when the audit that it states begins with the earlier one.

    Raises:
        VerificationError: It does not: ``AUDIT_FORKED``, ``AUDIT_TRUNCATED``, ``CHECKPOINT_SIGNATURE``.
    """
    for one in (old, new):
        verify_checkpoint(one, key)
    if new.size < old.size:
        what = f"{old.size} entries were stated before, and now {new.size}"
        raise VerificationError(what, code="AUDIT_TRUNCATED")
    if not is_consistent(old.size, new.size, old.root, new.root, hashes):
        raise VerificationError("the audit does not continue the one that was stated before", code="AUDIT_FORKED")
    return new


def _read(data: bytes) -> AuditProof:
    if len(data) > MAX_PROOF:
        raise ValueError
    top, _, note = data.partition(b"\n\n")
    kind, *lines = top.decode("ascii").split("\n")
    entry = b64decode(_word(lines.pop(0), "extra"), validate=True) if kind == INCLUSION else b""
    number = _number(_word(lines.pop(0), "index" if kind == INCLUSION else "old"))
    hashes = tuple(b64decode(line, validate=True) for line in lines)
    checkpoint = parse_checkpoint(note[: MAX_NOTE + 1])
    made = AuditProof(kind=kind, number=number, hashes=hashes, checkpoint=checkpoint, entry=entry)
    known = kind in (INCLUSION, CONSISTENCY) and len(hashes) <= _MAX_HASHES
    if not known or any(len(one) != HASH_SIZE for one in hashes) or made.text.encode() != data:
        raise ValueError
    return made


def _word(line: str, name: str) -> str:
    found, _, rest = line.partition(" ")
    if found != name:
        raise ValueError
    return rest


def _number(text: str) -> int:
    number = int(text)
    if str(number) != text or not 0 <= number <= MAX_SIZE:
        raise ValueError
    return number
