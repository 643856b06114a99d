"""Publication against an oracle that looks at one row and one clause at a time, in plain Python."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given
from strategies_events import kinds, rows, rules, transit, versions

from maia.authority import Action
from maia.kernel import CONSTRAINT_VIOLATED, enforce_publication


def forced_by(rule):
    """By uid, the one value that the demands of a rule leave when they are one equality; the rest must be met."""
    forced, rest = {}, []
    by_uid = {}
    for demand in rule.demands:
        by_uid.setdefault(demand.uid, []).append(demand)
    for uid, found in by_uid.items():
        # Several demands on one attribute are one constraint: their values in common.
        values = None
        for demand in found:
            if demand.operator in {"=", "in"}:
                mine = [v for v in demand.values if values is None or v in values]
                values = mine
            elif demand.operator == "!=" and isinstance(demand.values[0], bool):
                mine = [v for v in (not demand.values[0],) if values is None or v in values]
                values = mine
        if values is not None:
            values = {v for v in values if all(d.holds(v) for d in found)}
        bounds = [d.values[0] for d in found if d.operator in {"<=", ">="}]
        if values is not None and len(values) == 1:
            forced[uid] = next(iter(values))
        elif (
            values is None
            and len(bounds) == 2
            and bounds[0] == bounds[1]
            and {d.operator for d in found} == {"<=", ">="}
        ):
            forced[uid] = bounds[0]
        else:
            rest += found
    return forced, rest


def outcome(rule, event_type, row):
    """What one clause makes of one row: the transit row and how many cells changed, or ``None`` when it is dropped."""
    forced, rest = forced_by(rule)
    uids = [item.uid for item in event_type.attributes]
    if any(uid not in uids for uid in forced):
        return None
    out = {uid: forced.get(uid, row.get(uid) if rule.opens(uid) else None) for uid in uids}
    if not all(demand.holds(out.get(demand.uid)) for demand in rest):
        return None
    changes = sum(out[uid] != row.get(uid) for uid in uids)
    return changes, out


@st.composite
def worlds(draw):
    """Events of one version and a publisher's rules."""
    shape = draw(kinds())
    event_type = draw(versions(shape))
    events = draw(rows(shape))
    return shape, event_type, events, draw(st.lists(rules(shape), max_size=3))


def batch_of(event_type, shape, events):
    """The events by name, as a publisher hands them in."""
    whole = transit(events, shape)
    chosen = [item for item in event_type.attributes if item.uid in shape]
    return pa.RecordBatch.from_arrays([whole.column(i.uid) for i in chosen], names=[i.name for i in chosen])


@given(worlds())
def test_publication_equals_the_oracle(world):
    """Each row goes out under the admitting clause that changes least, or is refused."""
    shape, event_type, events, held = world
    batch = batch_of(event_type, shape, events)
    if not batch.num_columns:
        return
    alive = [(rule, rule.maia(Action.PUBLISH)) for rule in held]
    alive = [(rule, clauses) for rule, clauses in alive if clauses]
    enforced = enforce_publication(event_type, batch, [clause for _, found in alive for clause in found])
    refused = {refusal.row: refusal.code for refusal in enforced.refusals}
    admitted = dict(zip(enforced.rows.tolist(), enforced.batch.to_pylist(), strict=True))
    for at, event in enumerate(events):
        row = {item.uid: event.get(item.uid) for item in event_type.attributes}
        found = [made for made in (outcome(rule, event_type, row) for rule, _ in alive) if made is not None]
        if not alive:
            assert refused[at] == "NOT_PERMITTED"
        elif not found:
            assert refused[at] == CONSTRAINT_VIOLATED
        else:
            fewest = min(changes for changes, _ in found)
            assert admitted[at] == next(out for changes, out in found if changes == fewest)


@given(worlds())
def test_input_is_admitted_plus_refused(world):
    """Every input row is in the output once: admitted at its place, or refused with a code."""
    shape, event_type, events, held = world
    batch = batch_of(event_type, shape, events)
    clauses = [clause for rule in held for clause in rule.maia(Action.PUBLISH)]
    enforced = enforce_publication(event_type, batch, clauses)
    assert enforced.batch.num_rows == len(enforced.rows)
    everywhere = [*enforced.rows.tolist(), *(refusal.row for refusal in enforced.refusals)]
    assert sorted(everywhere) == list(range(batch.num_rows))
    assert enforced.rows.tolist() == sorted(enforced.rows.tolist())
    assert all(refusal.code.isupper() for refusal in enforced.refusals)
