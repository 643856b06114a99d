"""Conditions at the kernel: guards, batches, rows and rates."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from kernel_world import EVERY_KIND, NUMBERPLATE, OWNER, events

import maia.kernel.conditions as module
from maia.authority import Action, CertificatePool, Constraint, Verifier, type_right, verify_event_type
from maia.errors import ChainError, UnavailableError
from maia.events import batch_to_transit, check_batch, sign_event_type
from maia.filters import TypedFilter
from maia.kernel import (
    CONDITION_FALSE,
    CONSTRAINT_VIOLATED,
    RATE_LIMITED,
    DeliveryPlan,
    NoSurroundings,
    Sessions,
    Subscription,
    enforce_publication,
)
from maia.kernel.condition_columns import mask_by_columns
from maia.policy import ConditionLimits, Occasion, Predicate, compile_condition
from maia.principals import KeySigner
from maia.testing import at, grant

CAM, DESK = KeySigner(bytes([7]) * 32), KeySigner(bytes([8]) * 32)
NOW = at("2026-07-01T16:50")
LATER = at("2026-07-01T17:05")
OFFICE = "now.hour('UTC') < 17"


@dataclass
class Place:
    """Surroundings in memory."""

    duty: dict[str, bool] = field(default_factory=dict)
    time: datetime | None = None
    drawn: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    asked: Counter = field(default_factory=Counter)
    broken: bool = False
    predicates: frozenset = frozenset({Predicate("on_duty", 1)})

    def clock(self):
        """The time that the test set."""
        return self.time

    def ask(self, fact, at):
        """Look up the roster."""
        self.asked[str(fact)] += 1
        if self.broken:
            raise UnavailableError("down")
        return self.duty.get(fact.arguments[0].value, False)

    def reserve(self, limit, *, bucket, reservation, count, at):
        """Count, without forgetting."""
        if self.broken:
            raise UnavailableError("down")
        name = (bucket, reservation or b"%d" % len(self.drawn))
        if name not in self.drawn:
            used = sum(granted for (of, _), granted in self.drawn.items() if of == bucket)
            self.drawn[name] = min(count, limit.count - used)
        return min(count, self.drawn[name])


def right(*actions, attributes=None, where=(), event_type=NUMBERPLATE):
    """A right on a type."""
    constraints = [Constraint(*demand) for demand in where]
    return type_right(
        OWNER.public_key, event_type.name.name, actions=actions, attributes=attributes, constraints=constraints
    )


def world(*certificates, place=None, event_type=NUMBERPLATE):
    """A broker that knows the type, and the evidence."""
    made = Sessions(Verifier(), surroundings=NoSurroundings if place is None else lambda: place)
    made.install(verify_event_type(sign_event_type(event_type, OWNER), verifier=made.verifier, at=NOW))
    return made, CertificatePool(certificates)


def publishes(*conditions, **options):
    """A certificate for the camera."""
    return grant(OWNER, CAM, right(Action.PUBLISH, **options), conditions=conditions)


def clauses(made, pool, *, who=CAM, action=Action.PUBLISH, when=NOW, event_type=NUMBERPLATE):
    """What somebody may do now."""
    return made.clauses(who.public_key, action, event_type, pool, at=when)


def outcome(enforced):
    """The rows that left, and the codes of the others."""
    return enforced.rows.tolist(), {refusal.row: refusal.code for refusal in enforced.refusals}


def test_conditions_are_asked_again_when_there_is_something_to_publish():
    """The advertisement held; the batch comes too late. Without any clock nothing leaves."""
    found = clauses(*world(publishes(OFFICE)))
    batch = events(numberplate=["A", "B"])
    assert outcome(enforce_publication(NUMBERPLATE, batch, found, at=NOW)) == ([0, 1], {})
    refused = {0: CONDITION_FALSE, 1: CONDITION_FALSE}
    assert outcome(enforce_publication(NUMBERPLATE, batch, found, at=LATER)) == ([], refused)
    assert outcome(enforce_publication(NUMBERPLATE, batch, found)) == ([], refused)


def test_the_clock_of_the_surroundings_is_read_for_each_batch():
    """A plan that was made at ten to five publishes until five."""
    place = Place(time=NOW)
    found = clauses(*world(publishes(OFFICE), place=place))
    assert enforce_publication(NUMBERPLATE, events(numberplate=["A"]), found).rows.tolist() == [0]
    place.time = LATER
    assert enforce_publication(NUMBERPLATE, events(numberplate=["A"]), found).rows.tolist() == []


def test_a_clause_with_conditions_and_without_a_guard_counts_for_nothing():
    """Neither for a publisher nor for a subscriber."""
    bare = [replace(clause, guard=None) for clause in clauses(*world(publishes("true")))]
    assert enforce_publication(NUMBERPLATE, events(numberplate=["A"]), bare, at=NOW).rows.tolist() == []
    assert delivered(bare, numberplate=["A"]) == []


def delivered(found, event_type=NUMBERPLATE, **columns):
    """What a subscriber with these clauses gets."""
    plan = DeliveryPlan({item.uid: item.type for item in event_type.attributes})
    plan.add(Subscription("s", event_type, TypedFilter(constraints=()), tuple(found)))
    batch = batch_to_transit(event_type, check_batch(event_type, events(event_type, **columns)))
    return [row for delivery in plan.deliver(batch) for row in delivery.batch.to_pylist()]


def test_conditions_on_events_are_asked_row_by_row():
    """A publisher's condition sees what would leave; a row without the value does not leave."""
    found = clauses(*world(publishes("event['3265'].startsWith('A') && event['9058'] > 5")))
    batch = events(numberplate=["A1", "B1", "A2", None], timestamp=[9, 9, 5, 9])
    refused = dict.fromkeys((1, 2, 3), CONDITION_FALSE)
    assert outcome(enforce_publication(NUMBERPLATE, batch, found, at=NOW)) == ([0], refused)


