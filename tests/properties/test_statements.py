"""Validity statements against a naive model: a plain list of accepted intervals, searched from end to end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from strategies_trust import LONG, NOW, SIGNERS, randoms

from maia.authority import (
    ListStatement,
    Statement,
    StatementBook,
    issue_statement,
    parse_statement,
    unsafe_sign_statement,
    verify_statement,
)
from maia.encoding import encode
from maia.errors import MaiaError, RevokedError, UncheckedError, VerificationError
from maia.principals import CertificateId, OnlineTest, TestKind

IDS = tuple(CertificateId(bytes([number]) * 32) for number in range(1, 5))
LISTS = (TestKind.CRL, TestKind.REVALIDATION)
HISTORIES = 5_000 if LONG else 300
SPAN = 40


def instant(seconds: int) -> datetime:
    """Count seconds from now."""
    return NOW + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Entry:
    """A list as the model sees it: numbers only."""

    signer: int
    kind: TestKind
    sequence: int
    listed: frozenset[CertificateId]
    start: int | None
    end: int | None

    def sign(self) -> Statement:
        """Make the real statement."""
        body = ListStatement(
            kind=self.kind, signer=SIGNERS[self.signer].public_key, sequence=self.sequence, certificates=self.listed,
            starts=None if self.start is None else instant(self.start),
            ends=None if self.end is None else instant(self.end),
        )  # fmt: skip
        return issue_statement(body, SIGNERS[self.signer])


@dataclass
class Model:
    """What a patient person with a pencil would keep."""

    accepted: list[Entry] = field(default_factory=list)

    def track(self, entry: Entry) -> list[Entry]:
        """List what was accepted of one signer and kind, timed or plain alike to the entry."""
        return [
            old
            for old in self.accepted
            if (old.signer, old.kind, old.start is None) == (entry.signer, entry.kind, entry.start is None)
        ]

    def accept(self, entry: Entry) -> str:
        """Say what becomes of a list: accepted, or the code of its refusal."""
        track = self.track(entry)
        if entry in track:
            return "again"
        if entry.start is None:
            if any(old.sequence >= entry.sequence for old in track):
                return "STATEMENT_ROLLBACK"
            self.accepted = [old for old in self.accepted if old not in track]
        else:
            if any(old.start < entry.end and entry.start < old.end for old in track):
                return "STATEMENT_OVERLAP"
            if any(old.start < entry.start and old.sequence >= entry.sequence for old in track):
                return "STATEMENT_ROLLBACK"
        self.accepted.append(entry)
        return "accepted"

    def check(self, signer: int, kind: TestKind, certificate: CertificateId, at: int) -> str:
        """Say what a test gives: good, revoked, or unchecked."""
        of_track = [old for old in self.accepted if (old.signer, old.kind) == (signer, kind)]
        timed = [old for old in of_track if old.start is not None]
        serving = [old for old in timed if old.start <= at < old.end] if timed else of_track
        if not serving:
            return "unchecked"
        (only,) = serving
        good = (certificate in only.listed) is (kind is TestKind.REVALIDATION)
        newer = [old for old in of_track if old.start is None and old is not only and old.sequence >= only.sequence]
        good = good and not any(certificate in old.listed for old in newer)
        return "good" if good else "revoked"


def random_entry(rng: random.Random) -> Entry:
    """Draw a list; half of them line up with others, so that equality of ends is met often."""
    kind = rng.choice(LISTS)
    listed = frozenset(rng.sample(IDS, rng.randrange(3)))
    if kind is TestKind.CRL and rng.random() < 0.2:
        return Entry(rng.randrange(2), kind, rng.randrange(6), listed, None, None)
    start = rng.choice((rng.randrange(SPAN), rng.randrange(0, SPAN, 5)))
    return Entry(
        rng.randrange(2), kind, rng.randrange(8), listed, start, start + rng.choice((1, 5, rng.randrange(1, 12)))
    )


def accept(book: StatementBook, entry: Entry) -> str:
    """Offer a list to the book."""
    try:
        book.accept(entry.sign())
    except VerificationError as error:
        return error.code
    return "accepted"


def check(book: StatementBook, signer: int, kind: TestKind, certificate: CertificateId, at: int) -> str:
    """Ask the book."""
    try:
        book.check(OnlineTest(kind, SIGNERS[signer].public_key), certificate, at=instant(at))
    except RevokedError:
        return "revoked"
    except UncheckedError:
        return "unchecked"
    return "good"


def test_random_histories_give_what_the_model_gives() -> None:
    """Every list is accepted or refused alike, and after each one random questions are answered alike."""
    rng = random.Random(13)
    seen: dict[str, int] = {}
    for _ in range(HISTORIES):
        book, model, held = StatementBook(), Model(), []
        for _ in range(rng.randrange(1, 16)):
            entry = rng.choice(held) if held and rng.random() < 0.1 else random_entry(rng)
            held.append(entry)
            wanted = model.accept(entry)
            found = accept(book, entry)
            assert found == ("accepted" if wanted == "again" else wanted), (held, wanted)
            for _ in range(4):
                question = (rng.randrange(2), rng.choice(LISTS), rng.choice(IDS), rng.randrange(-2, SPAN + 14))
                answer = check(book, *question)
                assert answer == model.check(*question), (held, question)
                seen[answer] = seen.get(answer, 0) + 1
            seen[wanted] = seen.get(wanted, 0) + 1
    assert min(seen.values()) > HISTORIES // 10, seen


@given(randoms)
def test_a_book_survives_a_restart(rng: random.Random) -> None:
    """What was written down and read again answers every question, and refuses every list, as before."""
    book = StatementBook()
    for _ in range(rng.randrange(1, 12)):
        accept(book, random_entry(rng))
    again = StatementBook()
    for raw in book.raw_statements():
        again.accept(verify_statement(parse_statement(raw)))
    questions = [(s, kind, IDS[0], at) for s in range(2) for kind in LISTS for at in range(SPAN)]
    assert [check(again, *question) for question in questions] == [check(book, *question) for question in questions]
    for _ in range(6):
        entry = random_entry(rng)
        assert accept(again, entry) == accept(book, entry)


@given(randoms)
def test_forgetting_the_past_changes_nothing_to_come(rng: random.Random) -> None:
    """After the lists of the past are dropped, present and future answers and refusals stay as they were."""
    book, forgetful = StatementBook(), StatementBook()
    for _ in range(rng.randrange(1, 12)):
        entry = random_entry(rng)
        accept(book, entry)
        accept(forgetful, entry)
    now = rng.randrange(SPAN)
    forgetful.forget_before(instant(now))
    for at in range(now, SPAN + 12):
        for kind in LISTS:
            assert check(forgetful, 0, kind, IDS[0], at) == check(book, 0, kind, IDS[0], at)
    for _ in range(8):
        entry = random_entry(rng)
        if entry.start is not None and entry.start >= now:
            assert accept(forgetful, entry) == accept(book, entry), (entry, now)


@given(randoms)
def test_assurance_is_the_last_instant_that_is_still_good(rng: random.Random) -> None:
    """assured_until is the end of the unbroken run of lists that confirm a certificate."""
    book, model = StatementBook(), Model()
    for _ in range(rng.randrange(1, 14)):
        entry = random_entry(rng)
        if entry.start is not None:
            model.accept(entry)
            accept(book, entry)
    kind, at = rng.choice(LISTS), rng.randrange(SPAN)
    end = at
    while model.check(0, kind, IDS[0], end) == "good":
        end += 1
    found = book.assured_until(OnlineTest(kind, SIGNERS[0].public_key), IDS[0], at=instant(at))
    assert found == instant(end)


@given(randoms)
def test_a_statement_is_read_as_it_was_signed(rng: random.Random) -> None:
    """parse∘encode is the identity on statements, and a flipped bit refuses them."""
    entry = random_entry(rng)
    statement = entry.sign()
    read = parse_statement(statement.raw)
    assert read.body == statement.body
    assert encode(read.body.to_sexp()) in statement.raw
    place = rng.randrange(len(statement.raw))
    changed = bytearray(statement.raw)
    changed[place] ^= 1 << rng.randrange(8)
    with pytest.raises(MaiaError):
        verify_statement(parse_statement(bytes(changed)))


@given(randoms)
def test_a_list_signed_by_another_key_is_no_statement(rng: random.Random) -> None:
    """Only the key that a list names can have signed it."""
    entry = random_entry(rng)
    raw = unsafe_sign_statement(entry.sign().body, SIGNERS[5])
    with pytest.raises(VerificationError, match="WRONG_SIGNER"):
        verify_statement(parse_statement(raw))
