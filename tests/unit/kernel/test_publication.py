"""What a publisher's rows become: nulls, forced values, drops, and rows that are not of the type."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from kernel_world import EVERY_KIND, NUMBERPLATE, OWNER, clause, events

from maia.authority import (
    Action,
    OnViolation,
    ask_cell,
    ask_type,
    cell_rights,
    intersect,
    row_request,
    type_right,
)
from maia.encryption import MAX_VALUE
from maia.errors import MalformedError, TagError
from maia.events import AttributeType, EventType, TypeName, Version, attribute, check_batch
from maia.kernel import BATCH_REJECTED, CONSTRAINT_VIOLATED, Clause, enforce_publication

PUBLISH = Action.PUBLISH
ANY = clause(action=PUBLISH)


def transit(enforced):
    """Admitted rows as plain values, in order."""
    return [tuple(row.values()) for row in enforced.batch.to_pylist()]


def refused(enforced):
    """Refusals by row."""
    return {refusal.row: refusal.code for refusal in enforced.refusals}


def test_an_equality_forces_its_value():
    """The camera at Victoria publishes Paddington, or no place at all: Victoria is sent."""
    camera = clause("3265", "9058", "3467", action=PUBLISH, where=[("3467", "=", "Victoria")])
    batch = events(numberplate=["A", "B", "C"], location=["Paddington", None, "Victoria"])
    enforced = enforce_publication(NUMBERPLATE, batch, [camera])
    assert [row[2] for row in transit(enforced)] == ["Victoria"] * 3
    assert (enforced.forced, enforced.nulled, enforced.refusals) == (2, 0, ())
    omitted = enforce_publication(NUMBERPLATE, events(numberplate=["A"]), [camera])
    assert transit(omitted) == [("A", None, "Victoria")]


def test_an_inequality_drops_and_tells():
    """Attr2 >= 500: 499 is dropped and the publisher is told, 500 is sent; a null meets nothing."""
    right = clause(action=PUBLISH, where=[("9058", ">=", 500)])
    enforced = enforce_publication(NUMBERPLATE, events(timestamp=[499, 500, None]), [right])
    assert transit(enforced) == [(None, 500, None)]
    assert enforced.rows.tolist() == [1]
    assert refused(enforced) == {0: CONSTRAINT_VIOLATED, 2: CONSTRAINT_VIOLATED}


VIOLATIONS = {
    "left out": (None, ["Victoria"] * 3, {}),
    "force": (OnViolation.FORCE, ["Victoria"] * 3, {}),
    "drop": (OnViolation.DROP, ["Victoria"], {0: CONSTRAINT_VIOLATED, 1: CONSTRAINT_VIOLATED}),
    "reject": (OnViolation.REJECT, [], {0: CONSTRAINT_VIOLATED, 1: CONSTRAINT_VIOLATED, 2: BATCH_REJECTED}),
}


@pytest.mark.parametrize("choice, sent, refusals", VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_certificate_says_what_becomes_of_a_violation(choice, sent, refusals):
    """Paddington, no place, Victoria from the camera at Victoria: forced, dropped, or all rejected (choice C1)."""
    camera = clause(action=PUBLISH, where=[("3467", "=", "Victoria")], on_violation=choice)
    batch = events(numberplate=["A", "B", "C"], location=["Paddington", None, "Victoria"])
    enforced = enforce_publication(NUMBERPLATE, batch, [camera])
    assert [row[2] for row in transit(enforced)] == sent
    assert refused(enforced) == refusals
    assert len(enforced.rows) + len(enforced.refusals) == 3


def test_a_batch_without_violation_is_not_rejected():
    """Whoever asks for rejection lets through what is in order; a row of another type does not count as a breach."""
    camera = clause(action=PUBLISH, where=[("9058", ">=", 500)], on_violation=OnViolation.REJECT)
    batch = pa.RecordBatch.from_pydict({"timestamp": [500, 700]})
    assert transit(enforce_publication(NUMBERPLATE, batch, [camera])) == [(None, 500, None), (None, 700, None)]
    # With another clause that admits the row there is no breach; with one that drops, that milder one counts.
    other = clause(action=PUBLISH, where=[("9058", "<", 500)], on_violation=OnViolation.REJECT)
    low = events(timestamp=[1, 500])
    assert len(transit(enforce_publication(NUMBERPLATE, low, [camera, other]))) == 2
    mild = clause(action=PUBLISH, where=[("9058", ">", 900)])
    assert refused(enforce_publication(NUMBERPLATE, low, [camera, mild])) == {0: CONSTRAINT_VIOLATED}


CHAINS = {
    "nothing said": ((), OnViolation.FORCE),
    "the lower says drop": ((None, OnViolation.DROP), OnViolation.DROP),
    "the upper says drop, the lower nothing": ((OnViolation.DROP, None), OnViolation.DROP),
    "drop and reject": ((OnViolation.DROP, OnViolation.REJECT), OnViolation.REJECT),
    "reject and force": ((OnViolation.REJECT, OnViolation.FORCE), OnViolation.REJECT),
}


@pytest.mark.parametrize("said, counts", CHAINS.values(), ids=CHAINS)
def test_a_chain_only_makes_it_stricter(said, counts):
    """What a chain leaves of two certificates is the stricter of both; the right itself stays."""
    tag = type_right(OWNER.public_key, actions=[PUBLISH, Action.SUBSCRIBE])
    for choice in said:
        tag = intersect(tag, type_right(OWNER.public_key, actions=[PUBLISH], on_violation=choice))
    found = cell_rights(intersect(tag, ask_type(PUBLISH, OWNER.public_key, "T", "1").wanted))
    assert {cells.on_violation for cells in found} == {counts}
    asked = ask_cell(PUBLISH, OWNER.public_key, "T", "1", "7", row_request({}))
    assert asked.admitted_by(tag)


def test_only_an_equality_can_be_forced():
    """A certificate that would force an inequality is not made; rights to subscribe are not touched by it."""
    with pytest.raises(TagError, match="CONSTRAINT_FORCE"):
        clause(action=PUBLISH, where=[("9058", ">=", 500)], on_violation=OnViolation.FORCE)
    both = type_right(OWNER.public_key, actions=[PUBLISH, Action.SUBSCRIBE], on_violation=OnViolation.DROP)
    for action, counts in ((PUBLISH, OnViolation.DROP), (Action.SUBSCRIBE, OnViolation.FORCE)):
        found = cell_rights(intersect(both, ask_type(action, OWNER.public_key, "T", "1").wanted))
        assert [cells.on_violation for cells in found] == [counts]
    everything = type_right(OWNER.public_key, on_violation=OnViolation.REJECT)
    assert ask_type(Action.MANAGE, OWNER.public_key, "T", "1").admitted_by(everything)


def test_attributes_outside_the_right_become_null():
    """A publisher with the right to `timestamp` only sets the plate: the plate in transit is null."""
    enforced = enforce_publication(
        NUMBERPLATE, events(numberplate=["AE05 XYZ", None], timestamp=[1, 2]), [clause("9058", action=PUBLISH)]
    )
    assert transit(enforced) == [(None, 1, None), (None, 2, None)]
    assert enforced.nulled == 1
    assert b"AE05" not in b"".join(b.to_pybytes() for b in enforced.batch.column(0).buffers() if b is not None)


def test_constraints_come_after_nulls():
    """On a closed attribute an equality still forces, since the value is the issuer's; anything else drops."""
    batch = events(numberplate=["A"], location=["Paddington"])
    forces = clause("3265", action=PUBLISH, where=[("3467", "=", "Victoria")])
    assert transit(enforce_publication(NUMBERPLATE, batch, [forces])) == [("A", None, "Victoria")]
    drops = clause("3265", action=PUBLISH, where=[("3467", "prefix", "Padd")])
    assert refused(enforce_publication(NUMBERPLATE, batch, [drops])) == {0: CONSTRAINT_VIOLATED}