def test_a_publishers_condition_sees_forced_values_and_not_closed_ones():
    """What the clause takes away is not there; what it forces is what counts."""
    forced = world(publishes("event['3467'] == 'Victoria'", where=[("3467", "=", "Victoria")]))
    batch = events(numberplate=["A"], location=["Soho"])
    assert enforce_publication(NUMBERPLATE, batch, clauses(*forced), at=NOW).rows.tolist() == [0]
    closed = world(publishes("event['3467'] == 'Soho'", attributes=["3265"]))
    assert enforce_publication(NUMBERPLATE, batch, clauses(*closed), at=NOW).rows.tolist() == []


def test_a_subscribers_condition_sees_the_true_values():
    """As its constraint does: the attribute may be closed to the subscriber itself."""
    reads = grant(OWNER, DESK, right(Action.SUBSCRIBE, attributes=["3265"]), conditions=["event['3467'] == 'Soho'"])
    found = clauses(*world(reads), who=DESK, action=Action.SUBSCRIBE)
    rows = delivered(found, numberplate=["A", "B"], location=["Soho", "Victoria"])
    assert rows == [{"numberplate": "A", "timestamp": None, "location": None}]


def test_a_subscribers_condition_on_the_moment_is_settled_when_the_plan_is_made():
    """False then means no clause; true leaves nothing to ask at the rows."""
    reads = grant(OWNER, DESK, right(Action.SUBSCRIBE), conditions=[OFFICE])
    made, pool = world(reads)
    [clause] = clauses(made, pool, who=DESK, action=Action.SUBSCRIBE)
    assert clause.guard.conditions == ()
    assert len(delivered([clause], numberplate=["A"])) == 1
    assert clauses(made, pool, who=DESK, action=Action.SUBSCRIBE, when=LATER) == ()


