"""The series file: what a signer of this home ever stated in lists, kept beside whatever database makes them.

    series/<key id>   (series (version "1") (signer <key id>) (<kind> (taken "<n>") (told "<n>")
                               (revoked (<certificate id> <until>?) …) (lists <signed list> …)) …)

Rules kept here:

- a number is taken once, under one lock, whoever asks: it is on disk before the list that bears it exists anywhere;
- what was revoked stays in the file until the certificate has ended; a list that can still serve stays as well, so that
  it can be said again;
- the file never goes back: numbers only rise, and a file that is damaged in any place is refused whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from maia.authority import (
    ListStatement,
    Series,
    Statement,
    issue_statement,
    parse_statement,
    serving_lists,
    verify_statement,
)
from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError, VerificationError
from maia.home.files import PRIVATE_FILE, PRIVATE_FOLDER, list_files, locked, make_folder, read_file, write_file
from maia.principals import CertificateId, KeyId, PublicKey, Signer, TestKind, encode_instant, parse_instant

SERIES_FOLDER = "series"
_SUFFIX = ".series"
_LIMITS = SexpLimits(max_bytes=256 << 20, max_depth=5, max_atom=16 << 20)
_VERSION: Sexp = (b"version", b"1")
_KINDS = {kind.value.encode(): kind for kind in (TestKind.CRL, TestKind.REVALIDATION)}
_HASH = 32
_MAX_DIGITS = 18

Revoked = Mapping[CertificateId, datetime | None]
"""Certificates with the ends of their periods; ``None`` when there is none, or nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRecord:
    """What a signer ever stated in lists of one kind.

    Attributes:
        taken: The highest number that was ever taken.
        told: The highest number that the log has heard of.
        revoked: What was revoked by hand and has not ended.
        lists: The signed lists that can still serve.
    """

    taken: int = 0
    told: int = 0
    revoked: Revoked = field(default_factory=dict)
    lists: tuple[Statement, ...] = ()

    def series(self, kind: TestKind, signer: PublicKey, *, at: datetime) -> Series:
        """Sum it up, to go on from there; what has ended by itself need not be carried on by timed lists."""
        found = Series.of(_bodies(self.lists), kind=kind, signer=signer, taken=self.taken, revoked=self.revoked)
        ended = frozenset(identity for identity, ends in self.revoked.items() if ends is not None and ends < at)
        return replace(found, certificates=found.certificates - ended)

    @property
    def ends(self) -> datetime | None:
        """When the last timed list ends."""
        return max((body.ends for body in _bodies(self.lists) if body.ends is not None), default=None)


class SeriesFile:
    """The record of one signer."""

    def __init__(self, folder: Path, signer: KeyId) -> None:
        """Use the record of a signer in a home or folder; it need not exist: then nothing was stated here."""
        self.signer = signer
        self.path = folder / SERIES_FOLDER / f"{signer.hex()}{_SUFFIX}"

    def load(self) -> dict[TestKind, ListRecord]:
        """Read the record.

        Raises:
            EncodingError: The file is damaged.
            VerificationError: A list in it does not verify.
        """
        try:
            data = read_file(self.path, limit=_LIMITS.max_bytes)
        except NotFoundError:
            return {}
        return _parse(data, self.signer)

    def record(self, kind: TestKind) -> ListRecord:
        """Read what was stated of one kind."""
        return self.load().get(kind, ListRecord())

    def take(self, kind: TestKind, *, above: int) -> int:
        """Take the next number for a list that is made elsewhere; it is durable when this returns."""
        with self._changing(kind) as records:
            record = records[kind]
            number = max(record.taken, above) + 1
            records[kind] = replace(record, taken=number)
        return number

    def make(
        self,
        signer: Signer,
        kind: TestKind,
        *,
        at: datetime,
        revoke: Revoked | None = None,
        good: frozenset[CertificateId] = frozenset(),
        interval: tuple[datetime, datetime] | None = None,
        sequence: int | None = None,
    ) -> Statement:
        """Sign the next list of the series; it is in the record, durable, before anybody sees it.

        Args:
            signer: Who signs.
            kind: Which list.
            at: Now.
            revoke: What is revoked from now on, besides what was.
            good: What a revalidation names.
            interval: When it is in force; ``None`` for a plain CRL.
            sequence: Its number, when it has to jump.

        Raises:
            UsageError: The number was taken before: ``LIST_NUMBER``.
            VerificationError: It would overlap a list that is signed already: ``STATEMENT_OVERLAP``.
        """
        with self._changing(kind) as records:
            record = records[kind]
            known = replace(record, revoked={**record.revoked, **(revoke or {})})
            series = known.series(kind, signer.public_key, at=at)
            if interval is not None and series.interval is not None and interval[0] < series.interval[1]:
                raise VerificationError("the list overlaps one that is signed already", code="STATEMENT_OVERLAP")
            statement = issue_statement(series.next(good, interval=interval, sequence=sequence, at=at), signer)
            body = statement.body
            assert isinstance(body, ListStatement)  # noqa: S101 - just made
            records[kind] = _tidy(replace(known, taken=body.sequence, lists=(*known.lists, statement)), at=at)
        return statement

    def note(self, statements: Iterable[Statement], *, told: bool = False) -> None:
        """Keep lists that were made elsewhere under this key, and what the log has heard of."""
        for statement in statements:
            body = statement.body
            assert isinstance(body, ListStatement)  # noqa: S101 - answers belong to no series
            known = self.record(body.kind)
            heard = max(known.told, body.sequence) if told else known.told
            if statement in known.lists and known.taken >= body.sequence and known.told == heard:
                continue
            with self._changing(body.kind) as records:
                record = records[body.kind]
                lists = record.lists if statement in record.lists else (*record.lists, statement)
                records[body.kind] = replace(
                    record, taken=max(record.taken, body.sequence), told=max(record.told, heard),
                    lists=serving_lists(lists),
                )  # fmt: skip

    @contextmanager
    def _changing(self, kind: TestKind) -> Iterator[dict[TestKind, ListRecord]]:
        make_folder(self.path.parent, mode=PRIVATE_FOLDER)
        with locked(self.path):
            records = self.load()
            before = records.setdefault(kind, ListRecord())
            yield records
            # INVARIANT: a number that was taken is never given again
            assert records[kind].taken >= before.taken  # noqa: S101
            write_file(self.path, _encode(self.signer, records), mode=PRIVATE_FILE)


