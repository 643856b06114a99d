"""The journal of an audit: what was intended before it was done, and what became of it, in a chain that is signed.

Rules kept here:

- an entry is whole and synced when `Audit` returns; what cannot be written raises ``AUDIT_UNAVAILABLE``, and whatever
  was to be audited does not happen;
- entries are numbered and chained under a lock, whichever process or task writes them; a number is never used twice;
- a line that a crash tore is put aside, said in an entry of its own, and the journal goes on. So is a journal that is
  behind the remembered head: its loss stays visible, since the chain goes on from the head;
- an intent without a result whose process is gone gets one that says ``UNFINISHED`` as soon as another one begins;
- folders are 0700 and files 0600, also those of a former audit;
- with each batch of entries a checkpoint is signed over all of them, and remembered with the head: see `notes`. Where
  the tree has to be made again, every entry must be signed and continue the one before it; otherwise no checkpoint is
  signed, an alarm says which entry is wrong, and checkpoints go on when it is right again.

Whoever holds the home and the broker's key can write all of it anew: that is what checkpoints elsewhere are for.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from maia.errors import EncodingError, UnavailableError
from maia.log.audit.entries import (
    NO_ENTRY,
    AuditEntry,
    Draft,
    Open,
    make_entry,
    parse_entry,
    sign_end_of,
    track,
    without_result,
)
from maia.log.audit.files import (
    JOURNAL,
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Head,
    earlier_digest,
    earlier_files,
    journal_files,
    open_private,
    read_head,
    write_all,
    write_head,
)
from maia.log.audit.notes import sign_checkpoint
from maia.log.audit.processes import is_gone, process_name
from maia.log.audit.reading import proven_edge, walk_entries
from maia.log.audit.rows import AuditRow
from maia.log.audit.tree import Frontier, leaf_hash
from maia.log.numbered import named_errors, sync_folder
from maia.principals import Signer

_MAX_FILE = 4 << 20
_MAX_ROWS = 200
_MAX_WAITING = 256
_LOCK = ".lock"
_log = logging.getLogger(__name__)
_Wrong = tuple[str, str, int]
"""What is wrong with a journal: a code, where, and how much."""


@dataclass(slots=True, kw_only=True)
class _Tail:
    """Where a journal ends, the intents that have no result there, and what was found to be wrong with it."""

    number: int
    digest: str
    path: Path | None
    waiting: dict[int, Open]
    edge: Frontier | None
    wrong: Sequence[_Wrong] = ()


class Audit:
    """The audit of a home, for whoever acts there."""

    def __init__(self, folder: Path, head: Path, signer: Signer) -> None:
        """Write to a folder, made on the first entry; remember its head beside it; sign as the domain's broker."""
        self._folder = folder
        self._journal = folder / JOURNAL
        self._head = head
        self._signer = signer

    def note(self, rows: Iterable[AuditRow]) -> None:
        """Keep rows that belong to no operation."""
        found = tuple(rows)
        if found:
            self._append([Draft(kind="note", at=part[0].at, rows=part) for part in _shares(found)], at=found[0].at)

    def begin(self, intent: AuditRow, *, parts: int = 1, process: str | None = None) -> int:
        """Keep what is going to be done, before it is; return its number, by which its result is told.

        Args:
            intent: Who wants what.
            parts: How many parts will tell a result.
            process: The process without which it cannot go on; this one by default.
        """
        known = process_name() if process is None else process
        draft = Draft(kind="intent", at=intent.at, rows=(intent,), parts=parts, process=known)
        return self._append([draft], at=intent.at, settle=True)

    def tell(self, operation: int, rows: Sequence[AuditRow]) -> None:
        """Keep rows of an operation that goes on."""
        if rows:
            self._append(_details(operation, rows), at=rows[0].at)

    def waiting(self) -> dict[int, AuditRow]:
        """Give the intents that have no result, by number."""
        head = read_head(self._head, self._signer.public_key)
        return {} if head is None else {number: item.row for number, item in head.waiting.items()}

    def open_parts(self) -> dict[tuple[int, int], AuditRow]:
        """Give what is known of the intents that have no result, by number and by each part that told none yet."""
        head = read_head(self._head, self._signer.public_key)
        waiting = {} if head is None else head.waiting
        return {
            (number, part): item.row
            for number, item in waiting.items()
            for part in range(item.left.bit_length())
            if item.left >> part & 1
        }

    def end(self, operation: int, result: AuditRow, *, rows: Sequence[AuditRow] = (), part: int | None = None) -> None:
        """Keep what became of an operation, or of one part of it."""
        *before, last = _details(operation, (*rows, result))
        self._append([*before, replace(last, kind="result", part=part, at=result.at)], at=result.at)

    def settle(self, *, at: datetime) -> None:
        """Say of intents whose process is gone that they are unfinished."""
        self._append([], at=at, settle=True)

    # -- under the lock

    def _append(self, drafts: Sequence[Draft], *, at: datetime, settle: bool = False) -> int:
        """Number, chain, sign and sync entries; return the number of the last."""
        try:
            with named_errors(self._journal), self._turn():
                tail = self._tail()
                todo = [self._first(at)] if tail.number < 0 else []
                todo += [Draft(kind="note", at=at, rows=(self._alarm(item, at),)) for item in tail.wrong]
                todo += _unfinished(tail.waiting, at) if settle else []
                todo += drafts
                return self._write(tail, todo) if todo else tail.number
        except (UnavailableError, FileNotFoundError) as error:
            # SECURITY: nothing is shown, sent or decided that the audit cannot hold; a full disk stops readers too.
            if isinstance(error, UnavailableError) and error.code == "FORMAT_NEWER":
                raise
            reason = error.message if isinstance(error, UnavailableError) else "it is being removed"
            raise UnavailableError(
                f"the audit cannot be written, so nothing is done: {reason}", code="AUDIT_UNAVAILABLE"
            ) from error

    @contextmanager
    def _turn(self) -> Iterator[None]:
        for folder in (self._folder, self._journal):
            folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            if folder.stat().st_mode & 0o777 != PRIVATE_FOLDER:
                folder.chmod(PRIVATE_FOLDER)
        descriptor = open_private(self._journal / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, tail: _Tail, todo: Sequence[Draft]) -> int:
        data, entry, leaves = bytearray(), None, list[bytes]()
        number, digest, path = tail.number, tail.digest, tail.path
        for draft in todo:
            number += 1
            entry = make_entry(draft, number, digest, self._signer)
            digest = entry.digest
            leaves.append(leaf_hash(bytes.fromhex(digest)))
            data += entry.line + b"\n"
            track(tail.waiting, entry)
        before = 0 if path is None else path.stat().st_size
        if path is None or before >= _MAX_FILE:
            path, before = self._journal / f"{tail.number + 1:012d}.jsonl", 0
        descriptor = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            write_all(descriptor, bytes(data))
            os.fsync(descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, before)  # else the next one mends it
            raise
        finally:
            os.close(descriptor)
        if not before:
            sync_folder(self._journal)
        if entry is not None:
            size, edge = before + len(data), None if tail.edge is None else tail.edge.extend(leaves)
            stated = None if edge is None else sign_checkpoint(edge.size, edge.root(), self._signer)
            write_head(
                self._head,
                Head(
                    number=number, digest=digest, signature=sign_end_of(number, digest, self._signer), file=path.name,
                    size=size, waiting=tail.waiting, checkpoint=stated, edge=edge,
                ),
            )  # fmt: skip
        return number

    def _tail(self) -> _Tail:
        """Find where the journal ends: where it was left, or else by reading it and mending what a crash left."""
        key = self._signer.public_key
        head, files = read_head(self._head, key), journal_files(self._folder)
        if head is not None and files and files[-1].name == head.file and files[-1].stat().st_size == head.size:
            edge, bad = head.edge, list[_Wrong]()
            if edge is None:
                edge, bad = proven_edge(walk_entries(self._folder), key, last=(head.number, head.digest))
            return _Tail(
                number=head.number, digest=head.digest, path=files[-1], waiting=head.waiting, edge=edge, wrong=bad
            )
        wrong: list[_Wrong] = []
        entries: list[AuditEntry] = []
        since = -1 if head is None else head.number
        while files and not entries:
            entries = self._mend(files[-1], wrong, since=since)
            if not entries:
                files.pop().unlink()
        number, digest = (entries[-1].number, entries[-1].digest) if entries else (-1, NO_ENTRY)
        if head is None and entries:
            wrong.append(("AUDIT_HEAD_LOST", "audit-head", 1))
        elif head is not None and since > number:
            # INVARIANT: numbers are not used again, and the chain goes on from what is remembered: the loss shows.
            wrong.append(("AUDIT_TRUNCATED", f"entries {number + 1} to {since}", since - number))
            number, digest = since, head.digest
        elif head is not None and since >= 0 and head.digest not in self._digests(since):
            wrong.append(("AUDIT_FORKED", f"entry {since}", 1))
        waiting = {} if head is None else dict(head.waiting)
        for entry in entries:
            if entry.number > since:
                track(waiting, entry)
        told, last = [item[:2] for item in wrong], (number, digest)
        if head is None or head.edge is None:
            edge, bad = proven_edge(walk_entries(self._folder), key, last=last, told=told)
        else:
            since_then = [entry for entry in entries if entry.number > since]
            edge, bad = proven_edge(since_then, key, last=last, edge=head.edge, after=head.digest, told=told)
        path = files[-1] if files else None
        return _Tail(number=number, digest=digest, path=path, waiting=waiting, edge=edge, wrong=[*wrong, *bad])

    def _mend(self, path: Path, wrong: list[_Wrong], *, since: int) -> list[AuditEntry]:
        """Read the entries of a file; what stands behind the last one is put aside.

        SECURITY: behind what the home remembers only that is an entry which the broker signed, or the chain would go on
        from what somebody else wrote there.
        """
        data = path.read_bytes()
        entries: list[AuditEntry] = []
        good = start = 0
        newer: UnavailableError | None = None
        forged: list[_Wrong] = []
        while (end := data.find(b"\n", start)) >= 0:
            try:
                entry = parse_entry(data[start:end])
                if entry.number <= since or entry.check(self._signer.public_key):
                    entries.append(entry)
                    good, newer, forged = end + 1, None, []
                else:
                    forged.append(("AUDIT_SIGNATURE", f"entry {entry.number}", 1))
            except EncodingError:
                pass  # a line that is no entry is what `check_audit` finds
            except UnavailableError as error:
                newer = error
            start = end + 1
        if newer is not None:
            raise newer
        if good < len(data):
            aside = self._journal / f"torn-{path.stem}-{secrets.token_hex(6)}"
            for place, rest in ((aside, data[good:]), (path, b"")):
                descriptor = open_private(place, os.O_WRONLY | os.O_CREAT)
                try:
                    write_all(descriptor, rest)
                    os.ftruncate(descriptor, len(rest) or good)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            sync_folder(self._journal)
            wrong += [("AUDIT_TORN", aside.name, len(data) - good), *forged]
        return entries

    def _digests(self, number: int) -> set[str]:
        """Give the digest of the entry of a number."""
        found: set[str] = set()
        for path in [item for item in journal_files(self._folder) if int(item.stem) <= number][-1:]:
            for line in path.read_bytes().splitlines():
                with suppress(EncodingError, UnavailableError):
                    entry = parse_entry(line)
                    if entry.number == number:
                        found.add(entry.digest)
        return found

    def _first(self, at: datetime) -> Draft:
        """Begin: name the files of a former audit by one digest, close them to others, and remember that it began."""
        signature = sign_end_of(-1, NO_ENTRY, self._signer)
        write_head(self._head, Head(number=-1, digest=NO_ENTRY, signature=signature))
        for path in earlier_files(self._folder):
            path.chmod(PRIVATE_FILE)
            path.parent.chmod(PRIVATE_FOLDER)
        return Draft(kind="begin", at=at, earlier=earlier_digest(self._folder))

    def _alarm(self, wrong: _Wrong, at: datetime) -> AuditRow:
        code, source, events = wrong
        _log.warning("warning: [%s] the audit is not as it was left: %s", code, source)
        return AuditRow(
            at=at, kind="alarm", principal=self._signer.public_key.fingerprint, type_id="", source=source,
            subject="audit", code=code, events=events,
        )  # fmt: skip


def _shares(rows: Sequence[AuditRow]) -> Iterator[tuple[AuditRow, ...]]:
    """Split rows, so that no entry becomes large."""
    for start in range(0, len(rows), _MAX_ROWS):
        yield tuple(rows[start : start + _MAX_ROWS])


def _details(operation: int, rows: Sequence[AuditRow]) -> list[Draft]:
    return [Draft(kind="rows", at=part[0].at, rows=part, operation=operation) for part in _shares(rows)]


def _unfinished(waiting: dict[int, Open], at: datetime) -> list[Draft]:
    """Find the intents whose process is gone; of too many that wait, the oldest are not waited for."""
    over = len(waiting) - _MAX_WAITING
    return [
        Draft(kind="result", at=at, rows=(without_result(item.row, at=at),), operation=number)
        for place, (number, item) in enumerate(waiting.items())
        if place < over or is_gone(item.process, age=at - item.row.at)
    ]