def test_each_different_combination_of_values_is_evaluated_once_and_facts_are_asked_for_once():
    """A thousand rows with two values are two evaluations; the same fact is one question."""
    place = Place(duty={"A": True}, time=NOW)
    found = clauses(*world(publishes("on_duty(event['3265'])", "on_duty('A')"), place=place))
    place.asked.clear()
    batch = events(numberplate=["A", "B"] * 500, location=["x"] * 1000)
    assert enforce_publication(NUMBERPLATE, batch, found).rows.tolist() == list(range(0, 1000, 2))
    assert place.asked == {"on_duty('A')": 1, "on_duty('B')": 1}


def test_a_provider_that_fails_denies():
    """At the request and at the batch."""
    place = Place(duty={CAM.public_key.key_id.hex(): True}, time=NOW)
    made, pool = world(publishes("on_duty(principal)"), place=place)
    found = clauses(made, pool)
    assert len(found) == 1
    place.broken = True
    assert clauses(made, pool) == ()
    assert enforce_publication(NUMBERPLATE, events(numberplate=["A"]), found).rows.tolist() == []
    with pytest.raises(ChainError) as caught:
        made.advertise(CAM.public_key, NUMBERPLATE.type_id, "8516", pool, at=NOW)
    assert caught.value.code == CONDITION_FALSE


def test_a_condition_that_is_none_here_denies():
    """Nobody declares the fact at this broker, or the text is no condition: not proven."""
    assert clauses(*world(publishes("on_duty(principal)"))) == ()
    assert clauses(*world(publishes("on duty"))) == ()
    place = Place(duty={CAM.public_key.key_id.hex(): True}, time=NOW)
    found = clauses(*world(publishes("on_duty(principal)"), place=place))
    place.predicates = frozenset()  # the worker's configuration is another
    assert enforce_publication(NUMBERPLATE, events(numberplate=["A"]), found).rows.tolist() == []


def test_values_of_every_kind_reach_conditions():
    """What the language has no type for comes as text, exactly."""
    sources = {
        "integer": "event['0'] == 9007199254740993", "float": "event['1'] == 2.5", "decimal": "event['2'] == '2.5'",
        "string": "event['3'] == 'é'", "boolean": "event['4']  == true", "date": "event['5'] == '2026-07-01'",
        "timestamp": "timestamp(event['6']) == timestamp('2026-07-01T12:00:00.000001Z')",
        "binary": "event['7'] == b'x'",
    }  # fmt: skip
    batch = events(
        EVERY_KIND, integer=[9007199254740993], float=[2.5], decimal=[Decimal("2.5")], string=["é"], boolean=[True],
        date=[date(2026, 7, 1)], timestamp=[datetime(2026, 7, 1, 12, 0, 0, 1, tzinfo=UTC)], binary=[b"x"],
    )  # fmt: skip
    for name, source in sources.items():
        certificate = grant(OWNER, CAM, right(Action.PUBLISH, event_type=EVERY_KIND), conditions=[source])
        found = clauses(*world(certificate, event_type=EVERY_KIND), event_type=EVERY_KIND)
        assert enforce_publication(EVERY_KIND, batch, found, at=NOW).rows.tolist() == [0], name


def test_a_condition_that_names_what_is_sealed_whole_denies_the_rows_that_have_it():
    """Nothing looks into an array, not even to see that it is there; rows without one are as without it."""
    batch = pa.RecordBatch.from_arrays([pa.array([["a"], None, ["x"]]), pa.array([5, 5, 6])], names=["1", "2"])
    occasion = Occasion(action="publish", principal="x", at=NOW)

    def holds(source):
        return module._of_rows(compile_condition(source), batch, occasion, lambda fact, when: False).tolist()

    assert holds("event['1'] == 'x'") == [False, False, False]
    assert holds("!('1' in event)") == [False, True, False]
    assert holds("'1' in event || event['2'] == 6") == [False, False, False]
    assert holds("event['2'] == 5") == [True, True, False]