def signers_of_lists(folder: Path) -> tuple[KeyId, ...]:
    """List the keys of which a folder keeps a record."""
    found = list_files(folder / SERIES_FOLDER, suffix=_SUFFIX)
    return tuple(KeyId(bytes.fromhex(path.stem)) for path in found if len(path.stem) == 2 * _HASH)


def _tidy(record: ListRecord, *, at: datetime) -> ListRecord:
    """Leave out lists that can serve nobody any more, and what has ended unless one of the others names it."""
    lists = serving_lists(record.lists, at=at)
    named = frozenset[CertificateId]().union(*(body.certificates for body in _bodies(lists)))
    revoked = {
        identity: ends for identity, ends in record.revoked.items() if ends is None or ends >= at or identity in named
    }
    return replace(record, lists=lists, revoked=revoked)


def _bodies(lists: Iterable[Statement]) -> list[ListStatement]:
    return [item.body for item in lists if isinstance(item.body, ListStatement)]


def _encode(signer: KeyId, records: Mapping[TestKind, ListRecord]) -> bytes:
    kinds: list[Sexp] = []
    for word, kind in _KINDS.items():
        record = records.get(kind)
        if record is not None:
            revoked: list[Sexp] = [
                (identity,) if ends is None else (identity, encode_instant(ends.replace(microsecond=0)))
                for identity, ends in sorted(record.revoked.items())
            ]
            kinds.append((
                word, (b"taken", b"%d" % record.taken), (b"told", b"%d" % record.told), (b"revoked", *revoked),
                (b"lists", *(item.raw for item in record.lists)),
            ))  # fmt: skip
    return encode((b"series", _VERSION, (b"signer", signer), *kinds))


def _parse(data: bytes, signer: KeyId) -> dict[TestKind, ListRecord]:
    match parse_canonical(data, limits=_LIMITS):
        case (b"series", version, (b"signer", bytes() as named), *kinds):
            if version != _VERSION:
                raise EncodingError("a series file of an unknown version", code="SERIES_FILE_VERSION")
            if named != signer:
                raise _damaged()
        case _:
            raise _damaged()
    found: dict[TestKind, ListRecord] = {}
    for item in kinds:
        match item:
            case (
                bytes() as word,
                (b"taken", bytes() as taken),
                (b"told", bytes() as told),
                (b"revoked", *revoked),
                (b"lists", *lists),
            ) if word in _KINDS and _KINDS[word] not in found:
                found[_KINDS[word]] = ListRecord(
                    taken=_number(taken), told=_number(told), revoked=dict(map(_revoked, revoked)),
                    lists=tuple(_list(raw, signer, _KINDS[word]) for raw in lists),
                )  # fmt: skip
            case _:
                raise _damaged()
    return found


def _list(raw: Sexp, signer: KeyId, kind: TestKind) -> Statement:
    if not isinstance(raw, bytes):
        raise _damaged()
    statement = verify_statement(parse_statement(raw))
    if statement.signer_id != signer or not isinstance(statement.body, ListStatement) or statement.body.kind != kind:
        raise _damaged()
    return statement


def _revoked(item: Sexp) -> tuple[CertificateId, datetime | None]:
    match item:
        case (bytes() as identity,) if len(identity) == _HASH:
            return CertificateId(identity), None
        case (bytes() as identity, ends) if len(identity) == _HASH:
            return CertificateId(identity), parse_instant(ends)
        case _:
            raise _damaged()


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _MAX_DIGITS:
        raise _damaged()
    return int(text)


def _damaged() -> EncodingError:
    return EncodingError("not a series file of this signer", code="SERIES_FILE_SHAPE")
