"""Conditions: what is accepted, what is refused and where, and that nothing but true is true."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from maia.errors import EncodingError, UnavailableError, UsageError
from maia.policy import (
    Atom,
    Condition,
    ConditionLimits,
    ConditionSyntaxError,
    Constant,
    Environment,
    Hours,
    Occasion,
    Predicate,
    RateLimit,
    compile_condition,
    conditions_engine,
    parse_rate,
)
from maia.policy.conditions_tree import read_tree
from maia.testing import at

DUTY = frozenset((Predicate("on_duty", 1), Predicate("emergency", 0), Predicate("assigned", 2)))
NOON = at("2026-07-01T11:00")  # a Wednesday, noon in London


def occasion(when: datetime = NOON, *, action: str = "publish") -> Occasion:
    """Somebody's use of a right."""
    return Occasion(action=action, at=when, principal="ab12", event_type="uk.gov.pito.Numberplate")


def holds(source: str, *, when: datetime = NOON, action: str = "publish", event=None, ask=None) -> bool:
    """Compile and evaluate."""
    condition = compile_condition(source, facts=DUTY)
    options = {} if ask is None else {"ask": ask}
    return condition.holds(occasion(when, action=action), event=event, **options)


TRUE = {
    "the action": 'action == "publish"',
    "the principal": 'principal == "ab12"',
    "the type": 'event_type.startsWith("uk.gov.")',
    "the hour of a zone": "now.hour('Europe/London') == 12 && now.hour('UTC') == 11",
    "the clock of a zone": "now.clock('Europe/London') == '12:00' && now.minute('UTC') == 0",
    "the day of the week": "now.weekday('Europe/London') == 3",
    "the date": "now.date('Europe/London') == '2026-07-01'",
    "an instant": "now > timestamp('2026-01-01T00:00:00Z') && now < timestamp('2027-01-01T00:00:00Z')",
    "a stretch of time": "now - timestamp('2026-06-30T11:00:00Z') <= duration('24h')",
    "a value of the event": "event['3265'] == 'AE05 XYZ' && event['7'] > 30",
    "a value that may be missing": "!('8' in event) || event['8'] > 3",
    "a pattern": "event['3265'].matches('^AE[0-9]{2} ')",
    "one of several": "action in ['publish', 'subscribe']",
    "a choice": "event['7'] > 30 ? action == 'publish' : false",
    "an error that does not matter": "1 / 0 == 1 || true",
}
EVENT = {"3265": "AE05 XYZ", "7": 42}


@pytest.mark.parametrize("source", TRUE.values(), ids=TRUE.keys())
def test_what_a_condition_can_say(source: str):
    """Every declared input and operation is there."""
    assert holds(source, event=EVENT)


DENIED = {
    "false": "false",
    "a division by zero": "1 / 0 == 1",
    "a value that is missing": "event['8'] > 3",
    "a value of another type": "event['3265'] > 3",
    "an overflow": "9223372036854775807 + 1 > 0",
    "an instant that is none": "now > timestamp('yesterday')",
    "a pattern that is none": "event['3265'].matches('(')",
    "the negation of an error": "!(event['8'] > 3)",
}


@pytest.mark.parametrize("source", DENIED.values(), ids=DENIED.keys())
def test_anything_but_true_denies(source: str):
    """False, an error and the negation of an error are all no."""
    assert not holds(source, event=EVENT)


def test_without_an_event_a_condition_on_events_denies():
    """There is nothing that it could be true of."""
    assert not holds("event['7'] > 30 || true")
    assert holds("event['7'] > 30 || true", event={})


