"""The book of statements is bounded, and a plain list beside timed ones can only take away."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from maia.authority import Challenge, Rhythm, StatementBook, VerifierLimits
from maia.errors import RevokedError, UncheckedError, UsageError
from maia.principals import Certificate, OnlineTest, TestKind
from maia.testing import People, answer, at, book, grant, listing, online

CRL, REVALIDATION, ONE_TIME = TestKind.CRL, TestKind.REVALIDATION, TestKind.ONE_TIME
P = People("met", "smith", "jones", "kent")
SMALL = VerifierLimits(max_signers=2, max_answers=3)


def right(kind: TestKind, who: str = "smith") -> Certificate:
    """Issue somebody's right with one test."""
    return grant(P.met, P[who], "(read)", tests=[online(kind, P.met)])


def outcome(known: StatementBook, certificate: Certificate, when: int, challenge: Challenge | None = None) -> str:
    """Ask the book about the one test of a certificate."""
    [test] = certificate.body.tests
    try:
        known.check(test, certificate.certificate_id, at=at(when), challenge=challenge)
    except (RevokedError, UncheckedError) as error:
        return error.code
    return "good"


def test_plain_list_takes_away_before_the_next_timed_list() -> None:
    """[0,60) confirms Smith; a plain list with a higher number withdraws him at once, and nobody else."""
    smith, jones = right(CRL), right(CRL, "jones")
    known = book(listing(CRL, P.met, sequence=1, valid=(0, 60)))
    assert outcome(known, smith, 30) == "good"
    known.accept(listing(CRL, P.met, [smith], sequence=2))
    assert outcome(known, smith, 30) == "REVOKED"
    assert outcome(known, jones, 30) == "good"
    assert known.assured_until(smith.body.tests[0], smith.certificate_id, at=at(30)) == at(30)


def test_plain_list_never_gives() -> None:
    """It neither serves in a gap of the timed lists nor undoes what the list in force says."""
    smith = right(CRL)
    known = book(listing(CRL, P.met, [smith], sequence=1, valid=(0, 60)), listing(CRL, P.met, sequence=2))
    assert outcome(known, smith, 30) == "REVOKED"
    assert outcome(known, smith, 60) == "NO_STATEMENT"


def test_a_newer_timed_list_replaces_what_a_plain_list_said() -> None:
    """The list that follows has a higher number: from its start on it alone counts."""
    smith = right(CRL)
    known = book(
        listing(CRL, P.met, sequence=1, valid=(0, 60)),
        listing(CRL, P.met, [smith], sequence=2),
        listing(CRL, P.met, sequence=3, valid=(60, 120)),
    )
    assert [outcome(known, smith, when) for when in (59, 60)] == ["REVOKED", "good"]


def test_lists_of_too_many_signers_are_refused_and_change_nothing() -> None:
    """A stranger with many keys cannot make the book grow; known signers go on."""
    known = StatementBook(limits=SMALL)
    for who in ("met", "kent"):
        known.accept(listing(CRL, P[who], valid=(0, 60)))
        known.accept(listing(CRL, P[who]))
    before = known.raw_statements()
    for valid in ((0, 60), None):
        with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
            known.accept(listing(CRL, P.jones, valid=valid))
    assert known.raw_statements() == before
    known.accept(listing(CRL, P.met, sequence=2, valid=(60, 120)))


def asked(number: int, until: int = 20) -> Challenge:
    """Ask a numbered question."""
    return Challenge(nonce=b"%016d" % number, verifier="broker-1", until=at(until))


def test_answers_that_nobody_waits_for_make_room() -> None:
    """The oldest answer goes; its question then has none, which denies."""
    smith, known = right(ONE_TIME), StatementBook(limits=SMALL)
    for number in range(5):
        known.accept(answer(asked(number), P.met, [smith]))
    assert [outcome(known, smith, 10, asked(number)) for number in range(5)] == ["NO_STATEMENT"] * 2 + ["good"] * 3


def test_spent_nonces_are_remembered_until_their_challenge_is_over() -> None:
    """Spent stays spent; a full memory denies; what is over needs no memory."""
    smith, known = right(ONE_TIME), StatementBook(limits=SMALL)
    for number in range(3):
        known.accept(answer(asked(number), P.met, [smith]))
        known.use([asked(number).nonce], until=at(20 + number))
    known.accept(answer(asked(0), P.met, [smith]))
    assert outcome(known, smith, 10, asked(0)) == "NO_STATEMENT"
    known.accept(answer(asked(9), P.met, [smith]))
    assert outcome(known, smith, 10, asked(9)) == "LIMIT_EXCEEDED"
    known.forget_before(at(21))
    assert known.used_nonces == {asked(1).nonce, asked(2).nonce}
    assert outcome(known, smith, 20, asked(9)) == "good"
    known.accept(answer(asked(0), P.met, [smith]))
    assert outcome(known, smith, 21, asked(0)) == "NO_STATEMENT"


def test_a_nonce_spent_without_an_end_is_kept_for_ever() -> None:
    """An end that is given later does not shorten it."""
    known = StatementBook()
    known.use([b"n"])
    known.use([b"n"], until=at(5))
    known.forget_before(at(10**9))
    assert known.used_nonces == {b"n"}


def beats(period: int, lead: int, instants: list[int]) -> list[tuple[int, int]]:
    """List the intervals that are signed when an issuer looks at these instants."""
    rhythm = Rhythm(period=timedelta(seconds=period), lead=timedelta(seconds=lead))
    last: datetime | None = None
    made = []
    for instant in instants:
        found = rhythm.due(last, at=at(instant))
        if found is not None:
            made.append((int(found[0].timestamp()), int(found[1].timestamp())))
            last = found[1]
    return made


BEATS = {
    "one signature a period": (5, 2, list(range(16)), [(0, 7), (7, 12), (12, 17), (17, 22)]),
    "without a lead": (60, 0, [0, 30, 60, 61, 119, 120], [(0, 60), (60, 120), (120, 180)]),
    "a silence is a gap": (5, 2, [0, 20, 21, 25], [(0, 7), (20, 27), (27, 32)]),
    "a late beat still fits": (5, 2, [0, 6, 11], [(0, 7), (7, 12), (12, 17)]),
}


@pytest.mark.parametrize("period, lead, instants, made", BEATS.values(), ids=BEATS)
def test_lists_follow_each_other_without_overlap(
    period: int, lead: int, instants: list[int], made: list[tuple[int, int]]
) -> None:
    """Whatever the instants at which an issuer looks, each list starts where the last one ended, or later."""
    assert beats(period, lead, instants) == made


@pytest.mark.parametrize("period, lead", [(5, 5), (0, 0), (5, -1), (0.5, 0)])
def test_a_rhythm_that_cannot_be_kept_is_refused(period: float, lead: float) -> None:
    """A lead as long as the period, none at all, and parts of seconds."""
    with pytest.raises(UsageError, match="RHYTHM"):
        Rhythm(period=timedelta(seconds=period), lead=timedelta(seconds=lead))


def test_a_test_names_its_signer() -> None:
    """A plain list of another key takes nothing away."""
    smith = right(CRL)
    known = book(listing(CRL, P.met, sequence=1, valid=(0, 60)), listing(CRL, P.kent, [smith], sequence=9))
    assert OnlineTest(CRL, P.met.public_key) == smith.body.tests[0]
    assert outcome(known, smith, 30) == "good"
