"""One signer's lists of one kind: which they are, and the one that follows.

Rules kept here:

- the next sequence number is above every known one, over timed and plain lists together;
- a signer that ever issued timed lists goes on with timed lists, each starting where the last one ends, because lists
  never overlap and are never superseded early; a plain list may be said beside them, at once;
- since when a certificate is withdrawn does not change from list to list: the first one that names it says so, and
  those that follow repeat it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from maia.authority.book import StatementBook
from maia.authority.statements import ListStatement, parse_statement, stamp_of
from maia.errors import UsageError
from maia.principals import CertificateId, KeyHash, PublicKey, TestKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What is known of the lists of one signer and kind.

    Attributes:
        kind: What the lists say.
        signer: Who signs them.
        sequence: The highest number so far; 0 when there is none.
        interval: When the last timed list is in force.
        certificates: What the list that is continued names.
        since: From which stamp on each certificate that was ever named is withdrawn.
    """

    kind: TestKind
    signer: PublicKey | KeyHash
    sequence: int = 0
    interval: tuple[datetime, datetime] | None = None
    certificates: frozenset[CertificateId] = frozenset()
    since: Mapping[CertificateId, int] = field(default_factory=dict)

    @classmethod
    def of(cls, lists: Iterable[ListStatement], *, kind: TestKind, signer: PublicKey | KeyHash) -> Series:
        """Sum up lists, of which only those of the signer and kind count."""
        own = [item for item in lists if item.signer.key_id == signer.key_id and item.kind is kind]
        timed = [(item.starts, item.ends, item) for item in own if item.starts is not None and item.ends is not None]
        last = max(timed, key=lambda found: found[0], default=None)
        newest = last[2] if last is not None else max(own, key=lambda item: item.sequence, default=None)
        return cls(
            kind=kind, signer=signer, sequence=max((item.sequence for item in own), default=0),
            interval=None if last is None else (last[0], last[1]),
            certificates=frozenset() if newest is None else newest.certificates, since=first_moments(own),
        )  # fmt: skip

    @classmethod
    def in_book(cls, book: StatementBook, *, kind: TestKind, signer: PublicKey | KeyHash) -> Series:
        """Sum up the lists that a book has accepted."""
        bodies = (parse_statement(raw).body for raw in book.raw_statements())
        return cls.of((item for item in bodies if isinstance(item, ListStatement)), kind=kind, signer=signer)

    def next_interval(
        self, *, at: datetime, starts: datetime | None = None, ends: datetime | None = None
    ) -> tuple[datetime, datetime] | None:
        """Say when the next list is in force: after the last timed one, and as long; never, where all are plain.

        Raises:
            UsageError: A timed list needs an end, and none is given or known: ``LIST_END``.
        """
        last = self.interval
        if starts is None:
            if ends is None and last is None and self.kind is not TestKind.REVALIDATION:
                return None
            starts = at if last is None else max(at, last[1])
        if ends is None:
            if last is None:
                raise UsageError("a timed list needs an end; give --until", code="LIST_END")
            ends = starts + (last[1] - last[0])
        return starts, ends

    def next(
        self,
        certificates: frozenset[CertificateId],
        *,
        interval: tuple[datetime, datetime] | None,
        sequence: int | None = None,
        at: datetime | None = None,
    ) -> ListStatement:
        """Make the list that follows; it is not signed yet.

        Args:
            certificates: What it names.
            interval: When it is in force; none for a plain list.
            sequence: Its number; the next one by default.
            at: Now: since when what no list named before is withdrawn. Without it the list says no moments, and a plain
                one withdraws whatever was done before as well.

        >>> from maia.principals import KeySigner
        >>> Series(kind=TestKind.CRL, signer=KeySigner(bytes(32)).public_key, sequence=7).next(
        ...     frozenset(), interval=None).sequence
        8
        """
        starts, ends = (None, None) if interval is None else interval
        number = self.sequence + 1 if sequence is None else sequence
        since: tuple[int, ...] = ()
        if at is not None and self.kind is TestKind.CRL:
            since = tuple(self.since.get(identity, stamp_of(at)) for identity in sorted(certificates))
        return ListStatement(
            kind=self.kind, signer=self.signer, sequence=number, certificates=certificates, starts=starts, ends=ends,
            since=since,
        )  # fmt: skip


def first_moments(lists: Iterable[ListStatement]) -> dict[CertificateId, int]:
    """Tell from which stamp on each certificate is withdrawn, by the earliest that any of one signer's lists says."""
    found: dict[CertificateId, int] = {}
    for item in lists:
        if item.kind is TestKind.CRL:
            for identity, moment in item.moments().items():
                found[identity] = min(moment, found.get(identity, moment))
    return found
