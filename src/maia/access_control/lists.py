"""The validity lists of a domain: signed once a period, and at once when something is withdrawn.

Rules kept here:

- a list covers everything that the domain issued and that has not expired, whoever asked for it;
- numbers rise over timed and plain lists together, whoever makes them, so the newest is always known;
- timed lists never overlap. A revocation signs a plain list, which takes away at once where it is heard;
- a list made by hand is one of the same series, and carries everything that the register revoked;
- a list says since when each certificate is revoked, and every later list says the same;
- a list is recorded and put into the outbox by the transaction that signs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from maia.access_control.outbox import STATEMENT, WITHDRAWN, withdrawn_to_bytes
from maia.access_control.register import Records, Register
from maia.access_control.series import check_series, note_revoked, take_number
from maia.access_control.settings import DEFAULT_RHYTHM
from maia.access_control.values import Withdrawn
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
from maia.errors import VerificationError
from maia.principals import CertificateId, TestKind


def beat(register: Register, *, at: datetime) -> tuple[Statement, ...]:
    """Sign the lists that are due now, in a transaction of its own."""
    return register.write(lambda records: sign_due(register, records, at=at), at=at)


def state(
    register: Register,
    kind: TestKind,
    *,
    at: datetime,
    revoke: Mapping[CertificateId, datetime | None],
    good: frozenset[CertificateId],
    interval: tuple[datetime, datetime] | None,
    sequence: int | None,
) -> Statement:
    """Sign a list by hand, as the next one of the series.

    Raises:
        UsageError: The number was taken before: ``LIST_NUMBER``.
        VerificationError: It overlaps a list that is signed already: ``STATEMENT_OVERLAP``.
        UnavailableError: The register is behind its lists: ``REGISTER_BEHIND``.
    """
    with register.writing(at) as records:
        ends = records.lists.last_end(kind)
        if interval is not None and ends is not None and interval[0] < ends:
            raise VerificationError("the list overlaps one that is signed already", code="STATEMENT_OVERLAP")
        check_series(register, records, kind, at=at)
        if revoke:
            note_revoked(records, revoke, at=at)
            notice = Withdrawn(certificates=frozenset(revoke), keys=frozenset(), at=at)
            records.outbox.post(WITHDRAWN, register.key.key_id, withdrawn_to_bytes(notice))
        statement = _sign(register, records, kind, interval, at=at, good=good, sequence=sequence)
        records.journal.note("state", f"{kind.value} by hand", who=None, at=at)
    return statement


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
        check_series(register, records, kind, at=at)
        last = records.lists.last_end(kind)
        rhythm = register.settings.rhythm
        if rhythm is None and last is None and not _is_held_to_timed(_kept(records, kind)):
            if records.lists.last_sequence(kind) == 0:
                signed.append(_sign(register, records, kind, None, at=at))
            continue
        # a signer that ever signed timed lists is held to them, whatever its settings say now
        interval = (rhythm or DEFAULT_RHYTHM).due(last, at=at)
        if interval is not None:
            signed.append(_sign(register, records, kind, interval, at=at))
    return tuple(signed)


def sign_withdrawals(register: Register, records: Records, *, at: datetime) -> Statement | None:
    """Sign what was withdrawn at this moment, for those who hear of it before the next timed list."""
    if TestKind.CRL not in register.settings.tests:
        return None
    check_series(register, records, TestKind.CRL, at=at)
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
    good: frozenset[CertificateId] = frozenset(),
    sequence: int | None = None,
) -> Statement:
    since = at if interval is None else max(interval[0], at)
    if kind is TestKind.CRL:
        covered = records.certificates.withdrawn(at=since)
    else:
        covered = good | (records.certificates.good(at=at) if kind in register.settings.tests else frozenset())
    known = _kept(records, kind)
    series = Series(
        kind=kind, signer=register.key, sequence=records.lists.last_sequence(kind), since=first_moments(known),
        timed=_is_held_to_timed(known),
    )  # fmt: skip
    number = take_number(register, records, kind, wanted=sequence)
    body = series.next(covered, interval=interval, sequence=number, at=at)
    statement = issue_statement(body, register.signer)
    records.lists.add(kind, body.sequence, statement.raw, starts=body.starts, ends=body.ends)
    records.lists.forget(kind, before=at)
    records.outbox.post(STATEMENT, register.key.key_id, statement.raw)
    return statement


def _kept(records: Records, kind: TestKind) -> list[ListStatement]:
    bodies = (parse_statement(raw).body for raw in records.lists.kept(kind))
    return [item for item in bodies if isinstance(item, ListStatement)]


def _is_held_to_timed(known: Iterable[ListStatement]) -> bool:
    """Tell whether a signer has timed lists, also when all of them are forgotten."""
    return any(item.timed or item.only_revokes for item in known)
