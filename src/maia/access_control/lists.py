"""The validity lists of a domain: signed once a period, and at once when something is withdrawn.

Rules kept here:

- a list covers everything that the domain issued and that has not expired, whoever asked for it;
- numbers rise by one over timed and plain lists together, so the newest is always known;
- timed lists never overlap. A withdrawal signs a plain list as well, which takes away at once where it is heard;
- a list says since when each certificate is withdrawn, and every later list says the same;
- a list is recorded and put into the outbox by the transaction that signs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.access_control.outbox import STATEMENT
from maia.access_control.register import Records, Register
from maia.authority import (
    Challenge,
    ListStatement,
    OneTimeAnswer,
    Series,
    Statement,
    StatementBook,
    first_moments,
    issue_statement,
    parse_statement,
    verify_statement,
)
from maia.principals import CertificateId, TestKind


def beat(register: Register, *, at: datetime) -> tuple[Statement, ...]:
    """Sign the lists that are due now, in a transaction of its own."""
    return register.write(lambda records: sign_due(register, records, at=at), at=at)


def answer(register: Register, challenge: Challenge, certificates: Iterable[bytes], *, at: datetime) -> Statement:
    """Say which of some certificates are good, for one decision of one verifier."""
    asked = frozenset(CertificateId(identity) for identity in certificates)
    with register.reading(at), register.reading_rows() as records:
        good = frozenset(
            identity
            for identity in asked
            if (record := records.certificates.find(identity)) is not None
            and record.withdrawn is None
            and record.parent is None
            and (record.until is None or record.until >= at)
        )
    body = OneTimeAnswer(
        signer=register.key,
        nonce=challenge.nonce,
        verifier=challenge.verifier,
        request=challenge.request,
        certificates=good,
    )
    return issue_statement(body, register.signer)


def sign_due(register: Register, records: Records, *, at: datetime) -> tuple[Statement, ...]:
    """Sign the lists that are due: the next of each period, or the first plain one."""
    signed: list[Statement] = []
    for kind in register.settings.tests:
        if kind is TestKind.ONE_TIME:
            continue
        if register.settings.rhythm is None:
            if records.lists.last_sequence(kind) == 0:
                signed.append(_sign(register, records, kind, None, at=at))
            continue
        interval = register.settings.rhythm.due(records.lists.last_end(kind), at=at)
        if interval is not None:
            signed.append(_sign(register, records, kind, interval, at=at))
    return tuple(signed)


def sign_withdrawals(register: Register, records: Records, *, at: datetime) -> Statement | None:
    """Sign what was withdrawn at this moment, for those who hear of it before the next timed list."""
    if TestKind.CRL not in register.settings.tests:
        return None
    return _sign(register, records, TestKind.CRL, None, at=at)


def book_of(records: Records, *, at: datetime) -> StatementBook:
    """Read the lists that count now into a book."""
    book = StatementBook()
    for raw in records.lists.current(at=at):
        book.accept(verify_statement(parse_statement(raw)))
    return book


def _sign(
    register: Register,
    records: Records,
    kind: TestKind,
    interval: tuple[datetime, datetime] | None,
    *,
    at: datetime,
) -> Statement:
    since = at if interval is None else max(interval[0], at)
    covered = records.certificates.withdrawn(at=since) if kind is TestKind.CRL else records.certificates.good(at=at)
    known = [parse_statement(raw).body for raw in records.lists.current(at=at)]
    moments = first_moments(item for item in known if isinstance(item, ListStatement) and item.kind is kind)
    series = Series(kind=kind, signer=register.key, sequence=records.lists.last_sequence(kind), since=moments)
    if interval is None:
        covered |= moments.keys()  # a plain list has no time of its own, so it names what expired since as well
    body = series.next(covered, interval=interval, at=at)
    statement = issue_statement(body, register.signer)
    records.lists.add(kind, body.sequence, statement.raw, starts=body.starts, ends=body.ends)
    records.lists.forget(kind, before=at)
    records.outbox.post(STATEMENT, register.key.key_id, statement.raw)
    return statement
