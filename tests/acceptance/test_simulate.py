"""`maia simulate`: hops against the thesis, chaos, and the state of validity topics (13.12 to 13.15, 21.06)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from maia.errors import NotFoundError
from maia.filters import TypedFilter, compile_filter, matches
from maia.routing import AskState, Event, HeldEvent, Packet, ToldState, distance, identifier
from maia.simulator import Network
from maia.testing import Command


@pytest.fixture
def home(tmp_path: Path) -> Command:
    """The command line."""
    return Command(tmp_path)


def test_hops_are_those_of_the_thesis(home: Command, tmp_path: Path) -> None:
    """2,000 brokers, 3 and 10 groups: both readings of whom a sub-event reaches, beside the thesis's figures."""
    picture = tmp_path / "hops.svg"
    found = home.do("simulate", "hops", "--groups", "3,10", "--runs", "4", "--picture", str(picture))
    assert found["brokers"] == 2000
    three, ten = found["hops"]
    for item, groups in ((three, 3), (ten, 10)):
        attribute, emulated = item["thesis"]
        assert item["attribute"] == pytest.approx(attribute, rel=0.2)
        assert item["emulated_all"] == pytest.approx(emulated, rel=0.1)
        # Each sub-event to its own group alone: one way to the root and one down, for each group.
        assert item["attribute"] < item["emulated_own"] < item["emulated_all"]
        assert item["emulated_own"] == pytest.approx(5.2 * groups, rel=0.15)
    text = picture.read_text("utf-8")
    assert text.startswith("<svg")
    assert text.count("<polyline") == 3


def test_a_hundred_groups_need_more_than_a_hundred_brokers(home: Command) -> None:
    """Numbers that cannot be are refused before anything is played."""
    assert home.refused("simulate", "hops", "--brokers", "10", "--groups", "50") == (2, "NUMBERS")
    assert home.refused("simulate", "scale", "--brokers", "0") == (2, "NUMBERS")
    assert home.refused("simulate", "verify", "--strategy", "never") == (2, "STRATEGY")
    assert home.refused("simulate", "state", "--choice", "oldest") == (2, "STATE_CHOICE")


@pytest.mark.requirement("8.09")
def test_chaos_breaks_no_law_and_repeats_itself(home: Command) -> None:
    """Crashes, partitions, loss, copies and disorder; the same seeds tell the same story."""
    first, second = (home.do("simulate", "chaos", "--seeds", "12", "--seed", "5") for _ in range(2))
    assert first == second
    assert first["violation"] is None
    assert {"crash", "join", "part", "storm"} <= first["moves"].keys()
    assert first["deliveries"] > 0


