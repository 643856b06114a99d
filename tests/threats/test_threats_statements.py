"""Attacks on validity: lists withheld, rolled back, overlapping, misdirected; answers replayed; ids confused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.authority import (
    Challenge,
    Decision,
    Root,
    Statement,
    StatementBook,
    Verifier,
    ask,
    parse_statement,
    verify_statement,
)
from maia.encoding import Sexp
from maia.errors import VerificationError
from maia.principals import Certificate, TestKind
from maia.testing import People, answer, at, book, grant, listing, online

READ: Sexp = (b"read",)
CRL, REVALIDATION, ONE_TIME = TestKind.CRL, TestKind.REVALIDATION, TestKind.ONE_TIME
P = People("met", "smith", "jones", "lister", "evil")


def right(kind: TestKind, **rest: object) -> Certificate:
    """Issue Smith's right with one on-line test."""
    return grant(P.met, P.smith, READ, tests=[online(kind, P.lister)], **rest)


def decide(known: StatementBook, certificate: Certificate, when: int, challenge: Challenge | None = None) -> Decision:
    """Decide with what a book knows."""
    verifier = Verifier([Root(subject=P.met.public_key)], statements=known)
    return verifier.decide(
        ask(READ), principal=P.smith.public_key, evidence=[certificate], at=at(when), challenge=challenge
    )


def restarted(known: StatementBook) -> StatementBook:
    """Write a book down and read it again, as a restart does."""
    again = StatementBook()
    for raw in known.raw_statements():
        again.accept(verify_statement(parse_statement(raw)))
    again.use(known.used_nonces)
    return again


def refused(known: StatementBook, statement: Statement) -> str:
    """Tell why a book refuses a statement, and check that it knows no more afterwards."""
    before = known.raw_statements()
    with pytest.raises(VerificationError) as caught:
        known.accept(statement)
    assert known.raw_statements() == before
    return caught.value.code


@pytest.mark.threat("T27")
@pytest.mark.parametrize("kind", [CRL, REVALIDATION])
def test_withholding_lists_ends_access_with_the_last_list(kind: TestKind):
    """No list arrives after [0,60): access ends at 60, with a warm cache too."""
    certificate = right(kind)
    known = book(listing(kind, P.lister, [certificate] if kind is REVALIDATION else [], valid=(0, 60)))
    verifier = Verifier([Root(subject=P.met.public_key)], statements=known)
    answers = [
        bool(verifier.decide(ask(READ), principal=P.smith.public_key, evidence=[certificate], at=at(when)))
        for when in (-1, 0, 30, 59, 60, 61, 10**9)
    ]
    assert answers == [False, True, True, True, False, False, False]


@pytest.mark.threat("T28")
def test_an_old_list_is_refused_after_a_restart_too():
    """A plain list with a lower number, the same interval again, a later interval with a lower number."""
    certificate = right(CRL)
    plain = book(listing(CRL, P.lister, [certificate], sequence=7))
    timed = book(listing(CRL, P.lister, [certificate], sequence=7, valid=(0, 60)))
    for known in (plain, restarted(plain)):
        assert refused(known, listing(CRL, P.lister, sequence=6)) == "STATEMENT_ROLLBACK"
        assert refused(known, listing(CRL, P.lister, sequence=7)) == "STATEMENT_ROLLBACK"
        assert decide(known, certificate, 10).reason == "REVOKED"
    for known in (timed, restarted(timed)):
        assert refused(known, listing(CRL, P.lister, sequence=6, valid=(0, 60))) == "STATEMENT_OVERLAP"
        assert refused(known, listing(CRL, P.lister, sequence=8, valid=(0, 60))) == "STATEMENT_OVERLAP"
        assert refused(known, listing(CRL, P.lister, sequence=6, valid=(60, 120))) == "STATEMENT_ROLLBACK"
        assert decide(known, certificate, 10).reason == "REVOKED"
        # An old plain list does not outlive the timed ones.
        known.accept(listing(CRL, P.lister, sequence=9))
        assert decide(known, certificate, 70).reason == "NO_STATEMENT"


@pytest.mark.threat("T28")
def test_the_same_list_again_changes_nothing():
    """Receiving a list twice is no rollback."""
    certificate = right(CRL)
    for valid in (None, (0, 60)):
        known = book(listing(CRL, P.lister, sequence=7, valid=valid))
        known.accept(listing(CRL, P.lister, sequence=7, valid=valid))
        assert len(known.raw_statements()) == 1
        assert decide(known, certificate, 10)


@pytest.mark.threat("T29")
@pytest.mark.parametrize("sequence", [2, 10**17])
def test_a_list_for_the_far_future_blocks_nothing(sequence: int):
    """It neither serves now nor stands in the way of the lists before it."""
    certificate = right(CRL)
    known = book(
        listing(CRL, P.lister, sequence=1, valid=(0, 60)),
        listing(CRL, P.lister, [certificate], sequence=sequence, valid=(10**9, 10**9 + 60)),
    )
    assert decide(known, certificate, 30)
    assert decide(known, certificate, 60).reason == "NO_STATEMENT"
    known.accept(listing(CRL, P.lister, sequence=3, valid=(60, 120)))
    known.accept(listing(CRL, P.lister, sequence=4, valid=(120, 180)))
    for now in (known, restarted(known)):
        assert decide(now, certificate, 60)
        assert decide(now, certificate, 120)
        assert decide(now, certificate, 10**9).reason == "REVOKED"


OVERLAPS = {
    "starts inside": (50, 110),
    "lies inside": (10, 20),
    "covers": (-10, 200),
    "ends inside": (-10, 1),
    "one second too early": (59, 120),
    "same start": (0, 30),
    "reaches into the next": (60, 121),
}


