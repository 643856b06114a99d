"""Validity statements, the book that holds them, and what is exposed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from maia.authority import (
    Challenge,
    ListStatement,
    OneTimeAnswer,
    Statement,
    StatementBook,
    VerifierLimits,
    exposure_window,
    issue_statement,
    parse_statement,
    unsafe_sign_statement,
    verify_statement,
)
from maia.encoding import Sexp, duration, encode
from maia.errors import EncodingError, MalformedError, SignatureError, UncheckedError, UsageError, VerificationError
from maia.principals import CertificateId, KeyHash, KeySigner, Kind, Name, TestKind, parse_certificate
from maia.testing import People, answer, at, book, grant, listing, online

CRL, REVALIDATION, ONE_TIME = TestKind.CRL, TestKind.REVALIDATION, TestKind.ONE_TIME
P = People("a", "b", "lister")
A = P.a.public_key
READ: Sexp = (b"read",)
IDS = frozenset(CertificateId(bytes((n,)) * 32) for n in (1, 2, 3))
BODIES = {
    "plain": ListStatement(kind=CRL, signer=A, sequence=7, certificates=IDS),
    "timed": ListStatement(kind=CRL, signer=A, sequence=0, certificates=frozenset(), starts=at(0), ends=at(60)),
    "revalidation": ListStatement(kind=REVALIDATION, signer=A, sequence=7, certificates=IDS, starts=at(0), ends=at(60)),
    "by hash": ListStatement(kind=CRL, signer=KeyHash(A.key_id), sequence=10**18 - 1, certificates=IDS),
    "only revokes": ListStatement(kind=CRL, signer=A, sequence=8, certificates=IDS, only_revokes=True),
    "answer": OneTimeAnswer(signer=A, nonce=b"n", verifier="bröker", certificates=IDS),
    "answer to a request": OneTimeAnswer(signer=A, nonce=b"", verifier="b", certificates=IDS, request=b"r"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_statement_reads_back(body: object):
    """What is issued is what is read, and it verifies."""
    statement = issue_statement(body, P.a)
    read = parse_statement(statement.raw)
    assert read.body == body == statement.body
    assert verify_statement(read) == statement
    assert statement.signer_id == A.key_id


def test_only_the_named_signer_signs():
    """Another key is refused when issuing; an altered statement when verifying."""
    body = BODIES["plain"]
    with pytest.raises(UsageError, match="WRONG_SIGNER"):
        issue_statement(body, P.b)
    with pytest.raises(SignatureError):
        verify_statement(replace(parse_statement(issue_statement(body, P.a).raw), body=BODIES["timed"]))
    with pytest.raises(UsageError):
        Statement(body, b"", b"", object())
    with pytest.raises((ValueError, TypeError)):
        replace(issue_statement(body, P.a), body=BODIES["timed"])


WRONG_LISTS = {
    "half an interval": {"starts": at(0)},
    "the other half": {"ends": at(0)},
    "an empty interval": {"starts": at(5), "ends": at(5)},
    "a turned interval": {"starts": at(6), "ends": at(5)},
    "a revalidation without one": {"kind": REVALIDATION},
    "a negative number": {"sequence": -1},
    "a huge number": {"sequence": 10**18},
}


@pytest.mark.parametrize("change", WRONG_LISTS.values(), ids=WRONG_LISTS.keys())
def test_a_list_that_makes_no_sense_is_refused(change: dict[str, object]):
    """Intervals are whole and not empty, numbers in range."""
    with pytest.raises(EncodingError):
        replace(BODIES["plain"], **change)


def test_a_list_is_no_answer_and_needs_time_zones():
    """The caller's mistakes."""
    with pytest.raises(UsageError):
        replace(BODIES["plain"], kind=ONE_TIME)
    with pytest.raises(UsageError):
        replace(BODIES["plain"], starts=datetime(2026, 1, 1), ends=datetime(2026, 1, 2))  # noqa: DTZ001
    with pytest.raises(EncodingError, match="NOT_UTF8"):
        issue_statement(replace(BODIES["answer"], verifier="\ud800"), P.a)


@pytest.mark.parametrize("when, counts", [(-1, False), (0, True), (59, True), (60, False)])
def test_a_timed_list_counts_in_a_half_open_interval(when: int, counts: bool):
    """Its start belongs to it, its end does not; a plain list always counts."""
    assert BODIES["timed"].in_force(at(when)) is counts
    assert BODIES["plain"].in_force(at(when))
    assert BODIES["timed"].timed
    assert not BODIES["plain"].timed


