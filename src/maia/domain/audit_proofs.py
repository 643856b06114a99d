"""What a home states and proves of its audit, and what it remembers of the audits of others.

Rules kept here:

- a proof is made only from a journal that has every entry, each signed by the broker and continuing the one before it,
  and whose root is the one that was signed;
- a home cosigns one history of each audit: whatever does not continue what it cosigned before is refused, and what it
  cosigns is remembered before the signature leaves, and can be read back;
- no link that lies in a folder of tiles is followed, and what is there already is compared.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from maia.errors import EncodingError, NotFoundError, UsageError, VerificationError
from maia.home import PRIVATE_FILE, Home, read_file, write_file
from maia.log import (
    CONSISTENCY,
    INCLUSION,
    NO_ENTRY,
    AuditProof,
    Checkpoint,
    DirectoryStore,
    MerkleTree,
    check_consistency,
    cosign,
    leaf_hash,
    parse_checkpoint,
    read_head,
    signed_lines,
    tiles_of,
    verify_checkpoint,
    walk_entries,
)
from maia.principals import PublicKey, Signer

_HEAD, _COSIGNED, _CHECKPOINT = "audit-head", "cosigned", "checkpoint"
_MAX_NOTE, _MAX_TILE = 64 << 10, 64 << 10


def home_checkpoint(home: Home) -> Checkpoint:
    """Give what a home stated of its audit last.

    Raises:
        NotFoundError: It stated nothing yet: ``NO_CHECKPOINT``.
    """
    head = read_head(home.path / _HEAD, home.key(home.config.broker))
    if head is None or head.checkpoint is None:
        raise NotFoundError("the audit has no checkpoint yet: the next entry makes one", code="NO_CHECKPOINT")
    return head.checkpoint


def prove_entry(home: Home, number: int, checkpoint: Checkpoint | None = None) -> AuditProof:
    """Prove that an entry is in the audit that a checkpoint states; in the newest by default.

    Raises:
        NotFoundError: There is no such entry there: ``NO_SUCH_ENTRY``.
        VerificationError: The journal is not the one that the checkpoint states.
    """
    stated = _stated(home, checkpoint)
    if not 0 <= number < stated.size:
        raise NotFoundError(f"the checkpoint states {stated.size} entries, and no {number}", code="NO_SUCH_ENTRY")
    [proof] = prove_entries(home, (number,), stated)
    return proof


def prove_entries(home: Home, numbers: Iterable[int], checkpoint: Checkpoint) -> Iterator[AuditProof]:
    """Prove that each of some entries is in the audit that a checkpoint states; the journal is read once.

    Raises:
        VerificationError: The journal is not the one that the checkpoint states.
    """
    wanted = sorted(set(numbers))
    tree, _, lines = _tree(home, checkpoint, keep=frozenset(wanted))
    for number in wanted:
        yield AuditProof(
            kind=INCLUSION, number=number, hashes=tuple(tree.inclusion(number, checkpoint.size)),
            checkpoint=checkpoint, entry=lines[number],
        )  # fmt: skip


def prove_consistency(home: Home, old: Checkpoint) -> AuditProof:
    """Prove that the audit as it is stated now begins with the one that an older checkpoint states.

    Raises:
        VerificationError: It does not: ``AUDIT_FORKED``, ``AUDIT_TRUNCATED``, ``CHECKPOINT_SIGNATURE``.
    """
    stated, key = home_checkpoint(home), home.key(home.config.broker)
    tree, _, _ = _tree(home, stated)
    hashes = tuple(tree.consistency(old.size, stated.size))
    check_consistency(old, stated, key, hashes)
    return AuditProof(kind=CONSISTENCY, number=old.size, hashes=hashes, checkpoint=stated)


def write_tiles(home: Home, folder: Path) -> tuple[Checkpoint, int]:
    """Lay the audit's tree out in tiles, for any server of files; digests alone, nothing of entries.

    A tile that is there as it must be stays. What lies there already must be the beginning of this audit.

    Returns:
        The checkpoint that was written last, and how many files were.

    Raises:
        VerificationError: Another audit lies there: ``AUDIT_FORKED``.
    """
    # SECURITY: others may write where tiles are served from; a store follows no link below its folder.
    stated, place = home_checkpoint(home), DirectoryStore(folder)
    tree, digests, _ = _tree(home, stated)
    there = _lies(place, _CHECKPOINT, limit=_MAX_NOTE)
    if there is not None:
        old = parse_checkpoint(there)
        key = home.key(home.config.broker)
        check_consistency(old, stated, key, tree.consistency(old.size, stated.size))
    written = 0
    for name, octets, _ in tiles_of(tree, digests):
        made = octets()
        if _lies(place, name, limit=_MAX_TILE) != made:
            place.put(name, made)
            written += 1
    place.put(_CHECKPOINT, stated.text.encode())
    return stated, written + 1


def cosign_checkpoint(
    home: Home, checkpoint: Checkpoint, key: PublicKey, signer: Signer, *, proof: AuditProof | None, at: datetime
) -> Checkpoint:
    """Cosign what another domain states of its audit, when it continues what this home cosigned before.

    Args:
        home: Where it is remembered.
        checkpoint: What is stated.
        key: The key of the other domain's broker.
        signer: Who cosigns.
        proof: That it continues what was cosigned before; needed when the audit grew since.
        at: Now.

    Raises:
        VerificationError: It does not continue it: ``AUDIT_FORKED``, ``AUDIT_TRUNCATED``, ``CHECKPOINT_SIGNATURE``.
        UsageError: A proof is needed: ``CONSISTENCY_NEEDED``.
    """
    verify_checkpoint(checkpoint, key)
    folder = home.path / _COSIGNED
    folder.mkdir(mode=0o700, exist_ok=True)
    place = folder / f"{key.key_id.hex()}.checkpoint"
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if place.exists():
            _continues(parse_checkpoint(read_file(place, limit=_MAX_NOTE)), checkpoint, key, proof)
        signed = cosign(signed_lines(checkpoint, key), signer, at=at)
        parse_checkpoint(signed.text.encode())
        # What has to be remembered is what the domain signed; lines of others have no say, and take no room.
        write_file(place, signed_lines(signed, key, cosigned=False).text.encode(), mode=PRIVATE_FILE)
    finally:
        os.close(descriptor)
    return signed


def _continues(old: Checkpoint, new: Checkpoint, key: PublicKey, proof: AuditProof | None) -> None:
    grew = 0 < old.size < new.size
    if grew and proof is None:
        raise UsageError(
            f"this home cosigned {old.size} entries before: give --proof, made by `maia audit prove --from` there",
            code="CONSISTENCY_NEEDED",
        )
    fits = proof is not None and (proof.kind, proof.number) == (CONSISTENCY, old.size) and proof.checkpoint.same(new)
    if grew and not fits:
        raise VerificationError("the proof is about other checkpoints than these", code="AUDIT_FORKED")
    check_consistency(old, new, key, proof.hashes if grew and proof is not None else ())


def _stated(home: Home, checkpoint: Checkpoint | None) -> Checkpoint:
    return home_checkpoint(home) if checkpoint is None else verify_checkpoint(checkpoint, home.key(home.config.broker))


def _tree(
    home: Home, stated: Checkpoint, *, keep: frozenset[int] = frozenset()
) -> tuple[MerkleTree, list[bytes], dict[int, bytes]]:
    """Make the tree over the entries that a checkpoint states; and give some entries, without their signatures.

    Raises:
        VerificationError: Entries are missing, or others than those that are stated.
    """
    digests: list[bytes] = []
    kept: dict[int, bytes] = {}
    last, key = NO_ENTRY, home.key(home.config.broker)
    for entry in walk_entries(home.audit_path):
        if len(digests) == stated.size:
            break
        if entry.number != len(digests):
            raise VerificationError(f"entry {len(digests)} is missing from the audit", code="AUDIT_GAP")
        # SECURITY: that a checkpoint states an entry does not say that the broker wrote it.
        if not entry.check(key):
            what = f"entry {entry.number} is not signed by this domain's broker"
            raise VerificationError(what, code="AUDIT_SIGNATURE")
        if entry.previous != last:
            what = f"entry {entry.number} does not continue the entry before it"
            raise VerificationError(what, code="AUDIT_CHAIN")
        last = entry.digest
        digests.append(bytes.fromhex(last))
        if entry.number in keep:
            kept[entry.number] = entry.line[: entry.line.rindex(b',"sig":"')] + b"}"
    tree = MerkleTree(map(leaf_hash, digests))
    if len(digests) < stated.size:
        what = f"the checkpoint states {stated.size} entries, and there are {len(digests)}"
        raise VerificationError(what, code="AUDIT_TRUNCATED")
    # SECURITY: a proof of what was not signed would look like a proof until somebody checks it.
    if tree.root() != stated.root:
        raise VerificationError("the entries are not those that the checkpoint states", code="AUDIT_FORKED")
    return tree, digests, kept


def _lies(place: DirectoryStore, name: str, *, limit: int) -> bytes | None:
    """Give what lies under a name in a folder; nothing when that is no file, or a link."""
    try:
        return place.get(name, limit=limit)
    except (NotFoundError, EncodingError):
        return None
