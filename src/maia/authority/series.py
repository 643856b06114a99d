"""One signer's lists of one kind: which they are, and the one that follows.

Rules kept here:

- one signer has one series of lists a kind, whoever makes them: the next number is above every one that was ever taken,
  over timed and plain lists together;
- what a list revoked, every later one revokes: a CRL carries over all that the series names. A timed one may leave out
  what ended before it begins; a plain one has no time of its own, so it names what ended as well;
- since when a certificate is revoked does not change from list to list: the first one that names it says so, and those
  that follow repeat it;
- timed lists never overlap and are never superseded early, so a successor starts where the last one ends. A revocation
  does not wait for that: it is said at once by a plain list, whose number is above that of every list signed ahead, and
  which says that it only revokes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from maia.authority.book import StatementBook
from maia.authority.statements import ListStatement, Statement, parse_statement, stamp_of
from maia.errors import UsageError
from maia.principals import CertificateId, KeyHash, PublicKey, TestKind

_MAX_TIMED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What is known of the lists of one signer and kind.

    Attributes:
        kind: What the lists say.
        signer: Who signs them.
        sequence: The highest number so far; 0 when there is none.
        interval: When the last timed list is in force.
        certificates: What was revoked so far and has not ended; of revalidations, what the last one names.
        since: From which stamp on each certificate that a known list names is revoked, what ended included.
        timed: Whether the signer is held to timed lists, also where none is known any more.
    """

    kind: TestKind
    signer: PublicKey | KeyHash
    sequence: int = 0
    interval: tuple[datetime, datetime] | None = None
    certificates: frozenset[CertificateId] = frozenset()
    since: Mapping[CertificateId, int] = field(default_factory=dict)
    timed: bool = False

    @classmethod
    def of(
        cls,
        lists: Iterable[ListStatement],
        *,
        kind: TestKind,
        signer: PublicKey | KeyHash,
        taken: int = 0,
        revoked: Iterable[CertificateId] = (),
    ) -> Series:
        """Sum up lists, of which only those of the signer and kind count.

        Args:
            lists: Those that are known.
            kind: Which lists.
            signer: Whose.
            taken: The highest number that was ever taken, also for a list that is not known.
            revoked: What was revoked besides what the lists name.
        """
        own = [item for item in lists if item.signer.key_id == signer.key_id and item.kind is kind]
        timed = [(item.starts, item.ends) for item in own if item.starts is not None and item.ends is not None]
        newest = max(own, key=lambda item: item.sequence, default=None)
        if kind is TestKind.CRL:
            # INVARIANT: the union never shrinks, whichever list is the newest
            certificates = frozenset(revoked).union(*(item.certificates for item in own))
        else:
            certificates = frozenset() if newest is None else newest.certificates
        return cls(
            kind=kind, signer=signer, sequence=max(taken, 0 if newest is None else newest.sequence),
            interval=max(timed, default=None), certificates=certificates, since=first_moments(own),
            timed=any(item.timed or item.only_revokes for item in own),
        )  # fmt: skip

    @classmethod
    def in_book(cls, book: StatementBook, *, kind: TestKind, signer: PublicKey | KeyHash) -> Series:
        """Sum up the lists that a book has accepted."""
        bodies = (parse_statement(raw).body for raw in book.raw_statements())
        return cls.of((item for item in bodies if isinstance(item, ListStatement)), kind=kind, signer=signer)

    def next_start(self, *, at: datetime) -> datetime:
        """Say when the next timed list comes into force: now, or when the last one ends."""
        return at if self.interval is None else max(at, self.interval[1])

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
            starts = self.next_start(at=at)
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
            certificates: What it names besides what a CRL carries over.
            interval: When it is in force; none for a plain list.
            sequence: Its number; the next one by default.
            at: Now: since when what no list named before is revoked. Without it the list says no moments, and a plain
                one revokes whatever was done before as well.

        Raises:
            UsageError: The number was taken before: ``LIST_NUMBER``.

        >>> from maia.principals import KeySigner
        >>> Series(kind=TestKind.CRL, signer=KeySigner(bytes(32)).public_key, sequence=7).next(
        ...     frozenset(), interval=None).sequence
        8
        """
        starts, ends = (None, None) if interval is None else interval
        number = self.sequence + 1 if sequence is None else sequence
        if number <= self.sequence:
            raise UsageError(f"the lists of this signer have reached number {self.sequence}", code="LIST_NUMBER")
        since: tuple[int, ...] = ()
        if self.kind is TestKind.CRL:
            carried = self.certificates if interval is not None else self.certificates | self.since.keys()
            certificates |= carried
            if at is not None:
                since = tuple(self.since.get(identity, stamp_of(at)) for identity in sorted(certificates))
        return ListStatement(
            kind=self.kind, signer=self.signer, sequence=number, certificates=certificates, starts=starts, ends=ends,
            since=since, only_revokes=interval is None and self.timed,
        )  # fmt: skip


def first_moments(lists: Iterable[ListStatement]) -> dict[CertificateId, int]:
    """Tell from which stamp on each certificate is revoked, by the earliest that any of one signer's lists says."""
    found: dict[CertificateId, int] = {}
    for item in lists:
        if item.kind is TestKind.CRL:
            for identity, moment in item.moments().items():
                found[identity] = min(moment, found.get(identity, moment))
    return found


def serving_lists(lists: Iterable[Statement], *, at: datetime | None = None) -> tuple[Statement, ...]:
    """Leave out the lists of one signer and kind that can serve nobody any more.

    Args:
        lists: All of them.
        at: Timed lists that ended by then serve nobody; the last one stays, since its successor starts at its end.
    """
    plain: Statement | None = None
    timed: list[tuple[datetime, datetime, Statement]] = []
    for item in lists:
        body = item.body
        if not isinstance(body, ListStatement):
            continue
        if body.starts is not None and body.ends is not None:
            timed.append((body.starts, body.ends, item))
        elif plain is None or not isinstance(plain.body, ListStatement) or plain.body.sequence < body.sequence:
            plain = item
    timed.sort(key=lambda found: found[0])
    kept = [found[2] for found in timed[:-1] if at is None or found[1] > at] + [found[2] for found in timed[-1:]]
    return (*kept[-_MAX_TIMED:], *(() if plain is None else (plain,)))