REFUSED = {
    "an undeclared name": ("owner == 'x'", "CONDITION_NAME", 1, 1),
    "an undeclared function": ("true && is_admin(principal)", "CONDITION_NAME", 1, 17),
    "a fact with another number of parameters": ("on_duty(principal, 'x')", "CONDITION_NAME", 1, 8),
    "types that do not fit": ("action ==\n  1", "CONDITION_TYPE", 1, 8),
    "a result that is no boolean": ("now.hour('UTC')", "CONDITION_TYPE", 1, 1),
    "a result of unknown type": ("event['7']", "CONDITION_TYPE", 1, 1),
    "no expression": ("", "CONDITION_SYNTAX", 1, 1),
    "half an expression": ("action == ", "CONDITION_SYNTAX", 1, 11),
    "a zone that does not exist": ("now.hour('Mars/Olympus') < 3", "CONDITION_ZONE", 1, 10),
    "a zone that is not written out": ("now.hour(principal) < 3", "CONDITION_REFUSED", 1, 9),
    "a pattern that is not written out": ("action.matches(principal)", "CONDITION_REFUSED", 1, 15),
    "the system's zone": ("true &&\nnow.getHours() < 3", "CONDITION_REFUSED", 2, 13),
    "a field": ("event.speed > 3", "CONDITION_REFUSED", 1, 6),
    "the whole event": ("size(event) > 0", "CONDITION_REFUSED", 1, 6),
    "a uid that is not written out": ("event[principal] == 1", "CONDITION_REFUSED", 1, 1),
    "a letter that cannot be seen": ("true\u202e", "CONDITION_SYNTAX", 1, 5),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_and_where(case):
    """A refusal has a code and points at the text; it survives the way to another process."""
    source, code, line, column = case
    with pytest.raises(ConditionSyntaxError) as caught:
        compile_condition(source, facts=DUTY)
    assert (caught.value.code, caught.value.line, caught.value.column) == (code, line, column)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (type(again), again.line, again.column) == (ConditionSyntaxError, line, column)


def test_limits_are_kept():
    """Length, parts and depth end somewhere, and each end has a test."""
    for source in ("true" + " " * 3000, "true" + " && true" * 200, "(" * 40 + "true" + ")" * 40):
        with pytest.raises(ConditionSyntaxError) as caught:
            compile_condition(source)
        assert caught.value.code == "CONDITION_LIMIT"
    with pytest.raises(ConditionSyntaxError) as caught:
        compile_condition("1 + 1 + 1 + 1 == 4", limits=ConditionLimits(depth=3))
    assert caught.value.code == "CONDITION_LIMIT"


FORMS = {
    "nothing": b"",
    "no field": b"\x0a",
    "a length beyond the end": b"\x12\x7f",
    "a number without end": b"\xff" * 20,
    "an unknown wire type": b"\x13",
    "no expression": b"\x12\x02\x2a\x00",
    "an expression of no kind": b"\x12\x02\x22\x00",
    "a constant of no kind": b"\x12\x04\x22\x02\x1a\x00",
    "expressions without end": None,
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS.keys())
def test_a_form_that_is_not_known_is_refused(data, monkeypatch):
    """Should the library write something else one day, nothing gets through unseen."""
    if data is None:
        data = b"\x1a\x02\x18\x01"
        for _ in range(70):
            data = b"2" + _length(b"\x12\x01!\x1a" + _length(data) + data) + b"\x12\x01!\x1a" + _length(data) + data
        data = b"\x22" + _length(data) + data
        data = b"\x12" + _length(data) + data
    with pytest.raises(EncodingError) as caught:
        read_tree(data)
    assert caught.value.code == "CONDITION_FORM"
    monkeypatch.setattr(conditions_engine, "read_tree", lambda _data: read_tree(data))
    with pytest.raises(ConditionSyntaxError) as refused:
        conditions_engine.build("true", frozenset(), ConditionLimits())
    assert refused.value.code == "CONDITION_REFUSED"


def _length(data: bytes) -> bytes:
    out, size = b"", len(data)
    while size >= 0x80:
        out, size = out + bytes([size & 0x7F | 0x80]), size >> 7
    return out + bytes([size])


def test_instants_at_the_ends_of_time_deny_and_raise_nothing():
    """The last year of the calendar has no later zone."""
    last = datetime.max.replace(tzinfo=UTC)
    assert not holds("now.hour('Pacific/Kiritimati') < 25 && now.date('UTC') == 'x'", when=last)
    assert not holds("now.hour('Pacific/Kiritimati') < 25", when=last)


def test_a_condition_knows_what_it_looks_at():
    """Attributes, facts and inputs are known before anything is evaluated."""
    found = compile_condition("assigned(principal, event['c']) && '9' in event && now > timestamp(0)", facts=DUTY)
    assert found.attributes == ("9", "c")
    assert found.facts == {Predicate("assigned", 2)}
    assert found.inputs == {"principal", "event", "now"}
    assert compile_condition("true").attributes == ()


def test_a_compiled_condition_does_not_travel():
    """What travels is the text; the compiled form refuses, with a reason."""
    with pytest.raises(UsageError) as caught:
        pickle.dumps(compile_condition("true"))
    assert caught.value.code == "CONDITION_TRAVELS"
    assert compile_condition("true") is compile_condition("true")


def failing(_fact: Atom, _at: datetime) -> bool:
    """A provider that is down."""
    raise UnavailableError("down")


def test_a_fact_that_cannot_be_asked_for_denies_whatever_the_rest_says():
    """Not even a negation or an alternative turns a failure into a yes."""
    for source in ("on_duty(principal)", "!on_duty(principal)", "on_duty(principal) || action == 'publish'"):
        assert not holds(source, ask=failing)
        assert not holds(source)
    assert holds("!on_duty(principal)", ask=lambda _fact, _at: False)
    assert holds("on_duty(principal) || true", ask=lambda _fact, _at: False)


def test_a_fact_is_asked_for_with_its_parameters_and_the_instant():
    """The provider hears who, and when."""
    asked = []

    def ask(fact: Atom, when: datetime) -> bool:
        asked.append((str(fact), when))
        return True

    assert holds("assigned(principal, 'c1') && emergency()", ask=ask)
    assert asked == [("assigned(ab12, c1)", NOON), ("emergency", NOON)]


def test_an_answer_that_is_no_boolean_is_no():
    """Only true is true."""
    assert not holds("on_duty(principal)", ask=lambda _fact, _at: "yes")
    assert not holds("on_duty(principal)", ask=lambda _fact, _at: 1)


def test_an_occasion_needs_a_zone():
    """A time without a zone is not a time."""
    with pytest.raises(UsageError):
        Occasion(action="publish", at=datetime(2026, 1, 1), principal="x")  # noqa: DTZ001 - the point


RATES = {
    "ten a minute": ('rate(10, "1m")', RateLimit(count=10, period=at(60) - at(0))),
    "spaces do not matter": (" rate ( 10 , '90s' ) ", RateLimit(count=10, period=at(90) - at(0))),
    "none at all": ("rate(0, '1d')", RateLimit(count=0, period=at(86400) - at(0))),
    "all together": ("shared_rate(5, '2h')", RateLimit(count=5, period=at(7200) - at(0), shared=True)),
    "something else": ("on_duty(principal)", None),
}


@pytest.mark.parametrize("case", RATES.values(), ids=RATES.keys())
def test_rates_are_read(case):
    """A rate is a number and a period."""
    source, expected = case
    assert parse_rate(source) == expected


@pytest.mark.parametrize(
    "source",
    ["rate(10, '1m') || true", "rate(10)", "rate(10, 'm')", "rate(10, '0s')", "rate(10, '32d')", "rate(-1, '1m')",
     "rate(9999999, '1m')", "rate(10, '1m\")", "rate(1, '1m') && rate(2, '2m')"],
)  # fmt: skip
def test_a_rate_stands_alone_and_within_bounds(source: str):
    """What counts does not hide in an expression."""
    with pytest.raises(ConditionSyntaxError) as caught:
        compile_condition(source)
    assert caught.value.code == "CONDITION_RATE"
    for hidden in ("!rate(10, '1m')", "true || rate(10, '1m')"):
        with pytest.raises(ConditionSyntaxError) as caught:
            compile_condition(hidden, facts={Predicate("rate", 2)})
        assert caught.value.code == "CONDITION_NAME"


def test_a_declared_fact_cannot_take_the_name_of_something_else():
    """A provider called like an input, an operation or a rate is not reachable from conditions."""
    for name, source in (("hour", "hour('x')"), ("size", "size('x', 'y')"), ("a-b", "a-b('x')")):
        with pytest.raises(ConditionSyntaxError):
            compile_condition(source, facts={Predicate(name, 1), Predicate(name, 2)})


def test_a_condition_that_is_a_rate_has_nothing_to_evaluate():
    """It holds; the ledger counts."""
    found = compile_condition("rate(10, '1m')")
    assert isinstance(found, Condition)
    assert found.rate == RateLimit(count=10, period=at(60) - at(0))
    assert found.holds(occasion())
    assert (found.attributes, found.facts, found.inputs) == ((), frozenset(), frozenset())


# -- the environment and its watcher


class Roster:
    """A provider in memory that can fail."""

    def __init__(self, predicate: Predicate, *facts: Atom, lists: bool = True) -> None:
        self.predicate, self.known, self.lists, self.broken = predicate, set(facts), lists, False

    def ask(self, fact: Atom, *, at: datetime) -> bool:
        """Look it up."""
        if self.broken:
            raise UnavailableError("down", code="PROVIDER_FAILED")
        return fact in self.known

    def facts(self, *, at: datetime) -> frozenset[Atom] | None:
        """List them."""
        if self.broken:
            raise UnavailableError("down", code="PROVIDER_FAILED")
        return frozenset(self.known) if self.lists else None


SMITH = Atom("on_duty", (Constant("smith"),))
RULES = "watch(self) <- ?on_duty(self)*\nwatch(d) |- read('desk')"


def test_a_failing_provider_means_no_and_is_counted():
    """The fact does not hold, and the reason is kept by predicate and code."""
    roster = Roster(Predicate("on_duty", 1), SMITH)
    environment = Environment([roster])
    assert environment.holds(SMITH, at=NOON)
    roster.broken = True
    assert not environment.holds(SMITH, at=NOON)
    assert not environment.holds(Atom("unheard"), at=NOON)
    assert dict(environment.failures) == {("on_duty/1", "PROVIDER_FAILED"): 1, ("unheard/0", "NO_PROVIDER"): 1}
    with pytest.raises(UsageError):
        Environment([roster, roster])


def test_a_provider_that_lists_other_facts_is_not_believed():
    """It fails, and nothing of its list counts."""
    roster = Roster(Predicate("on_duty", 1), Atom("chief", (Constant("smith"),)))
    with pytest.raises(UnavailableError, match="PROVIDER_FOREIGN"):
        Environment([roster]).listed(roster, at=at(0))


EVENING, MORNING = at("2000-01-01T22:00").time(), at("2000-01-01T06:00").time()
NIGHT = Hours(name="night", zone="Europe/London", start=EVENING, end=MORNING, days=frozenset({5}))
CALENDAR = {
    "a night belongs to the day it starts on": (NIGHT, "2026-07-04T04:59+01:00", True),
    "and ends in the morning": (NIGHT, "2026-07-04T06:00+01:00", False),
    "the night before is another day": (NIGHT, "2026-07-03T04:59+01:00", False),
    "it starts in the evening": (NIGHT, "2026-07-03T22:00+01:00", True),
}


@pytest.mark.parametrize("case", CALENDAR.values(), ids=CALENDAR.keys())
def test_hours_run_over_midnight(case):
    """Hours that end before they start belong to the day they start on."""
    hours, when, expected = case
    assert hours.ask(Atom("night"), at=at(when)) is expected


def test_hours_know_holidays_and_refuse_what_does_not_exist():
    """A holiday is no day; a zone or day that does not exist is refused."""
    day = datetime(2026, 12, 25, 12, tzinfo=UTC)
    open_, shut = (
        Hours(name="o", zone="UTC", start=at(0).time(), end=at(0).time(), holidays=frozenset(holidays))
        for holidays in ((), (day.date(),))
    )
    assert open_.facts(at=day) == {Atom("o")}
    assert shut.facts(at=day) == frozenset()
    for wrong in ({"zone": "Mars/Olympus"}, {"zone": "UTC", "days": frozenset({8})}):
        with pytest.raises(UsageError):
            Hours(**{"name": "o", "start": at(0).time(), "end": at(0).time(), **wrong})
