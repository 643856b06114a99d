"""Validity over the log: a topic for each issuer, beats, state before updates, caches that forget (13.10 to 13.14)."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_homes import READ, TwoHomes

import maia
from maia.authority import (
    Root,
    SignatureCache,
    StatementBook,
    Verifier,
    VerifierLimits,
    ask,
    parse_statement,
    verify_statement,
)
from maia.encoding import Sexp
from maia.errors import MaiaError
from maia.principals import Certificate, TestKind
from maia.testing import Command, People, at, grant, listing, numberplate_homes, online

SECOND = timedelta(seconds=1)
CRL = TestKind.CRL
RIGHT: Sexp = (b"read",)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoHomes]:
    """Give an owner and a reader over one log."""
    made = TwoHomes(numberplate_homes(tmp_path), tmp_path)
    yield made
    made.domain.close()


def beat(two: TwoHomes, *, period: int, lead: int) -> None:
    """Let the owner sign its lists in a rhythm."""
    folder = two.pito.home / "policy"
    folder.mkdir(exist_ok=True)
    (folder / "domain.toml").write_text(f"period = {period}\nlead = {lead}\n", "utf-8")


def timed(home: Command) -> list[dict[str, Any]]:
    """List the timed lists that a home holds, oldest first."""
    shown = [item for item in home.do("statement", "show")["statements"] if item["ends"]]
    return sorted(shown, key=lambda item: str(item["starts"]))


def start_of(shown: dict[str, Any]) -> datetime:
    """Tell when a list begins."""
    return datetime.fromisoformat(shown["starts"])


def renew(two: TwoHomes, moment: datetime) -> None:
    """Open the owner's home at an instant: it signs the list that is due, if one is."""
    with maia.open(two.pito.home) as pito:
        pito.follow(at=moment)


def lane(two: TwoHomes) -> dict[str, bytes]:
    """Read what the log holds of validity statements."""
    return {str(path): path.read_bytes() for path in two.log.glob("_lanes/statement/**/*") if path.is_file()}


def records(two: TwoHomes) -> int:
    """Count the messages about validity in the log."""
    return sum(name.endswith(".record") for name in lane(two))


def answer(domain: Any, who: str, moment: datetime) -> str:
    """Say whether a broker delivers to somebody."""
    try:
        domain.deliver_plan(READ, client=domain.prove(who), commits=(), at=moment)
    except MaiaError as error:
        return str(error.code)
    return "yes"


# ---------------------------------------------------------------------- active revocation (row 13.10)


class Link:
    """What carries the owner's log to a reader that has one of its own, until it is cut."""

    def __init__(self, two: TwoHomes) -> None:
        """Point the reader to a log of its own."""
        self.source, self.target = two.log, two.log.with_name("link")
        self.cut = False
        file = two.reader.home / "maia.toml"
        file.write_text(file.read_text("utf-8").replace('log = "../log"', 'log = "../link"'), "utf-8")
        two.domain.close()
        two.domain = maia.open(two.reader.home)

    def carry(self) -> None:
        """Copy what is new."""
        if not self.cut:
            shutil.copytree(self.source, self.target, dirs_exist_ok=True)


@pytest.mark.requirement("13.10")
@pytest.mark.threat("T27")
def test_a_missed_heartbeat_ends_access(two: TwoHomes) -> None:
    """A beat every 5 s, sent 2 s early; the link is cut at 12, the owner beats on: access ends at 17, for good."""
    beat(two, period=5, lead=2)
    two.give("jones")
    link, start = Link(two), start_of(timed(two.pito)[0])
    seen = {}
    for second in range(25):
        renew(two, start + second * SECOND)
        link.cut = second >= 12
        link.carry()
        seen[second] = two.reads("jones", start + second * SECOND)
    assert [second for second, found in seen.items() if found == "yes"] == list(range(17))
    assert {seen[second] for second in range(17, 25)} == {"NO_STATEMENT"}
    link.cut = False
    link.carry()
    assert two.reads("jones", start + 25 * SECOND) == "yes"


