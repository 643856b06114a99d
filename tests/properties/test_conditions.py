"""Conditions against an evaluator of their own: the same answer for every expression, and one answer per row.

The oracle knows three answers, true, false and an error, and the rules by which `&&` and `||` get along without the
side that failed. It shares nothing with the library behind conditions.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given

from maia.authority import Action, CertificatePool, Verifier, type_right, verify_event_type
from maia.events import EventType, TypeName, Version, attribute, sign_event_type
from maia.kernel import Sessions, enforce_publication
from maia.policy import ConditionSyntaxError, Occasion, compile_condition
from maia.testing import People, at, grant

ERROR = "error"
NOW = at("2026-06-03T12:30")
PEOPLE = People("owner", "cam")
TYPE = EventType(
    name=TypeName(PEOPLE.owner.public_key, "t.T", Version("1")),
    attributes=(attribute("number", 1, "integer"), attribute("word", 2, "string"), attribute("flag", 3, "boolean")),
)


@dataclass(frozen=True)
class Part:
    """A piece of an expression: its text, and what it is for an event."""

    text: str
    value: object  # a function of the event

    def of(self, event):
        """Evaluate."""
        return self.value(event)


def constant(text, value):
    """A literal."""
    return Part(text, lambda _event: value)


def attribute_of(uid):
    """A value of the event, or an error when it is not there."""
    return Part(f"event['{uid}']", lambda event: event.get(uid, ERROR))


def strict(operation):
    """An operation that fails when a side fails."""

    def apply(*values):
        return ERROR if ERROR in values else operation(*values)

    return apply


def binary(symbol, left, right, operation):
    """An operation on two parts."""
    return Part(f"({left.text} {symbol} {right.text})", lambda event: operation(left.of(event), right.of(event)))


def divided(left, right):
    """Division towards zero."""
    if right == 0:
        return ERROR
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def both(left, right):
    """`&&`: a false side is enough."""
    if left is False or right is False:
        return False
    return ERROR if ERROR in (left, right) else True


def either(left, right):
    """`||`: a true side is enough."""
    if left is True or right is True:
        return True
    return ERROR if ERROR in (left, right) else False


SMALL = st.integers(-9, 9)
NUMBERS = st.recursive(
    SMALL.map(lambda n: constant(f"({n})", n)) | st.just(attribute_of("1")),
    lambda inner: st.builds(
        lambda a, b, op: binary(op[0], a, b, strict(op[1])),
        inner,
        inner,
        st.sampled_from([("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__), ("/", divided)]),
    ),
    max_leaves=3,
)
WORDS = st.sampled_from("abc").map(lambda w: constant(f"'{w}'", w)) | st.just(attribute_of("2"))
ORDERS = [("<", operator.lt), ("<=", operator.le), ("==", operator.eq), ("!=", operator.ne)]


def compared(sort):
    """Comparisons of two parts of a sort."""
    return st.builds(lambda a, b, op: binary(op[0], a, b, strict(op[1])), sort, sort, st.sampled_from(ORDERS))


METHODS = [("startsWith", str.startswith), ("endsWith", str.endswith), ("contains", lambda text, part: part in text)]
ATOMS = (
    st.booleans().map(lambda b: constant(str(b).lower(), b))
    | compared(NUMBERS)
    | compared(WORDS)
    | st.sampled_from("123").map(lambda uid: Part(f"('{uid}' in event)", lambda event: uid in event))
    | st.builds(
        lambda word, letter, name, test: Part(
            f"{word.text}.{name}('{letter}')", lambda event: strict(lambda v: test(v, letter))(word.of(event))
        ),
        st.just(attribute_of("2")),
        st.sampled_from(["", "a", "b"]),
        *(st.shared(st.sampled_from(METHODS), key="method").map(operator.itemgetter(n)) for n in (0, 1)),
    )
    | st.just(Part("(event['3'] == true)", lambda event: event.get("3", ERROR)))
    | SMALL.map(lambda n: Part(f"(now.minute('UTC') < {n * 10})", lambda _event: n * 10 > 30))
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds(lambda a, b: binary("&&", a, b, both), inner, inner)
        | st.builds(lambda a, b: binary("||", a, b, either), inner, inner)
        | inner.map(lambda a: Part(f"(!{a.text})", lambda event: strict(lambda v: not v)(a.of(event))))
        | st.builds(
            lambda c, a, b: Part(
                f"({c.text} ? {a.text} : {b.text})",
                lambda event: ERROR if c.of(event) == ERROR else (a if c.of(event) else b).of(event),
            ),
            inner,
            inner,
            inner,
        )
    ),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries({}, optional={"1": SMALL, "2": st.sampled_from("abc"), "3": st.booleans()})


@given(CONDITIONS, EVENTS)
def test_a_condition_holds_exactly_when_the_oracle_says_true(part, event):
    """False and an error are the same no."""
    condition = compile_condition(part.text)
    occasion = Occasion(action="publish", at=NOW, principal="p")
    assert condition.holds(occasion, event=event) is (part.of(event) is True)


@given(CONDITIONS, st.lists(EVENTS, min_size=1, max_size=12))
def test_a_batch_has_the_answers_of_its_rows(part, events):
    """However rows are put together, each gets the answer that it would get alone."""
    sessions = Sessions(Verifier())
    sessions.install(verify_event_type(sign_event_type(TYPE, PEOPLE.owner), verifier=sessions.verifier, at=NOW))
    right = type_right(PEOPLE.owner.public_key, "t.T", actions=[Action.PUBLISH])
    pool = CertificatePool([grant(PEOPLE.owner, PEOPLE.cam, right, conditions=[part.text])])
    clauses = sessions.clauses(PEOPLE.cam.public_key, Action.PUBLISH, TYPE, pool, at=NOW)
    names = {"1": ("number", pa.int64()), "2": ("word", pa.string()), "3": ("flag", pa.bool_())}
    columns = {name: pa.array([event.get(uid) for event in events], type=kind) for uid, (name, kind) in names.items()}
    enforced = enforce_publication(TYPE, pa.RecordBatch.from_pydict(columns), clauses, at=NOW)
    assert enforced.rows.tolist() == [row for row, event in enumerate(events) if part.of(event) is True]
    assert {refusal.row for refusal in enforced.refusals} == set(range(len(events))) - set(enforced.rows.tolist())


@given(st.text(max_size=60) | st.text(alphabet="event['1'] && || !()<>=.,\"now hour rate(10m)", max_size=60))
def test_any_text_is_a_condition_or_a_refusal(text):
    """Nothing but our own error comes out, and evaluating what compiles never raises."""
    try:
        condition = compile_condition(text)
    except ConditionSyntaxError as error:
        place = (error.line, error.column)
    else:
        place = (1, 1)
        answer = condition.holds(Occasion(action="publish", at=NOW, principal="p"), event={"1": 1})
        assert answer in {True, False}
    assert min(place) >= 1
