"""Checking an audit: that its chain is whole, signed, and reaches what the home remembers.

Found is: an entry that was changed, removed, put elsewhere or added without the broker's key; a journal that ends
before the remembered head; a former audit's file that was changed, removed or added since the journal began; files that
others may read.

What whoever has both the home and the broker's key does, writing the whole journal and the head anew, and a home that
was put back as a whole to an earlier day, are found by a checkpoint that somebody else kept, and not without one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from maia.errors import EncodingError, UnavailableError
from maia.log.audit.entries import NO_ENTRY, AuditEntry, Open, parse_entry, track
from maia.log.audit.files import JOURNAL, Head, earlier_digest, earlier_files, journal_files, read_head
from maia.log.audit.notes import Checkpoint, verify_checkpoint
from maia.log.audit.processes import is_gone
from maia.log.audit.reading import MAX_LOST, walk_lines
from maia.log.audit.rows import UNFINISHED
from maia.log.audit.tree import EMPTY_ROOT, Frontier, leaf_hash, missing_leaf
from maia.log.numbered import named_errors
from maia.principals import PublicKey

_OTHERS = 0o077
_MAX_BREAKS = 100


@dataclass(frozen=True, slots=True)
class Break:
    """Something that is wrong with an audit: a code, where, and what it means."""

    code: str
    where: str
    what: str


@dataclass(slots=True)
class CheckedAudit:
    """What was found.

    Attributes:
        entries: How many entries are in the chain.
        files: How many files they are in.
        begun: From when the first is.
        head: The number and the digest of the newest.
        earlier: How many files of a former audit there are.
        breaks: What is wrong, the first hundred.
        unfinished: Intents without a result whose process is gone, and those that were told so.
        running: Intents without a result yet.
        edge: The right edge of the tree over the entries.
    """

    entries: int = 0
    files: int = 0
    begun: datetime | None = None
    head: tuple[int, str] = (-1, NO_ENTRY)
    earlier: int = 0
    breaks: list[Break] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    edge: Frontier = field(default_factory=Frontier)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.breaks

    def wrong(self, code: str, where: str, what: str) -> None:
        """Take in that something is wrong."""
        if len(self.breaks) < _MAX_BREAKS:
            self.breaks.append(Break(code, where, what))


def check_audit(
    folder: Path, head: Path, key: PublicKey, *, at: datetime, checkpoints: Sequence[Checkpoint] = ()
) -> CheckedAudit:
    """Check the audit of a home; nothing is written.

    Args:
        folder: The audit's folder.
        head: Where the home remembers its head.
        key: The broker's key.
        at: Now.
        checkpoints: What the broker stated of the audit before, as somebody kept it.

    Raises:
        SignatureError: The broker did not sign a checkpoint: ``CHECKPOINT_SIGNATURE``.
        UnavailableError: The system refused.
    """
    found = CheckedAudit()
    given = [verify_checkpoint(one, key) for one in checkpoints]
    with named_errors(folder):
        sizes, remembered = _snapshot(folder, head, key)
        found.files = len(sizes)
        earlier: tuple[int, str] | None = None
        seen: dict[int, str] = {}
        waiting: dict[int, Open] = {}
        stated = None if remembered is None else remembered.checkpoint
        roots: dict[int, bytes | None] = {one.size: None for one in (*given, *([] if stated is None else [stated]))}
        for path, line in _lines(sizes):
            entry = _entry(found, path, line, key)
            if entry is None:
                continue
            _follows(found, entry, path)
            track(waiting, entry)
            _past(found, entry)
            _grow(found, entry, roots)
            if entry.draft.earlier is not None and earlier is None:
                earlier = entry.draft.earlier
            if remembered is not None and entry.number == remembered.number:
                seen[entry.number] = entry.digest
        _reaches(found, head, remembered, seen)
        # Where entries are missing or changed, so is the tree over them: that is said already.
        known = found.sound and stated is not None and stated.size <= found.edge.size
        if stated is not None and known and roots[stated.size] != stated.root:
            found.wrong(
                "AUDIT_CHECKPOINT", head.name, "the entries are not those that the remembered checkpoint states"
            )
        for one in given:
            _states(found, one, roots)
        _earlier(found, folder, earlier)
        _modes(found, folder, head)
        for number, item in waiting.items():
            (found.unfinished if is_gone(item.process, age=at - item.row.at) else found.running).append(number)
    return found


def _snapshot(folder: Path, head: Path, key: PublicKey) -> tuple[list[tuple[Path, int]], Head | None]:
    """Take the files, their sizes and the head as they are between two entries."""
    lock = folder / JOURNAL / ".lock"
    descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC) if lock.exists() else None
    try:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        return [(path, path.stat().st_size) for path in journal_files(folder)], read_head(head, key)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lines(sizes: list[tuple[Path, int]]) -> Iterator[tuple[Path, bytes]]:
    for path, size in sizes:
        for line in walk_lines(path, size):
            yield path, line


def _entry(found: CheckedAudit, path: Path, line: bytes, key: PublicKey) -> AuditEntry | None:
    after = found.head[0]
    if not line.endswith(b"\n"):
        found.wrong("AUDIT_TORN", path.name, f"a piece of a line stands behind entry {after}; the next entry mends it")
        return None
    try:
        entry = parse_entry(line[:-1])
    except (EncodingError, UnavailableError) as error:
        found.wrong(error.code, path.name, f"what stands behind entry {after} is no entry that this Maia knows")
        return None
    if not entry.check(key):
        found.wrong("AUDIT_SIGNATURE", path.name, f"entry {entry.number} is not signed by this domain's broker")
    return entry


def _follows(found: CheckedAudit, entry: AuditEntry, path: Path) -> None:
    """Compare an entry with the one before it."""
    number, digest = found.head
    if entry.number > number + 1:
        found.wrong("AUDIT_GAP", path.name, f"entries {number + 1} to {entry.number - 1} are missing")
    elif entry.number <= number:
        found.wrong("AUDIT_ORDER", path.name, f"entry {entry.number} stands behind entry {number}")
    elif entry.previous != digest:
        found.wrong("AUDIT_CHAIN", path.name, f"entry {entry.number} does not continue the entry before it")
    found.entries += 1
    found.head = (entry.number, entry.digest)
    if found.begun is None:
        found.begun = entry.draft.at


def _grow(found: CheckedAudit, entry: AuditEntry, roots: dict[int, bytes | None]) -> None:
    """Put an entry into the tree, and look at the root where a checkpoint states one."""
    lost = range(found.edge.size, entry.number)
    if entry.number < found.edge.size or len(lost) > MAX_LOST:
        return
    for leaf in (*map(missing_leaf, lost), leaf_hash(bytes.fromhex(entry.digest))):
        found.edge = found.edge.extend([leaf])
        if found.edge.size in roots:
            roots[found.edge.size] = found.edge.root()


def _states(found: CheckedAudit, checkpoint: Checkpoint, roots: dict[int, bytes | None]) -> None:
    """Compare the journal with a checkpoint that somebody kept."""
    # SECURITY: it is signed, so whichever of the two is not as the other, the broker stated what is not there.
    if checkpoint.size > found.edge.size:
        what = f"a checkpoint states {checkpoint.size} entries, and there are {found.edge.size}"
        found.wrong("AUDIT_TRUNCATED", "checkpoint", what)
    elif (roots[checkpoint.size] if checkpoint.size else EMPTY_ROOT) != checkpoint.root:
        what = f"the first {checkpoint.size} entries are not those that a checkpoint states"
        found.wrong("AUDIT_FORKED", "checkpoint", what)


def _past(found: CheckedAudit, entry: AuditEntry) -> None:
    """Take in what the journal says about itself: a line that was torn is harmless, a loss is not."""
    for row in entry.draft.rows:
        if row.kind == "alarm" and row.subject == "audit" and row.code != "AUDIT_TORN":
            found.wrong(row.code, f"entry {entry.number}", f"found {row.at:%Y-%m-%d %H:%M:%S}: {row.source}")
        if row.kind == "result" and row.code == UNFINISHED and entry.draft.operation is not None:
            found.unfinished.append(entry.draft.operation)


def _reaches(found: CheckedAudit, path: Path, remembered: Head | None, seen: dict[int, str]) -> None:
    """Compare the journal with the head that the home remembers."""
    if remembered is None:
        if found.entries:
            found.wrong("AUDIT_HEAD_LOST", path.name, "the home remembers no head that its broker signed")
    elif remembered.number > found.head[0]:
        lost = f"entries {found.head[0] + 1} to {remembered.number} are missing from the end"
        found.wrong("AUDIT_TRUNCATED", path.name, lost)
    elif remembered.number >= 0 and seen.get(remembered.number) != remembered.digest:
        found.wrong("AUDIT_FORKED", path.name, f"entry {remembered.number} is not the one that the home remembers")


def _earlier(found: CheckedAudit, folder: Path, earlier: tuple[int, str] | None) -> None:
    count, digest = earlier_digest(folder)
    found.earlier = count
    if earlier is not None and earlier != (count, digest):
        what = f"{earlier[0]} files of a former audit were there when the journal began, and they are not as they were"
        found.wrong("AUDIT_EARLIER", folder.name, what)


def _modes(found: CheckedAudit, folder: Path, head: Path) -> None:
    """Look whether others may read the audit."""
    states = ((folder / "evidence"), *(folder / "evidence").glob("*"))
    every = (folder, *journal_files(folder), *earlier_files(folder), *states, head)
    open_ = [path for path in every if path.exists()]
    for path in open_:
        if path.stat().st_mode & _OTHERS:
            found.wrong("AUDIT_MODE", path.name, "others than the owner may read or write it: `chmod go=`")