@pytest.mark.requirement("13.10")
def test_a_registered_verifier_gets_the_state_and_is_told_of_each_change(two: TwoHomes) -> None:
    """State first, then each revocation before the list in force is over; who is not named goes on."""
    beat(two, period=3600, lead=60)
    jones = two.give("jones")
    two.give("kim")
    assert (two.reads("jones"), two.reads("kim")) == ("yes", "yes")
    before = records(two)
    in_force = datetime.fromisoformat(two.pito.do("revoke", jones, "--yes")["by"])
    assert records(two) == before + 1
    assert in_force > datetime.now(UTC)  # the list that was signed before still lasts
    assert (two.reads("jones"), two.reads("kim")) == ("REVOKED", "yes")
    assert two.reads("jones", in_force - SECOND) == "REVOKED"


# ---------------------------------------------------------------------- one list a period (row 13.11)


@pytest.mark.requirement("13.11")
def test_one_list_a_period_covers_a_thousand_certificates(two: TwoHomes) -> None:
    """1,000 certificates, 3 revoked: one message a period, which names 3; after one of them expired, 2."""
    beat(two, period=60, lead=0)
    two.give("jones")
    start = start_of(timed(two.pito)[0])
    pito = maia.open(two.pito.home).home.signer("PITO")
    people = People(*(f"client{number}" for number in range(1_000)))
    ends = start + 100 * SECOND
    many = [
        grant(pito, people[f"client{number}"], RIGHT, tests=[online(CRL, pito)], valid=(start, None))
        for number in range(999)
    ]
    many.append(grant(pito, people.client999, RIGHT, tests=[online(CRL, pito)], valid=(start, ends)))
    for certificate in (many[1], many[500], many[999]):
        file = two.log.with_name("some.cert")
        file.write_bytes(certificate.raw)
        two.pito.do("revoke", str(file), "--yes")
    said, named = records(two), []
    for period in (1, 2, 3):
        for second in (0, 1, 30, 59):
            renew(two, start + (60 * period + second) * SECOND)
        newest = timed(two.pito)[-1]
        assert start_of(newest) == start + 60 * period * SECOND
        named.append(len(newest["certificates"]))
        assert records(two) == said + period, "one signed message a period, whoever asks how often"
        assert decided(two, pito.public_key, many, start + (60 * period + 1) * SECOND) == {
            "ALLOWED": 997, "REVOKED": 3 if period == 1 else 2, **({} if period == 1 else {"EXPIRED": 1}),
        }  # fmt: skip
    assert named == [3, 2, 2]
    assert decided(two, pito.public_key, many, start + 241 * SECOND) == {"NO_STATEMENT": 999, "EXPIRED": 1}


def decided(two: TwoHomes, owner: Any, certificates: list[Certificate], when: datetime) -> dict[str, int]:
    """Count how a verifier decides on each certificate that knows nothing but the lists in the owner's home."""
    book = StatementBook()
    for path in sorted(two.pito.home.glob("*.crl")):
        path.unlink()
    with maia.open(two.pito.home) as opened:
        for raw in opened.home.statements.load().raw_statements():
            book.accept(verify_statement(parse_statement(raw)))
    verifier = Verifier([Root(subject=owner)], statements=book)
    found: dict[str, int] = {}
    for certificate in certificates:
        made = verifier.decide(ask(RIGHT), principal=certificate.body.subject, evidence=[certificate], at=when)  # type: ignore[arg-type]
        reason = "ALLOWED" if made.allowed else made.reason
        found[reason] = found.get(reason, 0) + 1
    return found


# ---------------------------------------------------------------------- state first (row 13.12)


@pytest.mark.requirement("13.12")
def test_subscribing_is_asking_for_the_state_and_updates_follow(two: TwoHomes) -> None:
    """A broker that was never there has the current list without a new message; then it hears what is said."""
    jones = two.give("jones")
    late = Command(two.log.with_name("late"))
    shutil.copytree(two.reader.home, late.home)
    (late.home / "statements").unlink(missing_ok=True)
    held = lane(two)
    assert late.do("statement", "show")["statements"] == []
    with closing(maia.open(late.home)) as broker:
        client = broker.prove("jones")
        assert broker.deliver_plan(READ, client=client, commits=()).subscriptions
        assert lane(two) == held, "nothing was said for the newcomer"
        (current,) = late.do("statement", "show")["statements"]
        assert current["sequence"] == max(item["sequence"] for item in timed(two.pito))
        two.pito.do("revoke", jones, "--yes")
        with pytest.raises(MaiaError) as refused:
            broker.deliver_plan(READ, client=client, commits=())
        assert refused.value.code == "REVOKED"