def test_what_is_too_large_or_too_much_to_evaluate_denies(monkeypatch):
    """A value beyond the limit is no value; rows beyond the budget are refused, those before it are not."""
    found = clauses(*world(publishes("!('3265' in event) || event['3265'] != 'x'")))
    batch = events(numberplate=["A", "B" * 100_000, None])
    assert outcome(enforce_publication(NUMBERPLATE, batch, found, at=NOW)) == ([0, 2], {1: CONDITION_FALSE})
    monkeypatch.setattr(module, "DEFAULT_CONDITION_LIMITS", ConditionLimits(evaluations=2))
    found = clauses(*world(publishes("!event['3265'].matches('x')")))
    batch = events(numberplate=["C", "A", "C", "B", "A"])
    assert enforce_publication(NUMBERPLATE, batch, found, at=NOW).rows.tolist() == [0, 1, 2, 4]


BY_COLUMNS = {
    "an equality": ("event['3265'] == 'A'", [True, False, False]),
    "an order": ("event['9058'] > 5", [True, False, False]),
    "two attributes": ("event['3265'] <= event['3467']", [True, False, False]),
    "inputs": ("action == 'publish' && event_type != principal && event['3265'] != 'B'", [True, False, False]),
    "a list": ("event['3265'] in ['A', 'C']", [True, False, False]),
    "presence": ("!('3265' in event)", [False, False, True]),
    "an error that does not matter": ("event['3265'] == 'A' || !('3265' in event)", [True, False, True]),
    "a choice": ("'3265' in event ? event['9058'] > 5 : true", [True, False, True]),
    "a time": ("event['3265'] == 'A' && now > timestamp(0)", None),
    "a start": ("event['3265'].startsWith('A')", [True, False, False]),
    "an end": ("!event['3265'].endsWith('B')", [True, False, False]),
    "a part": ("event['3265'].contains('') && event['3467'].contains('B')", [True, False, False]),
    "a method of an input": ("action.startsWith('pub') && '3265' in event", [True, True, False]),
    "a method of another type": ("event['9058'].startsWith('A')", None),
    "a method with another attribute": ("event['3265'].startsWith(event['3467'])", None),
    "a pattern": ("event['3265'].matches('A')", None),
    "arithmetic": ("event['9058'] + 1 > 5", None),
    "another type": ("event['9058'] > 5.5", None),
    "an attribute that is not there": ("event['1'] == 'A'", None),
}


@pytest.mark.parametrize("case", BY_COLUMNS.values(), ids=BY_COLUMNS.keys())
def test_plain_comparisons_are_evaluated_by_columns(case):
    """With the same answers as row by row; what else a condition says is left to the rows."""
    source, expected = case
    given = events(numberplate=["A", "B", None], timestamp=[9, 3, None], location=["B", "A", None])
    batch = batch_to_transit(NUMBERPLATE, check_batch(NUMBERPLATE, given))
    condition = compile_condition(source)
    occasion = Occasion(action="publish", at=NOW, principal="p", event_type="t")
    mask = mask_by_columns(condition.tree, batch, occasion, value_octets=100)
    assert (None if mask is None else mask.tolist()) == expected
    rows = [{"3265": "A", "9058": 9, "3467": "B"}, {"3265": "B", "9058": 3, "3467": "A"}, {}]
    assert expected in (None, [condition.holds(occasion, event=row) for row in rows])


def test_guards_travel_as_text():
    """A clause with its guard is pickled; where the surroundings are a reference, nothing else goes along."""
    [clause] = clauses(*world(publishes(OFFICE)))
    again = pickle.loads(pickle.dumps(clause))  # noqa: S301 - our own
    assert again == clause
    assert enforce_publication(NUMBERPLATE, events(numberplate=["A"]), [again], at=NOW).rows.tolist() == [0]


# -- rates


def test_the_first_rows_are_granted_and_the_rest_are_rate_limited():
    """A batch of twelve under a rate of ten."""
    place = Place(time=NOW)
    found = clauses(*world(publishes("rate(10, '1m')"), place=place))
    enforced = enforce_publication(NUMBERPLATE, events(numberplate=list("ABCDEFGHIJKL")), found)
    assert outcome(enforced) == (list(range(10)), {10: RATE_LIMITED, 11: RATE_LIMITED})


