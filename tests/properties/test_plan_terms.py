"""When a plan ends, and what is known of the past, against people who look at every instant one by one."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from strategies_trust import NOW, SIGNERS, randoms

from maia.authority import (
    Action,
    KnownVersions,
    ListStatement,
    Series,
    Statement,
    StatementBook,
    Verifier,
    ask_type,
    issue_statement,
    type_right,
)
from maia.authority.hindsight import Hindsight
from maia.authority.pool import CertificatePool
from maia.errors import RevokedError, UncheckedError, VerificationError
from maia.kernel import clauses_from
from maia.principals import Certificate, KeySigner, OnlineTest, TestKind
from maia.testing import grant

OWNER, LEFT, RIGHT, CLIENT = (KeySigner(bytes([number]) * 32) for number in range(101, 105))
UIDS = ("1", "2")
SPAN = 30
TICK = timedelta(microseconds=1)
CRL = TestKind.CRL


def instant(second: int) -> datetime:
    """Count seconds from now."""
    return NOW + timedelta(seconds=second)


def instants() -> list[datetime]:
    """List every instant at which anything can change."""
    return [moment for second in range(SPAN + 15) for moment in (instant(second), instant(second) + TICK)]


def random_book(rng: random.Random, certificates: list[Certificate]) -> StatementBook:
    """Accept timed lists with and without gaps, and perhaps a plain one, of each signer."""
    book = StatementBook()
    for signer in SIGNERS[:2]:
        number, start = 0, rng.randrange(3)
        while start < SPAN and rng.random() < 0.9:
            number, end = number + 1, start + rng.randint(1, 12)
            book.accept(listed(signer, number, rng.sample(certificates, rng.randrange(2)), (start, end)))
            start = end + rng.choice((0, 0, 0, 2))
        if rng.random() < 0.4:
            book.accept(listed(signer, rng.randint(1, number + 1), rng.sample(certificates, rng.randrange(2)), None))
    return book


def listed(signer: KeySigner, number: int, named: list[Certificate], interval: tuple[int, int] | None) -> Statement:
    """Sign a CRL."""
    starts, ends = (None, None) if interval is None else map(instant, interval)
    return issue_statement(
        ListStatement(
            kind=CRL, signer=signer.public_key, sequence=number, starts=starts, ends=ends,
            certificates=frozenset(item.certificate_id for item in named),
        ),
        signer,
    )  # fmt: skip


def random_link(rng: random.Random, issuer: KeySigner, subject: KeySigner) -> tuple[Certificate, frozenset[str]]:
    """Pass the right, or a part of it, on for a while; perhaps to be revoked."""
    uids = frozenset(rng.sample(UIDS, rng.randint(1, 2)))
    start = rng.randrange(SPAN)
    valid = (instant(start), instant(rng.randint(start, SPAN))) if rng.random() < 0.6 else None
    tests = [OnlineTest(CRL, rng.choice(SIGNERS[:2]).public_key)] if rng.random() < 0.6 else []
    of = type_right(OWNER.public_key, "t", actions=[Action.SUBSCRIBE], attributes=sorted(uids))
    return grant(issuer, subject, of, delegate=True, valid=valid, tests=tests), uids


@given(randoms)
def test_a_clause_ends_when_the_last_chain_that_gives_it_breaks(rng: random.Random) -> None:
    """The end is the first instant at which none of the chains that gave it was unbroken since, and no other."""
    direct = [random_link(rng, OWNER, CLIENT)]
    through = [(random_link(rng, OWNER, middle), random_link(rng, middle, CLIENT)) for middle in (LEFT, RIGHT)]
    chains = [(direct[0],), *through]
    evidence = [link[0] for chain in chains for link in chain]
    book = random_book(rng, evidence)

    def alive(chain: tuple[tuple[Certificate, frozenset[str]], ...], at: datetime) -> bool:
        try:
            for link, _ in chain:
                for test in link.body.tests:
                    book.check(test, link.certificate_id, at=at)
        except VerificationError:
            return False
        return all(link.body.period.contains(at) for link, _ in chain)

    def end(chain: tuple[tuple[Certificate, frozenset[str]], ...], at: datetime) -> datetime | None:
        return next((moment for moment in instants() if moment > at and not alive(chain, moment)), None)

    at = rng.choice(instants()[: 2 * SPAN])
    request = ask_type(Action.SUBSCRIBE, OWNER.public_key, "t", None)
    found = clauses_from(
        Verifier(statements=book).clauses(request, principal=CLIENT.public_key, evidence=evidence, at=at),
        KnownVersions.of(()),
    )
    expected: dict[frozenset[str], list[datetime | None]] = {}
    for chain in chains:
        opened = frozenset.intersection(*(uids for _, uids in chain))
        if opened and alive(chain, at):
            expected.setdefault(opened, []).append(end(chain, at))
    ends = {
        opened: None if None in found_ends else max(item for item in found_ends if item is not None)
        for opened, found_ends in expected.items()
    }
    assert {frozenset(uid for uid in UIDS if clause.opens(uid)): clause.until for clause in found} == ends


def answer(right: Certificate, held: list[Statement], brought: tuple[Statement, ...], at: datetime) -> str:
    """Say what hindsight says of a right, for who holds some lists and is brought others."""
    book = StatementBook()
    for item in held:
        book.accept(item)
    [test] = right.body.tests
    try:
        Hindsight(book, CertificatePool([right]), brought).check(test, right.certificate_id, at=at)
    except RevokedError:
        return "no"
    except UncheckedError:
        return "unknown"
    return "yes"


@given(randoms)
def test_hindsight_is_what_a_witness_of_the_time_would_say(rng: random.Random) -> None:
    """Whoever holds every list says of each past instant what was so; whoever holds some never says no too early."""
    signer = SIGNERS[0]
    test = OnlineTest(CRL, signer.public_key)
    of = type_right(OWNER.public_key, "t", actions=[Action.PUBLISH])
    ends = None if rng.random() < 0.5 else instant(rng.randint(5, SPAN))
    right = grant(OWNER, CLIENT, of, valid=None if ends is None else (NOW, ends), tests=[test])
    revoked = instant(rng.randrange(SPAN)) if rng.random() < 0.7 else None
    series, lists, start = Series(kind=CRL, signer=signer.public_key), list[Statement](), 0
    timed = rng.random() < 0.7
    while start < SPAN:
        interval = (instant(start), instant(start + rng.randint(2, 9))) if timed else None
        said = instant(start) if interval is None else interval[0]
        named = frozenset({right.certificate_id}) if revoked is not None and revoked <= said else frozenset()
        if timed and ends is not None and said > ends:
            named = frozenset()  # a timed list leaves out what has expired
        body = series.next(named, interval=interval, at=revoked or said)
        lists.append(issue_statement(body, signer))
        series = Series.of([item.body for item in lists], kind=CRL, signer=signer.public_key)
        start = start + 3 if interval is None else round((interval[1] - NOW).total_seconds())
    for at in rng.sample(instants()[: 2 * SPAN], 8):
        if ends is not None and at > ends:
            continue
        truth = "no" if revoked is not None and at >= revoked else "yes"
        served = tuple(item for item in lists if item.body.timed and item.body.in_force(at))
        known = truth
        if truth == "no" and not any(right.certificate_id in item.body.certificates for item in lists):
            known = "yes"  # no list came to name it: the rest of the one in force is the window
        assert answer(right, lists, (), at) == known
        some = sorted(rng.sample(lists, rng.randint(0, len(lists))), key=lambda item: item.body.sequence)
        for brought in ((), served):
            said = answer(right, some, brought, at)
            if truth == "yes":
                assert said != "no"
            elif said == "yes":
                # Nothing that is held names it: what it rests on was signed before the withdrawal was heard of.
                assert not any(right.certificate_id in item.body.certificates for item in (*some, *brought))


@pytest.mark.parametrize("kind", [TestKind.REVALIDATION, TestKind.ONE_TIME])
def test_what_only_its_own_time_can_tell_is_unknown_afterwards(kind: TestKind) -> None:
    """A revalidation of later shows nothing of now, and an answer to a challenge nothing at all."""
    signer = SIGNERS[0]
    test = OnlineTest(kind, signer.public_key)
    right = grant(OWNER, CLIENT, type_right(OWNER.public_key, "t"), tests=[test])
    book = StatementBook()
    if kind is TestKind.REVALIDATION:
        later = ListStatement(
            kind=kind, signer=signer.public_key, sequence=1, starts=instant(5), ends=instant(9),
            certificates=frozenset({right.certificate_id}),
        )  # fmt: skip
        book.accept(issue_statement(later, signer))
        seen = Hindsight(book, CertificatePool([right])).check(test, right.certificate_id, at=instant(6))
        assert seen.until is None
    with pytest.raises(UncheckedError, match="NO_STATEMENT"):
        Hindsight(book, CertificatePool([right])).check(test, right.certificate_id, at=instant(1))