def test_a_constraint_on_an_attribute_that_the_version_lacks_drops():
    """What cannot be there cannot be forced."""
    right = clause(action=PUBLISH, where=[("4711", "=", "x")])
    assert refused(enforce_publication(NUMBERPLATE, events(numberplate=["A"]), [right])) == {0: CONSTRAINT_VIOLATED}


FORCED = {
    "integer": ("=", 7, 7), "float": ("=", 1.5, 1.5), "decimal": ("=", Decimal(24), Decimal(24)),
    "boolean": ("=", True, True), "date": ("=", date(2026, 6, 1), date(2026, 6, 1)), "string": ("=", "", ""),
    "boolean by its opposite": ("!=", True, False), "integer in a set of one": ("in", (7,), 7),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORCED)
def test_every_kind_of_value_can_be_forced(kind):
    """Equality forces whatever the type; also when it is written otherwise."""
    operator, value, expected = FORCED[kind]
    item = EVERY_KIND.by_name(kind.split()[0])
    right = clause(action=PUBLISH, where=[(item.uid, operator, value)])
    enforced = enforce_publication(EVERY_KIND, events(EVERY_KIND, binary=[b"x"]), [right])
    assert enforced.batch.to_pylist()[0][item.uid] == expected


UNREACHABLE = {
    "a decimal finer than the type": ("decimal", Decimal("0.0000000000000000001")),
    "a decimal larger than the type": ("decimal", Decimal(10) ** 21),
    "an integer of 65 bits": ("integer", 2**64),
    "an integer of 64 bits without sign": ("integer", 2**63),
}