def test_refused_rows_draw_nothing_and_a_named_part_draws_once():
    """A rate is drawn upon last, under the name of the part."""
    place = Place(time=NOW)
    found = clauses(*world(publishes("rate(3, '1m')", where=[("9058", ">", "5")]), place=place))
    batch = events(numberplate=list("ABCD"), timestamp=[9, 1, 9, 1])
    first = enforce_publication(NUMBERPLATE, batch, found, reservation=b"p/0")
    assert outcome(first) == ([0, 2], {1: CONSTRAINT_VIOLATED, 3: CONSTRAINT_VIOLATED})
    again = enforce_publication(NUMBERPLATE, batch, found, reservation=b"p/0")
    assert outcome(again) == outcome(first)
    assert sum(place.drawn.values()) == 2
    other = enforce_publication(NUMBERPLATE, batch, found, reservation=b"p/1")
    assert other.rows.tolist() == [0]


def test_what_one_clause_does_not_grant_may_leave_under_another():
    """Two certificates with rates of their own add up, row by row."""
    place = Place(time=NOW)
    two = (publishes("rate(2, '1m')"), publishes("rate(3, '1m')"))
    found = clauses(*world(*two, place=place))
    enforced = enforce_publication(NUMBERPLATE, events(numberplate=list("ABCDEFG")), found)
    assert outcome(enforced) == (list(range(5)), {5: RATE_LIMITED, 6: RATE_LIMITED})


def test_passing_a_right_on_to_oneself_makes_no_new_account():
    """The account hangs on the certificate that carries the rate, whatever chains lead over it."""
    place = Place(time=NOW)
    root = grant(OWNER, CAM, right(Action.PUBLISH), delegate=True, conditions=["rate(2, '1m')"])
    more = [grant(CAM, CAM, right(Action.PUBLISH, attributes=[uid]), delegate=True) for uid in ("3265", "3467")]
    found = clauses(*world(root, *more, place=place))
    assert len(found) == 3
    enforced = enforce_publication(NUMBERPLATE, events(numberplate=list("ABCDEF"), location=list("abcdef")), found)
    assert len(enforced.rows) == 2


@pytest.mark.parametrize(("kind", "granted"), [("rate", 4), ("shared_rate", 2)])
def test_a_shared_rate_counts_all_principals_together(kind, granted):
    """`rate` is for each who publishes, `shared_rate` for all under the certificate."""
    place = Place(time=NOW)
    root = grant(OWNER, CAM, right(Action.PUBLISH), delegate=True, conditions=[f"{kind}(2, '1m')"])
    made, pool = world(root, grant(CAM, DESK, right(Action.PUBLISH)), place=place)
    left = 0
    for who in (CAM, DESK):
        found = clauses(made, pool, who=who)
        left += len(enforce_publication(NUMBERPLATE, events(numberplate=list("ABC")), found).rows)
    assert left == granted


def test_without_a_ledger_nothing_is_granted_and_reading_is_not_limited():
    """A rate that cannot be counted refuses publications; it has no say in subscriptions."""
    both = grant(OWNER, CAM, right(Action.PUBLISH, Action.SUBSCRIBE), conditions=["rate(2, '1m')"])
    made, pool = world(both)
    assert enforce_publication(NUMBERPLATE, events(numberplate=["A"]), clauses(made, pool), at=NOW).rows.tolist() == []
    assert len(delivered(clauses(made, pool, action=Action.SUBSCRIBE), numberplate=["A"])) == 1
    place = Place(time=NOW, broken=True)
    found = clauses(*world(both, place=place))
    batch = events(numberplate=["A"])
    assert outcome(enforce_publication(NUMBERPLATE, batch, found)) == ([], {0: RATE_LIMITED})


def test_periods_in_certificates_and_conditions_are_conjoined():
    """A condition never lengthens what the period cuts."""
    bound = grant(OWNER, CAM, right(Action.PUBLISH), valid=(None, NOW + timedelta(minutes=5)), conditions=["true"])
    made, pool = world(bound)
    assert len(clauses(made, pool)) == 1
    assert clauses(made, pool, when=LATER) == ()