VERSION, KIND, SIGNER = (b"version", b"1"), (b"kind", b"crl"), (b"signer", A.to_sexp())
NUMBER, NONE = (b"sequence", b"1"), (b"certificates",)
START, END = b"2026-01-01_00:00:00", b"2026-01-02_00:00:00"
REFUSED: dict[str, tuple[Sexp, ...]] = {
    "nothing": (),
    "another version": ((b"version", b"2"), KIND, SIGNER, NUMBER, NONE),
    "another kind": (VERSION, (b"kind", b"rumour"), SIGNER, NUMBER, NONE),
    "a name as signer": (VERSION, KIND, (b"signer", Name(A, ("x",)).to_sexp()), NUMBER, NONE),
    "no number": (VERSION, KIND, SIGNER, NONE),
    "a padded number": (VERSION, KIND, SIGNER, (b"sequence", b"01"), NONE),
    "a signed number": (VERSION, KIND, SIGNER, (b"sequence", b"-1"), NONE),
    "an empty number": (VERSION, KIND, SIGNER, (b"sequence", b""), NONE),
    "an overlong number": (VERSION, KIND, SIGNER, (b"sequence", b"1" * 19), NONE),
    "half an interval": (VERSION, KIND, SIGNER, NUMBER, (b"in-force", START), NONE),
    "a turned interval": (VERSION, KIND, SIGNER, NUMBER, (b"in-force", END, START), NONE),
    "ids out of order": (VERSION, KIND, SIGNER, NUMBER, (b"certificates", b"b" * 32, b"a" * 32)),
    "an id twice": (VERSION, KIND, SIGNER, NUMBER, (b"certificates", b"a" * 32, b"a" * 32)),
    "a short id": (VERSION, KIND, SIGNER, NUMBER, (b"certificates", b"a" * 31)),
    "an id that is a list": (VERSION, KIND, SIGNER, NUMBER, (b"certificates", (b"a",))),
    "no ids": (VERSION, KIND, SIGNER, NUMBER),
    "an answer without a nonce": (VERSION, (b"kind", b"one-time"), SIGNER, NONE),
    "an answer without a verifier": (VERSION, (b"kind", b"one-time"), SIGNER, (b"nonce", b"n"), NONE),
    "an answer with a number": (
        VERSION, (b"kind", b"one-time"), SIGNER, (b"nonce", b"n"), (b"verifier", b"v"), NUMBER, NONE,
    ),
    "a verifier that is no text": (
        VERSION, (b"kind", b"one-time"), SIGNER, (b"nonce", b"n"), (b"verifier", b"\xff"), NONE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED.keys())
def test_statements_are_strict(fields: tuple[Sexp, ...]):
    """Order, number and kind of the fields are fixed."""
    body = (b"statement", *fields)
    raw = encode((b"signed", body, (b"signature", A.to_sexp(), P.a.sign(Kind.STATEMENT, encode(body)))))
    with pytest.raises(MalformedError):
        parse_statement(raw)


@pytest.mark.parametrize("mark", [bytes(63), ()], ids=["short", "a list"])
def test_a_signature_is_64_octets(mark: Sexp):
    """Anything else is no signed statement."""
    with pytest.raises(EncodingError, match="STATEMENT_SHAPE"):
        parse_statement(encode((b"signed", BODIES["plain"].to_sexp(), (b"signature", A.to_sexp(), mark))))


def test_a_book_holds_a_bounded_number_of_lists():
    """More than allowed of one signer and kind are not taken."""
    known = StatementBook(limits=VerifierLimits(max_statements=2))
    for n in range(2):
        known.accept(listing(CRL, P.lister, sequence=n, valid=(60 * n, 60 * n + 60)))
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        known.accept(listing(CRL, P.lister, sequence=3, valid=(180, 240)))
    known.accept(listing(REVALIDATION, P.lister, sequence=3, valid=(180, 240)))


def test_forgetting_keeps_what_later_lists_are_measured_by():
    """Of the lists that are over the highest number stays, and the newest list; the others go."""
    known = book(*(listing(CRL, P.lister, sequence=n, valid=(60 * n, 60 * n + 60)) for n in range(5)))
    known.forget_before(at(100))
    assert [parse_statement(raw).body.sequence for raw in known.raw_statements()] == [4, 3, 2, 1, 0]
    known.forget_before(at(180))
    assert [parse_statement(raw).body.sequence for raw in known.raw_statements()] == [4, 3, 2]
    known.forget_before(at(10**9))
    assert [parse_statement(raw).body.sequence for raw in known.raw_statements()] == [4, 3]
    with pytest.raises(VerificationError, match="STATEMENT_ROLLBACK"):
        known.accept(listing(CRL, P.lister, sequence=4, valid=(300, 360)))


def test_the_revision_changes_with_every_change_of_knowledge():
    """Caches keyed by it never serve an answer from before."""
    known = StatementBook()
    seen = {known.revision}
    known.accept(listing(CRL, P.lister, valid=(0, 60)))
    seen.add(known.revision)
    known.accept(answer(Challenge(nonce=b"n", verifier="b", until=at(9)), P.lister, []))
    seen.add(known.revision)
    known.use([b"n"])
    seen.add(known.revision)
    known.use([])
    assert len(seen) == 4
    assert known.revision in seen
    assert known.used_nonces == {b"n"}


def test_a_signature_with_a_statement_of_another_kind_changes_nothing():
    """The same body signed by a stranger is another signer's statement."""
    raw = unsafe_sign_statement(BODIES["plain"], P.b)
    with pytest.raises(SignatureError, match="WRONG_SIGNER"):
        verify_statement(parse_statement(raw))


EXPOSURES = {
    "nothing": ([], None, None),
    "a period": ([], (0, 99), 90),
    "a plain list": ([CRL], None, None),
    "no list yet": ([REVALIDATION], None, 0),
    "a one-time test": ([ONE_TIME], None, 0),
    "a plain list and a period": ([CRL], (0, 19), 10),
    "a period that is over": ([], (0, 5), 0),
    "the last instant there is": ([], (0, "9999-12-31T23:59:59"), ...),
}


@pytest.mark.parametrize("case", EXPOSURES.values(), ids=EXPOSURES.keys())
def test_exposure(case: tuple[list[TestKind], object, object]):
    """The shortest of what bounds it; nothing bounds it when nothing does."""
    kinds, valid, seconds = case
    certificate = grant(P.a, P.b, READ, valid=valid, tests=[online(kind, P.lister) for kind in kinds])
    known = book(listing(CRL, P.lister, sequence=1))
    exposure = exposure_window(certificate, at=at(10), statements=known)
    if seconds is ...:
        assert exposure.window > timedelta(days=365 * 7000)
    else:
        assert exposure.window == (None if seconds is None else timedelta(seconds=seconds))
    assert str(exposure).startswith("unbounded" if exposure.window is None else duration(exposure.window))
    unverified = exposure_window(parse_certificate(certificate.raw), at=at(10), statements=known)
    assert unverified == exposure


def test_early_successors_lengthen_the_exposure():
    """What is signed cannot be taken back: the window runs to the end of the last list that still confirms."""
    certificate = grant(P.a, P.b, READ, tests=[online(REVALIDATION, P.lister)])
    known = book(
        listing(REVALIDATION, P.lister, [certificate], sequence=1, valid=(0, 60)),
        listing(REVALIDATION, P.lister, [certificate], sequence=2, valid=(60, 120)),
        listing(REVALIDATION, P.lister, [], sequence=3, valid=(120, 180)),
    )
    exposure = exposure_window(certificate, at=at(10), statements=known, skew=timedelta(seconds=5))
    assert exposure.window == timedelta(seconds=115)
    assert P.lister.public_key.fingerprint in exposure.bounded_by


def test_a_list_that_only_revokes_has_no_interval():
    """It says so beside timed lists, and is none of them."""
    with pytest.raises(EncodingError, match="STATEMENT_INTERVAL"):
        replace(BODIES["timed"], only_revokes=True)
    with pytest.raises(EncodingError, match="STATEMENT_INTERVAL"):
        replace(BODIES["revalidation"], only_revokes=True)
    assert not BODIES["only revokes"].in_force(at(0))
    assert BODIES["plain"].in_force(at(0))


def test_moments_are_signed_and_read_again():
    """A CRL says since when each certificate is withdrawn, in the order of their ids."""
    ids = [CertificateId(bytes([n]) * 32) for n in (2, 1)]
    body = ListStatement(
        kind=TestKind.CRL, signer=KeySigner(bytes(32)).public_key, sequence=1, certificates=frozenset(ids), since=(5, 7)
    )
    read = parse_statement(issue_statement(body, KeySigner(bytes(32))).raw).body
    assert read == body
    assert body.moments() == {ids[1]: 5, ids[0]: 7}


@pytest.mark.parametrize(
    "kind, since",
    [(TestKind.CRL, (1, 2)), (TestKind.CRL, (-1,)), (TestKind.CRL, (10**15,)), (TestKind.REVALIDATION, (1,))],
)
def test_moments_that_do_not_fit_are_refused(kind: TestKind, since: tuple[int, ...]):
    """One for each certificate, of a CRL, within range."""
    moment = datetime(2026, 6, 1, tzinfo=UTC)
    with pytest.raises(EncodingError, match="STATEMENT_SINCE"):
        ListStatement(
            kind=kind, signer=KeySigner(bytes(32)).public_key, sequence=1, since=since,
            certificates=frozenset({CertificateId(bytes(32))}), starts=moment, ends=moment + timedelta(days=1),
        )  # fmt: skip


@pytest.mark.parametrize("field", [(b"since",), (b"since", b"01"), (b"since", b"x"), (b"since", (b"1",))])
def test_moments_have_one_spelling(field: tuple[object, ...]):
    """Empty, with zeros in front, no number, a list: not a statement."""
    fields = (
        b"statement",
        (b"version", b"1"),
        (b"kind", b"crl"),
        (b"signer", KeySigner(bytes(32)).public_key.to_sexp()),
    )
    body = (*fields, (b"sequence", b"1"), field, (b"certificates", bytes(31) + b"1"))
    key = KeySigner(bytes(32))
    raw = encode((b"signed", body, (b"signature", key.public_key.to_sexp(), key.sign(Kind.STATEMENT, encode(body)))))
    with pytest.raises(EncodingError, match=r"STATEMENT_SINCE|UNKNOWN_FIELD"):
        parse_statement(raw)
