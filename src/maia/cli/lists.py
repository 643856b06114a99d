"""The lists of one signer: what they hold, and the next one.

Rules kept here: the next sequence number is above every known one; a signer that ever issued timed lists goes on with
timed lists, each starting where the last one ends, because lists never overlap and are never superseded early.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from maia.authority import ListStatement, StatementBook, parse_statement
from maia.errors import UsageError
from maia.home import Folder
from maia.principals import CertificateId, KeyId, PublicKey, TestKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The lists of one signer and kind, oldest first."""

    lists: tuple[ListStatement, ...]

    @property
    def next_sequence(self) -> int:
        """One above every known sequence number."""
        return max((item.sequence for item in self.lists), default=0) + 1

    @property
    def last_timed(self) -> ListStatement | None:
        """The timed list with the latest interval."""
        timed = [item for item in self.lists if item.timed]
        return max(timed, key=lambda item: (item.starts is not None, item.starts), default=None)

    @property
    def newest(self) -> ListStatement | None:
        """The list that the next one continues."""
        return self.last_timed or max(self.lists, key=lambda item: item.sequence, default=None)


def track_of(book: StatementBook, signer: KeyId, kind: TestKind) -> Track:
    """Find the accepted lists of a signer."""
    found = []
    for raw in book.raw_statements():
        body = parse_statement(raw).body
        if isinstance(body, ListStatement) and body.signer.key_id == signer and body.kind is kind:
            found.append(body)
    return Track(lists=tuple(found))


def next_list(
    track: Track,
    *,
    kind: TestKind,
    signer: PublicKey,
    certificates: frozenset[CertificateId],
    at: datetime,
    starts: datetime | None = None,
    ends: datetime | None = None,
    sequence: int | None = None,
) -> ListStatement:
    """Build the list that follows: after the last timed one, or plain where there never was one.

    Raises:
        UsageError: A timed list needs an end, and none is given or known.
    """
    last = track.last_timed
    if starts is None and (ends is not None or last is not None or kind is TestKind.REVALIDATION):
        starts = max(at, last.ends) if last is not None and last.ends is not None else at
    if starts is not None and ends is None:
        length = _length(last)
        if length is None:
            raise UsageError("a timed list needs an end; give --until", code="LIST_END")
        ends = starts + length
    return ListStatement(
        kind=kind, signer=signer, sequence=track.next_sequence if sequence is None else sequence,
        certificates=certificates, starts=starts, ends=ends,
    )  # fmt: skip


def _length(last: ListStatement | None) -> timedelta | None:
    if last is None or last.starts is None or last.ends is None:
        return None
    return last.ends - last.starts


def certificate_ids(texts: list[str] | None, home: Folder) -> frozenset[CertificateId]:
    """Find certificates by file, beginning of the id, or whole id, known here or not."""
    found: set[CertificateId] = set()
    for text in texts or ():
        if len(text) == 64:
            try:
                found.add(CertificateId(bytes.fromhex(text)))
                continue
            except ValueError:
                pass
        found.add(home.certificate(text).certificate_id)
    return frozenset(found)