@pytest.mark.requirement("13.12")
def test_a_topic_without_a_state_denies_and_strangers_have_none(two: TwoHomes) -> None:
    """No list in the topic: no. A list of somebody whom no certificate names is no state here, and is not kept."""
    two.give("jones")
    shutil.rmtree(two.log / "_lanes" / "statement")
    assert two.reads("jones") == "NO_STATEMENT"
    evil = Command(two.log.with_name("evil"))
    evil.do("domain", "init", str(evil.home), "--key")
    file = evil.home / "maia.toml"
    file.write_text(file.read_text("utf-8").replace('log = "log"', 'log = "../log"'), "utf-8")
    before = records(two)
    evil.do("statement", "crl", "--from", "domain", "--until", "+1h")
    assert records(two) == before + 1
    assert two.reads("jones") == "NO_STATEMENT"
    assert two.reader.do("statement", "show")["statements"] == []
    renew(two, datetime.now(UTC))  # the owner says again what was taken away
    assert two.reads("jones") == "yes"


@pytest.mark.requirement("13.12")
@pytest.mark.requirement("22.13")
@pytest.mark.threat("T27")
def test_a_revocation_by_itself_is_no_state(two: TwoHomes) -> None:
    """Who hears a plain list only, because the timed ones are kept from it, takes no silence of it for a yes."""
    jones = two.give("jones")
    two.give("kim")
    (first,) = two.log.glob("_lanes/statement/**/*.record")
    two.pito.do("revoke", jones, "--yes")
    late = two.log.with_name("late")
    shutil.copytree(two.reader.home, late)
    (late / "statements").unlink(missing_ok=True)
    kept = first.read_bytes()
    first.unlink()
    with closing(maia.open(late)) as broker:
        now = datetime.now(UTC)
        for moment in (now, now + timedelta(days=30)):
            assert {answer(broker, who, moment) for who in ("jones", "kim")} == {"NO_STATEMENT"}
        (held,) = Command(late).do("statement", "show")["statements"]
        assert held["only_revokes"] is True
        first.write_bytes(kept)
    with closing(maia.open(late)) as broker:
        later = now + timedelta(days=30, minutes=1)
        assert {answer(broker, who, later) for who in ("jones", "kim")} == {"NO_STATEMENT"}
    assert (two.reads("jones"), two.reads("kim")) == ("REVOKED", "yes")


@pytest.mark.requirement("13.04")
def test_a_signer_that_went_over_to_timed_lists_is_held_to_them(two: TwoHomes) -> None:
    """Its plain list of before confirms nothing any more, also at a broker that comes when all timed ones are over."""
    folder = two.pito.home / "policy"
    folder.mkdir(exist_ok=True)
    (folder / "domain.toml").write_text("period = 0\n", "utf-8")
    two.give("jones")
    assert timed(two.pito) == []
    assert two.reads("jones") == "yes"
    beat(two, period=60, lead=5)
    two.give("kim")
    (last,) = timed(two.pito)
    late = two.log.with_name("late")
    shutil.copytree(two.reader.home, late)
    (late / "statements").unlink()
    ends = datetime.fromisoformat(last["ends"])
    with closing(maia.open(late)) as broker:
        assert answer(broker, "jones", ends) == two.reads("jones", ends) == "NO_STATEMENT"


# ---------------------------------------------------------------------- caches may forget (row 13.14)

CACHES = ("statements", "pushed")
"""Files of a home that hold what the log says, and nothing else."""


def forget(rng: random.Random, home: Path) -> bool:
    """Drop some of what a broker remembers; tell whether it starts anew as well, with nothing in memory."""
    for name in CACHES:
        if rng.random() < 0.5:
            (home / name).unlink(missing_ok=True)
    return rng.random() < 0.5