@pytest.mark.threat("T30")
@pytest.mark.parametrize("interval", OVERLAPS.values(), ids=OVERLAPS.keys())
@pytest.mark.parametrize("kind", [CRL, REVALIDATION])
def test_an_overlapping_list_neither_shortens_nor_extends(kind: TestKind, interval: tuple[int, int]):
    """Refused even when it revokes; what was accepted stays as it is (C19, C31)."""
    certificate = right(kind)
    confirms = [certificate] if kind is REVALIDATION else []
    revokes = [] if kind is REVALIDATION else [certificate]
    known = book(
        listing(kind, P.lister, confirms, sequence=2, valid=(0, 60)),
        listing(kind, P.lister, confirms, sequence=4, valid=(120, 180)),
    )
    assert refused(known, listing(kind, P.lister, revokes, sequence=3, valid=interval)) == "STATEMENT_OVERLAP"
    assert [bool(decide(known, certificate, when)) for when in (0, 59, 60, 119, 120)] == [
        True,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.threat("T31")
def test_a_list_by_another_key_or_about_others_is_absent():
    """Evil's lists, the lister's lists of another kind, and a confirmation of somebody else's right."""
    for kind in (CRL, REVALIDATION):
        certificate = right(kind)
        assert (
            decide(book(listing(kind, P.evil, [certificate], valid=(0, 60))), certificate, 10).reason == "NO_STATEMENT"
        )
        other = REVALIDATION if kind is CRL else CRL
        wrong_kind = book(listing(other, P.lister, [certificate], valid=(0, 60)))
        assert decide(wrong_kind, certificate, 10).reason == "NO_STATEMENT"
    certificate = right(REVALIDATION)
    others = grant(P.met, P.jones, READ)
    assert not decide(book(listing(REVALIDATION, P.lister, [others], valid=(0, 60))), certificate, 10)
    both = book(
        listing(REVALIDATION, P.evil, [certificate], valid=(0, 60)), listing(REVALIDATION, P.lister, [], valid=(0, 60))
    )
    assert decide(both, certificate, 10).reason == "REVOKED"


@pytest.mark.threat("T32")
def test_a_one_time_answer_fits_one_question_only():
    """Replayed, for another verifier, about another certificate, for another request, by another key, too late: no."""
    certificate, other = right(ONE_TIME), right(ONE_TIME, valid=(0, None))
    asked = Challenge(nonce=b"n" * 16, verifier="broker-1", until=at(20), request=ask(READ).digest)

    def reason(challenge: Challenge, given: Statement | None = None, when: int = 10) -> str | None:
        known = StatementBook() if given is None else book(given)
        return decide(known, certificate, when, challenge).reason

    good = answer(asked, P.lister, [certificate])
    assert reason(asked, good) is None
    assert reason(asked) == "NO_STATEMENT"
    assert reason(replace(asked, verifier="broker-2"), good) == "NO_STATEMENT"
    assert reason(replace(asked, nonce=b"m" * 16), good) == "NO_STATEMENT"
    assert reason(replace(asked, request=b"s" * 32), good) == "NO_STATEMENT"
    assert reason(replace(asked, request=None), good) == "NO_STATEMENT"
    assert reason(asked, answer(replace(asked, request=None), P.lister, [certificate])) == "NO_STATEMENT"
    about_writing = replace(asked, request=ask((b"write",)).digest)
    assert reason(about_writing, answer(about_writing, P.lister, [certificate])) == "NO_STATEMENT"
    assert reason(asked, answer(asked, P.lister, [other])) == "REVOKED"
    assert reason(asked, answer(asked, P.evil, [certificate])) == "NO_STATEMENT"
    assert reason(asked, good, when=21) == "NO_STATEMENT"
    known = book(good)
    assert decide(known, certificate, 10, asked)
    known.accept(good)
    assert decide(known, certificate, 10, asked).reason == "NO_STATEMENT"
    # Spent stays spent across a restart.
    again = restarted(known)
    again.accept(good)
    assert decide(again, certificate, 10, asked).reason == "NO_STATEMENT"


@pytest.mark.threat("T32")
def test_a_grant_that_rests_on_an_answer_is_not_remembered():
    """A decision without the challenge finds nothing in the cache."""
    certificate = right(ONE_TIME)
    asked = Challenge(nonce=b"n" * 16, verifier="broker-1", until=at(20))
    verifier = Verifier([Root(subject=P.met.public_key)], statements=book(answer(asked, P.lister, [certificate])))
    given = {"principal": P.smith.public_key, "evidence": [certificate], "at": at(10)}
    granted = verifier.decide(ask(READ), challenge=asked, **given)
    assert granted
    assert not granted.grant.holds_at(at(10))
    assert not verifier.decide(ask(READ), **given)
    assert not verifier.decide(ask(READ), challenge=asked, **given)


@pytest.mark.threat("T34")
def test_lists_name_certificates_and_not_times():
    """A right issued anew is another certificate: the new one is good, the old one stays dead, whenever it was made."""
    old = right(CRL, valid=(0, 1000))
    new = right(CRL, valid=(1, 1000))
    assert old.certificate_id != new.certificate_id
    known = book(listing(CRL, P.lister, [old], sequence=1, valid=(0, 60)))
    for when in (1, 30, 59):
        assert decide(known, old, when).reason == "REVOKED"
        assert decide(known, new, when)
    # A later list that still names the old one does not touch the new one; one that forgets it does not matter to it.
    known.accept(listing(CRL, P.lister, [old], sequence=2, valid=(60, 120)))
    assert decide(known, old, 90).reason == "REVOKED"
    assert decide(known, new, 90)
    # A second signature over the same body is the same certificate, hence dead as well.
    assert right(CRL, valid=(0, 1000)).certificate_id == old.certificate_id
