"""The validity lists of a domain: signed once a period, and at once when something is withdrawn.

Rules kept here:

- a list covers everything that the domain issued and that has not expired, whoever asked for it;
- numbers rise by one over timed and plain lists together, so the newest is always known;
- timed lists never overlap. A withdrawal signs a plain list as well, which takes away at once where it is heard;
- a list is recorded and put into the outbox by the transaction that signs it.
"""

from __future__ import annotations

from datetime import datetime

from maia import database
from maia.access_control.settings import Settings
from maia.authority import (
    Challenge,
    OneTimeAnswer,
    Series,
    Statement,
    StatementBook,
    issue_statement,
    parse_statement,
    verify_statement,
)
from maia.principals import CertificateId, Signer, TestKind

STATEMENT = "statement"


def sign_due(
    records: database.AccessControlRecords, *, signer: Signer, settings: Settings, at: datetime
) -> tuple[Statement, ...]:
    """Sign the lists that are due: the next of each period, or the first plain one."""
    signed: list[Statement] = []
    for kind in settings.tests:
        if kind is TestKind.ONE_TIME:
            continue
        if settings.rhythm is None:
            if records.last_sequence(kind) == 0:
                signed.append(_sign(records, kind, None, signer=signer, at=at))
            continue
        interval = settings.rhythm.due(records.last_timed(kind), at=at)
        if interval is not None:
            signed.append(_sign(records, kind, interval, signer=signer, at=at))
    return tuple(signed)


def sign_withdrawals(
    records: database.AccessControlRecords, *, signer: Signer, settings: Settings, at: datetime
) -> Statement | None:
    """Sign what was withdrawn at this moment, for those who hear of it before the next timed list."""
    if TestKind.CRL not in settings.tests:
        return None
    return _sign(records, TestKind.CRL, None, signer=signer, at=at)


def answer_challenge(
    records: database.AccessControlRecords,
    challenge: Challenge,
    asked: frozenset[CertificateId],
    *,
    signer: Signer,
    at: datetime,
) -> Statement:
    """Say which of some certificates are good, for one decision of one verifier."""
    good = frozenset(
        identity
        for identity in asked
        if (record := records.certificate(identity)) is not None
        and record.withdrawn is None
        and record.parent is None
        and (record.until is None or record.until >= at)
    )
    body = OneTimeAnswer(
        signer=signer.public_key,
        nonce=challenge.nonce,
        verifier=challenge.verifier,
        request=challenge.request,
        certificates=good,
    )
    return issue_statement(body, signer)


def book_of(records: database.AccessControlRecords, *, at: datetime) -> StatementBook:
    """Read the lists that count now into a book."""
    book = StatementBook()
    for raw in records.statements(at=at):
        book.accept(verify_statement(parse_statement(raw)))
    return book


def _sign(
    records: database.AccessControlRecords,
    kind: TestKind,
    interval: tuple[datetime, datetime] | None,
    *,
    signer: Signer,
    at: datetime,
) -> Statement:
    since = at if interval is None else max(interval[0], at)
    covered = records.withdrawn(at=since) if kind is TestKind.CRL else records.good(at=at)
    series = Series(kind=kind, signer=signer.public_key, sequence=records.last_sequence(kind))
    body = series.next(covered, interval=interval)
    statement = issue_statement(body, signer)
    records.add_statement(kind, body.sequence, statement.raw, starts=body.starts, ends=body.ends)
    records.forget_statements(kind, before=at)
    records.post(STATEMENT, signer.public_key.key_id, statement.raw)
    return statement
