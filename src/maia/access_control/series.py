"""One series of lists: the register beside everything that was ever signed under the domain's key.

Rules kept here:

- a number is taken outside the database, once, so that no restored database gives it again;
- a register that never signed takes over the lists that were made by hand before there was one;
- a register that knows of fewer lists than its home or its log shows was restored from the past: it signs nothing and
  revokes nothing (``REGISTER_BEHIND``) until it has taken over what they say. Only lists that verify under the
  domain's own key count for that, so nobody else can stop it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from maia import database
from maia.access_control.register import Records, Register
from maia.access_control.values import TakenOver
from maia.authority import ListStatement, Statement
from maia.errors import UnavailableError, UsageError
from maia.principals import CertificateId, TestKind

LIST_KINDS = (TestKind.CRL, TestKind.REVALIDATION)


def check_series(register: Register, records: Records, kind: TestKind, *, at: datetime) -> None:
    """Refuse to go on from a register that is older than what is known of its lists.

    Raises:
        UnavailableError: ``REGISTER_BEHIND``.
    """
    known = _newest(register, kind)
    if known is None:
        return
    last = records.lists.last_sequence(kind)
    number = _body(known).sequence
    if last == 0:
        _take_over(register, records, kind, at=at)
    elif number > last or (number == last and records.lists.get(kind, last) != known.raw):
        raise UnavailableError(
            f"the register ends with list {last}, and list {number} of this domain is known; it was restored from an "
            "older copy, and `maia domain repair` takes over what the lists say",
            code="REGISTER_BEHIND",
        )


def take_number(register: Register, records: Records, kind: TestKind, *, wanted: int | None = None) -> int:
    """Take the number of the next list.

    Raises:
        UsageError: The wanted number is not above all others: ``LIST_NUMBER``.
    """
    last = records.lists.last_sequence(kind)
    above = last if wanted is None else wanted - 1
    if above < last:
        raise UsageError(f"the lists of this domain have reached number {last}", code="LIST_NUMBER")
    if register.series is None or register.trying:
        return above + 1
    number = register.series.take(kind, above=above)
    if wanted is not None and number != wanted:
        raise UsageError(f"the lists of this domain have reached number {number - 1}", code="LIST_NUMBER")
    return number


def repair(register: Register, *, at: datetime) -> TakenOver:
    """Take over what the lists say that were ever signed under the domain's key, and go on from there."""
    with register.writing(at) as records:
        register.changes()
        numbers: dict[TestKind, int] = {}
        found: set[CertificateId] = set()
        for kind in LIST_KINDS:
            if _newest(register, kind) is not None:
                found |= _take_over(register, records, kind, at=at)
                numbers[kind] = records.lists.last_sequence(kind)
        records.journal.note("repair", f"{len(found)} revocations taken over", who=None, at=at)
    return TakenOver(number=numbers, certificates=frozenset(found))


def note_revoked(
    records: Records, revoked: Mapping[CertificateId, datetime | None], *, at: datetime
) -> set[CertificateId]:
    """Note certificates as revoked, whether the register issued them or not; give those that it did not have so."""
    known = records.certificates.withdrawals(revoked)
    records.certificates.add(
        database.CertificateRecord(certificate_id=identity, raw=b"", issued=at, until=ends, withdrawn=at)
        for identity, ends in revoked.items()
        if identity not in known
    )
    records.certificates.withdraw(revoked, at=at)
    return {identity for identity in revoked if known.get(identity) is None}


def _take_over(register: Register, records: Records, kind: TestKind, *, at: datetime) -> set[CertificateId]:
    assert register.series is not None  # noqa: S101 - something is known
    known = register.series.known(kind)
    for statement in known:
        body = _body(statement)
        records.lists.put(kind, body.sequence, statement.raw, starts=body.starts, ends=body.ends)
    if kind is not TestKind.CRL:
        return set()
    ends = register.series.revoked(kind)
    named = frozenset[CertificateId]().union(ends, *(_body(item).certificates for item in known))
    return note_revoked(records, {identity: ends.get(identity) for identity in named}, at=at)


def _newest(register: Register, kind: TestKind) -> Statement | None:
    known: Iterable[Statement] = () if register.series is None else register.series.known(kind)
    return max(known, key=lambda item: _body(item).sequence, default=None)


def _body(statement: Statement) -> ListStatement:
    assert isinstance(statement.body, ListStatement)  # noqa: S101 - a series holds nothing else
    return statement.body