@pytest.mark.parametrize("kind, value", UNREACHABLE.values(), ids=UNREACHABLE)
def test_a_value_that_the_type_does_not_have_is_never_forced(kind, value):
    """A right that demands an impossible value admits nothing, and stops nobody's worker."""
    item = EVERY_KIND.by_name(kind)
    right = clause(action=PUBLISH, where=[(item.uid, "=", value)])
    batch = events(EVERY_KIND, **{kind: [1 if kind == "integer" else Decimal(1), None]})
    assert refused(enforce_publication(EVERY_KIND, batch, [right])) == dict.fromkeys((0, 1), CONSTRAINT_VIOLATED)


def test_without_a_clause_every_row_is_refused():
    """No right, no event; the refusals say so."""
    enforced = enforce_publication(NUMBERPLATE, events(numberplate=["A", "B"]), [])
    assert refused(enforced) == {0: "NOT_PERMITTED", 1: "NOT_PERMITTED"}
    assert enforced.batch.num_rows == 0
    assert enforced.batch.schema.names == ["3265", "9058", "3467"]


def test_clauses_are_never_mixed():
    """Two clauses, each opening one attribute: a row goes out under the one that changes least."""
    one, two = clause("3265", action=PUBLISH), clause("3467", action=PUBLISH, where=[("3467", "=", "Victoria")])
    batch = events(numberplate=["A", None, None], location=["Victoria", "Victoria", "Kent"])
    enforced = enforce_publication(NUMBERPLATE, batch, [one, two])
    assert transit(enforced) == [("A", None, None), (None, None, "Victoria"), (None, None, None)]
    again = enforce_publication(NUMBERPLATE, batch, [two, one])
    assert transit(again)[1] == (None, None, "Victoria")


@pytest.mark.threat("T56")
@pytest.mark.parametrize("poison", ["utf-8", "nan", "out of range", "too large", "a day that is none"])
def test_one_bad_value_costs_its_row_and_no_other(poison):
    """One poison event among 100,000: 99,999 are admitted, one is refused with a code."""
    size, at = 100_000, 54_321
    if poison == "utf-8":
        lengths = np.ones(size, dtype=np.int32)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        data = bytearray(b"x" * size)
        data[at] = 0xFF
        column = pa.Array.from_buffers(pa.string(), size, [None, pa.py_buffer(offsets), pa.py_buffer(bytes(data))])
        batch = pa.RecordBatch.from_arrays([column], names=["string"])
    elif poison == "nan":
        values = np.ones(size)
        values[at] = float("nan")
        batch = pa.RecordBatch.from_arrays([pa.array(values)], names=["float"])
    elif poison == "out of range":
        values = np.ones(size, dtype=np.uint64)
        values[at] = 2**63
        batch = pa.RecordBatch.from_arrays([pa.array(values)], names=["integer"])
    elif poison == "too large":
        texts = ["x"] * size
        texts[at] = "x" * (MAX_VALUE + 1)
        batch = pa.RecordBatch.from_arrays([pa.array(texts)], names=["string"])
    else:
        days = np.zeros(size, dtype=np.int32)
        days[at] = 2**31 - 1
        batch = pa.RecordBatch.from_arrays([pa.array(days).cast(pa.date32())], names=["date"])
    enforced = enforce_publication(EVERY_KIND, batch, [ANY])
    assert len(enforced.rows) == enforced.batch.num_rows == 99_999
    assert refused(enforced) == {at: "VALUE_TOO_LARGE" if poison == "too large" else "VALUE_TYPE"}