@pytest.mark.requirement("13.14")
@pytest.mark.parametrize("seed", range(3))
def test_a_broker_that_forgets_at_random_answers_as_one_that_never_does(two: TwoHomes, seed: int) -> None:
    """Rights come, go and lapse; one broker drops its files and its memory at any moment: every answer is the same."""
    rng = random.Random(seed)
    beat(two, period=60, lead=5)
    given = {name: two.give(name) for name in ("ann", "bob", "cid")}
    wild = two.log.with_name("wild")
    shutil.copytree(two.reader.home, wild)
    forgetful = maia.open(wild)
    moment, answers = start_of(timed(two.pito)[0]), []
    for _ in range(25):
        moment += rng.choice((1, 7, 30, 70)) * SECOND
        if rng.random() < 0.8:  # sometimes the owner is silent, and what relies on its lists lapses
            renew(two, moment)
        if rng.random() < 0.2 and given:
            name = rng.choice(sorted(given))
            with suppress(MaiaError), maia.open(two.pito.home) as pito:
                pito.revoke(given.pop(name))
        if forget(rng, wild):
            forgetful.close()
            forgetful = maia.open(wild)
        for name in ("ann", "bob", "cid"):
            calm = two.reads(name, moment)
            assert answer(forgetful, name, moment) == calm
            answers.append(calm)
    forgetful.close()
    assert {"yes", "REVOKED", "NO_STATEMENT"} <= set(answers)


@pytest.mark.requirement("13.14")
def test_lists_that_are_over_are_purged(two: TwoHomes) -> None:
    """A broker keeps the list in force, its successor and the newest withdrawal, however many came before."""
    beat(two, period=60, lead=5)
    two.give("jones")
    start = start_of(timed(two.pito)[0])
    for minute in range(40):
        renew(two, start + minute * timedelta(minutes=1))
        assert two.reads("jones", start + minute * timedelta(minutes=1)) == "yes"
    held = timed(two.reader)
    over = [item for item in held if datetime.fromisoformat(item["ends"]) < start + timedelta(minutes=33)]
    assert 1 <= len(held) <= 9
    assert len(over) <= 1, "but for the one whose number later lists have to exceed"


P = People("met", "smith", "jones", "kim", "evil")
STEPS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["smith", "jones", "kim"]), st.booleans(), st.booleans()),
    min_size=1,
    max_size=30,
)


@pytest.mark.requirement("13.14")
@settings(deadline=None, max_examples=60)
@given(steps=STEPS, revoked=st.sets(st.sampled_from(["smith", "jones", "kim"])), memory=st.integers(1, 3))
def test_a_verifier_that_remembers_next_to_nothing_decides_as_one_that_remembers_all(
    steps: list[tuple[int, str, bool, bool]], revoked: set[str], memory: int
) -> None:
    """Signatures and grants are evicted at every turn, or the whole cache is lost: no decision comes out otherwise."""
    rights = {name: grant(P.met, P[name], RIGHT, tests=[online(CRL, P.met)]) for name in ("smith", "jones", "kim")}
    forged = grant(P.evil, P.smith, RIGHT)
    lists = [
        listing(CRL, P.met, [rights[name] for name in sorted(revoked)] if turn else [], sequence=turn + 1,
                valid=(turn * 5, turn * 5 + 5))
        for turn in range(2)
    ]  # fmt: skip
    book = StatementBook()
    for item in lists:
        book.accept(item)
    root = [Root(subject=P.met.public_key)]
    calm = Verifier(root, statements=book)
    small = VerifierLimits(max_memory=memory)
    wild = Verifier(root, statements=book, limits=small, signatures=SignatureCache(memory))
    for second, name, anew, beside in steps:
        if anew:
            wild = Verifier(root, statements=book, limits=small, signatures=SignatureCache(memory))
        evidence = [rights[name], *([forged, *rights.values()] if beside else [])]
        asked = {"principal": P[name].public_key, "evidence": evidence, "at": at(second)}
        ours, theirs = wild.decide(ask(RIGHT), **asked), calm.decide(ask(RIGHT), **asked)  # type: ignore[arg-type]
        assert (ours.allowed, ours.reason) == (theirs.allowed, theirs.reason)
        expected = "NO_STATEMENT" if second >= 10 else "REVOKED" if second >= 5 and name in revoked else None
        assert ours.allowed if expected is None else ours.reason == expected
