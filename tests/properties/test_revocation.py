"""Laws of revocation: whatever is lost, late or out of order, nothing is good after the printed window."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import given
from strategies_trust import NOW, SIGNERS, randoms

from maia.authority import ListStatement, Rhythm, Statement, StatementBook, exposure_window, issue_statement
from maia.errors import VerificationError
from maia.principals import Authorisation, Certificate, CertificateId, OnlineTest, Period, TestKind, issue

ISSUER = SIGNERS[0]
TEST = OnlineTest(TestKind.CRL, ISSUER.public_key)
SPAN = 40


def instant(second: int) -> datetime:
    """Count seconds from now."""
    return NOW + timedelta(seconds=second)


def right(number: int) -> Certificate:
    """Issue a right that obeys the issuer's list; the number makes it another certificate."""
    body = Authorisation(
        issuer=ISSUER.public_key, subject=SIGNERS[1].public_key, delegate=False, tag=(b"read", b"%d" % number),
        period=Period(None, instant(10_000)), tests=(TEST,),
    )  # fmt: skip
    return issue(body, ISSUER)


RIGHTS = tuple(right(number) for number in range(3))


@dataclass
class Issuer:
    """Signs lists at a rhythm, and withdrawals at once; remembers all it signed."""

    rhythm: Rhythm
    sequence: int = 0
    last: datetime | None = None
    withdrawn: set[CertificateId] = field(default_factory=set)
    signed: list[Statement] = field(default_factory=list)

    def _sign(self, starts: datetime | None, ends: datetime | None) -> Statement:
        self.sequence += 1
        body = ListStatement(
            kind=TestKind.CRL, signer=ISSUER.public_key, sequence=self.sequence,
            certificates=frozenset(self.withdrawn), starts=starts, ends=ends,
        )  # fmt: skip
        self.signed.append(issue_statement(body, ISSUER))
        return self.signed[-1]

    def tick(self, second: int) -> list[Statement]:
        """Sign what is due."""
        due = self.rhythm.due(self.last, at=instant(second))
        if due is None:
            return []
        self.last = due[1]
        return [self._sign(*due)]

    def withdraw(self, certificate: Certificate) -> list[Statement]:
        """Withdraw, at once."""
        self.withdrawn.add(certificate.certificate_id)
        return [self._sign(None, None)]

    def book(self) -> StatementBook:
        """Give a book of all that is signed: the worst that any verifier may hold."""
        return filled(self.signed)


def filled(statements: Iterable[Statement]) -> StatementBook:
    """Accept what can be accepted."""
    book = StatementBook()
    for statement in statements:
        offer(book, statement)
    return book


def offer(book: StatementBook, statement: Statement) -> None:
    """Accept a statement, or not."""
    try:
        book.accept(statement)
    except VerificationError:
        return


def good(book: StatementBook, certificate: Certificate, second: int) -> bool:
    """Ask the book."""
    try:
        book.check(TEST, certificate.certificate_id, at=instant(second))
    except VerificationError:
        return False
    return True


def random_rhythm(rng: random.Random) -> Rhythm:
    """Draw a rhythm."""
    period = rng.randrange(1, 9)
    return Rhythm(period=timedelta(seconds=period), lead=timedelta(seconds=rng.randrange(period)))


@given(randoms)
def test_nothing_is_good_after_the_printed_window(rng: random.Random) -> None:
    """Messages are lost, late, repeated and out of order; the issuer itself may sleep for a while."""
    issuer, held = Issuer(random_rhythm(rng)), StatementBook()
    revoked: dict[Certificate, tuple[int, timedelta]] = {}
    on_the_way: list[tuple[int, Statement]] = []
    asleep = rng.randrange(SPAN) if rng.random() < 0.3 else None
    for second in range(SPAN):
        said: list[Statement] = []
        if asleep is None or not asleep <= second < asleep + 6:
            said += issuer.tick(second)
            if rng.random() < 0.1:
                target = rng.choice(RIGHTS)
                if target not in revoked:
                    window = exposure_window(target, at=instant(second), statements=issuer.book()).window
                    assert window is not None
                    revoked[target] = (second, window)
                    said += issuer.withdraw(target)
        for statement in said:
            copies = rng.choice((0, 1, 1, 1, 2))
            on_the_way += [(second + rng.choice((0, 0, 1, 3, 9)), statement) for _ in range(copies)]
        arrived = [item for item in on_the_way if item[0] <= second]
        on_the_way = [item for item in on_the_way if item[0] > second]
        rng.shuffle(arrived)
        for _, statement in arrived:
            offer(held, statement)
        for target, (since, window) in revoked.items():
            if instant(second) >= instant(since) + window:
                assert not good(held, target, second), (since, window, second)
            assert window <= issuer.rhythm.window


@given(randoms)
def test_whoever_hears_everything_in_time_loses_nothing_and_knows_at_once(rng: random.Random) -> None:
    """Without a fault, a right is good until the very second of its withdrawal, and never again."""
    issuer, held = Issuer(random_rhythm(rng)), StatementBook()
    ends = {target: rng.randrange(1, SPAN) for target in RIGHTS}
    for second in range(SPAN):
        said = issuer.tick(second)
        for target in [target for target, end in ends.items() if end == second]:
            said += issuer.withdraw(target)
        for statement in said:
            held.accept(statement)
        for target, end in ends.items():
            assert good(held, target, second) is (second < end)