def test_bad_rows_are_found_wherever_they_are():
    """Several bad rows in several columns, at both ends and side by side; all others pass."""
    size = 1_000
    floats, wholes = np.ones(size), np.ones(size, dtype=np.uint64)
    floats[[0, 500, 501]] = np.inf
    wholes[[501, 999]] = 2**64 - 1
    batch = pa.RecordBatch.from_arrays([pa.array(floats), pa.array(wholes)], names=["float", "integer"])
    enforced = enforce_publication(EVERY_KIND, batch, [ANY])
    assert refused(enforced) == dict.fromkeys((0, 500, 501, 999), "VALUE_TYPE")
    assert len(enforced.rows) == size - 4
    rows = enforce_publication(EVERY_KIND, batch.slice(0, 1), [ANY])
    assert (len(rows.rows), len(rows.refusals)) == (0, 1)


COLUMNS_AT_FAULT = {
    "an unknown column": (pa.RecordBatch.from_pydict({"colour": ["red", "blue"]}), "NO_ATTRIBUTE"),
    "a column twice": (
        pa.RecordBatch.from_arrays([pa.array([1, 2])] * 2, names=["timestamp"] * 2), "ATTRIBUTE_NAME_TWICE",
    ),
    "a column of another kind": (pa.RecordBatch.from_pydict({"numberplate": [42, 43]}), "VALUE_TYPE"),
}  # fmt: skip


@pytest.mark.parametrize("batch, code", COLUMNS_AT_FAULT.values(), ids=COLUMNS_AT_FAULT)
def test_a_fault_of_the_columns_refuses_every_row(batch, code):
    """A plate that is an integer, an unknown attribute, a name twice: nothing goes out, each row is accounted for."""
    enforced = enforce_publication(NUMBERPLATE, batch, [ANY])
    assert refused(enforced) == {0: code, 1: code}
    assert enforced.batch.num_rows == 0


@pytest.mark.threat("T64")
@pytest.mark.threat("T65")
def test_names_are_only_names():
    """Names with quotes, dots, backticks and SQL, and names that differ in case only, stay what they are."""
    names = ["Price", "price", "a.b", "a`b", "'; drop table x; --", "${x}", "*"]
    event_type = EventType(
        name=TypeName(OWNER.public_key, "t.Names", Version("1")),
        attributes=tuple(attribute(name, n, "string") for n, name in enumerate(names)),
    )
    batch = pa.RecordBatch.from_arrays([pa.array([name]) for name in names], names=names)
    closed = clause("0", "2", "3", "4", "5", "6", action=PUBLISH)
    [row] = enforce_publication(event_type, batch, [closed]).batch.to_pylist()
    assert row == {str(n): None if name == "price" else name for n, name in enumerate(names)}


def test_a_type_without_attributes_keeps_its_rows():
    """Events that say nothing but that they happened are counted too."""
    event_type = EventType(name=TypeName(OWNER.public_key, "t.Nothing", Version("1")), attributes=())
    batch = pa.RecordBatch.from_struct_array(pa.nulls(5, pa.struct([])))
    enforced = enforce_publication(event_type, batch, [ANY])
    assert (enforced.batch.num_rows, len(enforced.rows), enforced.refusals) == (5, 5, ())


def test_an_empty_batch_is_no_fault():
    """Nothing in, nothing out."""
    enforced = enforce_publication(NUMBERPLATE, events(numberplate=[]), [ANY])
    assert (enforced.batch.num_rows, enforced.refusals) == (0, ())


def test_octets_are_constrained_by_presence_alone():
    """On binary attributes nothing can be asked but that they are there; anything else drops."""
    item = EVERY_KIND.by_name("binary")
    batch = events(EVERY_KIND, binary=[b"x", None])
    there = clause(action=PUBLISH, where=[(item.uid, "any", "")])
    assert enforce_publication(EVERY_KIND, batch, [there]).rows.tolist() == [0]
    equal = clause(action=PUBLISH, where=[(item.uid, "=", "x")])
    assert enforce_publication(EVERY_KIND, batch, [equal]).rows.tolist() == []
    assert isinstance(there, Clause)
    assert item.type is AttributeType.BINARY


def test_rows_that_fit_one_by_one_but_not_together_are_refused(monkeypatch):
    """A column that cannot hold all its rows at once refuses the batch; no row is lost on the way."""

    def narrow(event_type, batch):
        if batch.num_rows > 10:
            raise MalformedError("too much for one column", code="VALUE_TYPE")
        return check_batch(event_type, batch)

    monkeypatch.setattr("maia.kernel.type_check.check_batch", narrow)
    enforced = enforce_publication(NUMBERPLATE, events(numberplate=["A"] * 20), [ANY])
    assert refused(enforced) == dict.fromkeys(range(20), "VALUE_TYPE")
    assert enforced.batch.num_rows == 0