def asked(home: Command, *options: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Ask for the state of a validity topic; give the report, and its questions by what happened before."""
    found = home.do("simulate", "state", *options)
    return found, {item["moment"]: item for item in found["asked"]}


@pytest.mark.requirement("13.12")
def test_a_subscription_is_answered_by_the_first_holder(home: Command) -> None:
    """The first asks up to the root; the second on its branch is answered one hop away, with nothing at a publisher."""
    found, questions = asked(home)
    assert questions["first"] == {
        "moment": "first", "hops": found["way"], "publishers_asked": 2, "decision": "grant",
    }  # fmt: skip
    second = questions["second, same branch"]
    assert (second["hops"], second["publishers_asked"], second["decision"]) == (1, 0, "grant")


@pytest.mark.requirement("13.13")
def test_unknown_denies_unless_a_statement_was_brought(home: Command) -> None:
    """Caches flushed and publishers gone: unknown, hence denied; what the principal brings is taken."""
    found, questions = asked(home, "--brokers", "60")
    assert questions["first"]["hops"] == found["way"] > 1
    second = questions["second, same branch"]
    assert (second["hops"], second["publishers_asked"]) == (1, 0)
    gone = questions["publishers gone"]
    assert (gone["publishers_asked"], gone["decision"]) == (0, "grant")
    assert questions["all forgot, publishers gone"]["hops"] is None
    assert questions["all forgot, publishers gone"]["decision"] == "deny"
    assert questions["brought along"]["decision"] == "grant"


@pytest.mark.requirement("13.14")
@pytest.mark.parametrize("seed", range(1, 6))
def test_caches_that_forget_change_no_answer(home: Command, seed: int) -> None:
    """Whichever caches forgot, the decision is the same; a list that is over is purged, and denies."""
    _, questions = asked(home, "--seed", str(seed), "--brokers", "60")
    for moment in ("second, same branch", "some forgot", "publishers gone"):
        assert questions[moment]["decision"] == "grant"
    assert questions["the list is over"]["decision"] == "deny"


@pytest.mark.requirement("13.15")
@pytest.mark.parametrize(
    ("choice", "late", "chosen"),
    [("newest", "1", 9), ("newest", "0", 9), ("newest", "3", 5), ("first", "1", 5), ("first", "0", 9)],
)
def test_of_several_publishers_the_newest_or_the_first_counts(
    home: Command, choice: str, late: str, chosen: int
) -> None:
    """Answers stamped 5 and 9: by `newest` 9, unless it comes after the limit; by `first` whichever came first."""
    found, _ = asked(home, "--choice", choice, "--late", late, "--brokers", "60")
    assert found["chosen"] == chosen


def last(text: str, prices: list[int]) -> int | None:
    """The last of some prices that a filter admits, by looking at all of them."""
    wish = compile_filter(text, {"price": "integer"})
    return next((price for price in reversed(prices) if matches(wish, {"price": price})), None)


@pytest.mark.requirement("23.06")
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_subscription_with_a_filter_hears_the_last_that_matches(home: Command, seed: int) -> None:
    """`price > 10` hears 12 although 7 came later; then what comes; whoever has cached what, as by looking at all."""
    lot = random.Random(seed)
    before, after = [3, 12, 7], [11, 2]
    texts = ["price > 10", "price > 5", "price any", "price > 100"]
    if seed > 1:
        before, after = ([lot.randint(1, 20) for _ in range(count)] for count in (6, 3))
        texts = [f"price {lot.choice(['<', '>', '!=', '='])} {lot.randint(1, 20)}" for _ in range(6)]
    found = home.do(
        "simulate", "state", "--brokers", "60", "--seed", str(seed),
        *(part for text in texts for part in ("--filter", text)),
        "--prices", ",".join(map(str, before)), "--then", ",".join(map(str, after)),
    )["matches"]  # fmt: skip
    assert [item["filter"] for item in found] == texts
    for item in found:
        assert item["price"] == last(item["filter"], before)
        assert item["updates"] == [price for price in after if last(item["filter"], [price]) is not None]
        assert item["again"] == last(item["filter"], before + after)
        assert (item["hops"] is None) is (item["price"] is None)
    if seed == 1:
        assert [item["price"] for item in found] == [12, 7, 7, None]


@pytest.mark.requirement("23.06")
def test_a_filter_on_something_else_is_refused(home: Command) -> None:
    """A subscription asks about what the type has; numbers that cannot be are refused as well."""
    assert home.refused("simulate", "state", "--brokers", "9", "--filter", "colour = 3")[0] == 1
    assert home.refused("simulate", "state", "--brokers", "9", "--filter", "price >")[0] == 1
    assert home.refused("simulate", "state", "--filter", "price > 1", "--prices", "x") == (2, "NUMBERS")


KEY = identifier(b"a topic")
NEAR, MIDDLE, ROOT = sorted("abc", key=lambda name: -distance(identifier(name.encode()), KEY))


def three(*, price: int | None = 4) -> Network:
    """Three brokers in a row; a client of the last one published a price, one of the first subscribed."""
    net = Network()
    net.lay([(NEAR, MIDDLE), (MIDDLE, ROOT)])
    net.at(ROOT).advertise("camera", KEY, now=net.now, bound=wish("price < 50"))
    if price is not None:
        net.at(ROOT).publish("camera", KEY, {"price": price}, now=net.now)
    net.at(NEAR).subscribe("reader", KEY, wish("price > 3"), now=net.now)
    net.flush(NEAR)
    net.settle()
    return net


def wish(text: str) -> TypedFilter:
    """A filter on prices."""
    return compile_filter(text, {"price": "integer"})


def said(net: Network, name: str, *messages: AskState | ToldState) -> list[Any]:
    """Say something to a broker as if the one before or behind it did; give what it answers."""
    target, source = net.at(name), net.place(MIDDLE if name != MIDDLE else NEAR)
    target.receive(Packet(source, target.own, 1, 0, 0, 0, None, asks=True), now=net.now)
    received = target.take_packets()[-1].received
    for number, message in enumerate(messages, received + 1):
        target.receive(Packet(source, target.own, 1, 0, number, 0, message), now=net.now)
    return [packet.message for packet in target.take_packets() if packet.message is not None]


@pytest.mark.requirement("13.13")
def test_a_neighbour_hears_the_state_of_what_it_subscribed_to_and_no_other() -> None:
    """A question within its subscription is answered; a wider one is refused, like one of a client that has none."""
    net = three()
    (answer,) = said(net, ROOT, AskState(KEY, 1, wish("price > 3 and price < 9")))
    assert answer.held.event.values == {"price": 4}
    (refused,) = said(net, ROOT, AskState(KEY, 2, wish("price any")))
    assert (refused.held, net.at(ROOT).refused) == (None, 1)
    with pytest.raises(NotFoundError, match="NOT_SUBSCRIBED"):
        net.at(ROOT).states.ask("reader", KEY, now=net.now)


@pytest.mark.requirement("13.13")
@pytest.mark.parametrize(
    ("number", "source", "values", "stamp", "taken"),
    [
        (0, "parent", {"price": 7}, 0.0, True),
        (0, "parent", {"price": 2}, 0.0, False),
        (0, "parent", {"price": 7}, 1e9, False),
        (0, "other", {"price": 7}, 0.0, False),
        (99, "parent", {"price": 7}, 0.0, False),
    ],
    ids=["asked for", "does not match", "from the future", "from another broker", "not asked"],
)
def test_an_answer_counts_from_whom_was_asked_and_to_the_question(
    number: int, source: str, values: dict[str, object], stamp: float, taken: bool
) -> None:
    """Who was not asked, what does not match and what is of no possible time is no answer: the state stays unknown."""
    net = three(price=None)
    near = net.at(NEAR)
    near.states.ask("reader", KEY, now=net.now)
    (question,) = [packet.message for packet in near.take_packets() if isinstance(packet.message, AskState)]
    held = HeldEvent(net.at(ROOT).lane(KEY), Event(1, stamp, values))
    told = ToldState(KEY, question.number + number, held)
    place = net.place(MIDDLE) if source == "parent" else net.place(ROOT)
    near.states.take(place, told, now=net.now)
    near.states.tick(now=net.now + 100)
    (answer,) = near.states.take_answers()
    assert (answer.held == held) is taken
    assert taken or answer.held is None
