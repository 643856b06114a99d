"""Whether a principal reads or writes a cell: the kernel's own functions, put to one row.

Where a row is given, it is delivered, or published, to see. Where none is, one is looked for that the demands of the
principal's clauses admit, and that row is delivered or published; so whoever is said to read a cell has a row to show
for it. What cannot be found out is said to be in doubt.

Rules kept here: a subscription that a bounded right needs is chosen among those that its bounds are made of; rates are
taken as not used up, and nothing is drawn from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product

import pyarrow as pa

from maia.authority import Action, Tag, attributes_of, parse_tag, permits
from maia.errors import DeniedError, UncheckedError
from maia.events import EventType, Uid, ValueType, arrow_type, to_arrow_schema
from maia.filters import BoundKind, Side, TypedConstraint, TypedFilter, Value, read_atom, to_tag, value_atom
from maia.kernel import (
    Clause,
    DeliveryPlan,
    Subscription,
    check_readable,
    enforce_publication,
    require_bounds,
)
from maia.reasoning.demands import literals, samples, stated
from maia.reasoning.regions import Demands, Row, Space
from maia.reasoning.world import World

_IDENTITY = "asked about"
_MOST_ROWS = 64
_UPPER = (BoundKind.UPPER, BoundKind.STRICT_UPPER)


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell that a principal reads or writes.

    Attributes:
        clauses: Those of its clauses that open it, in this row.
        row: The row, by uid.
        assumed: Conditions on the event that are taken to hold in some row, since none was found in which they do.
    """

    clauses: tuple[Clause, ...]
    row: Row
    assumed: tuple[str, ...] = ()


def shown(
    world: World,
    clauses: Sequence[Clause],
    action: Action,
    event_type: EventType,
    uid: str,
    *,
    row: Row | None = None,
    where: Demands = (),
) -> Shown | None:
    """Tell whether clauses open a cell: in this row, or in some row.

    Args:
        world: Where.
        clauses: Of one principal, as the kernel gives them.
        action: Whether it is read or written.
        event_type: The version.
        uid: The attribute.
        row: The row, by uid; any row when there is none.
        where: What is asked of the row, when any will do.

    Raises:
        UncheckedError: It cannot be told.
    """
    held = [_unmetered(clause) for clause in clauses]
    openers = [clause for clause in held if clause.opens(uid)]
    if not openers:
        return None
    kinds = world.sessions.kinds(event_type.type_id)
    if row is not None:
        used = _used(world, held, action, event_type, uid, row, kinds)
        if used is None and action is Action.SUBSCRIBE and _lower_bounds(openers):
            raise _in_doubt()
        return None if used is None else Shown(used, row)
    alone = action is Action.SUBSCRIBE or all(clause.holder is None for clause in held)
    free = next((clause for clause in openers if alone and clause.holder is None and _is_free(clause)), None)
    if free is not None and not where:
        return Shown((free,), {})
    return _somewhere(world, held, openers, action, event_type, uid, where)


def _somewhere(
    world: World,
    held: Sequence[Clause],
    openers: Sequence[Clause],
    action: Action,
    event_type: EventType,
    uid: str,
    where: Demands,
) -> Shown | None:
    """Look for a row in which clauses open a cell."""
    kinds = world.sessions.kinds(event_type.type_id)
    doubt: UncheckedError | None = None
    assumed: Shown | None = None
    for group in _groups(held, openers, action):
        asked = tuple(text for clause in group if clause.guard is not None for text in clause.guard.conditions)
        held_to = (demand for clause in group for demand in (*clause.constraints, *_within(clause)))
        demands = (*where, *held_to, *stated(asked, kinds))
        try:
            for candidate in chain.from_iterable(_meeting(row, asked, kinds) for row in _rows(kinds, demands, uid)):
                used = _used(world, held, action, event_type, uid, candidate, kinds)
                if used is not None:
                    return Shown(used, candidate)
                if asked and assumed is None:
                    assumed = Shown(group, candidate, asked)
        except UncheckedError as error:
            doubt = error
    if assumed is not None:
        return assumed
    if doubt is None and _lower_bounds(openers):
        doubt = _in_doubt()
    if doubt is not None:
        raise doubt
    return None


def _within(clause: Clause) -> Iterator[tuple[str, Tag]]:
    """Give what the upper bounds of a clause ask of rows: beyond them nothing is subscribed to or published."""
    for bound in clause.cells.bounds:
        if bound.kind in _UPPER:
            for uid, constraints in bound.filter.by_attribute().items():
                yield uid, parse_tag(to_tag(constraints))


def _lower_bounds(clauses: Iterable[Clause]) -> bool:
    return any(bound.kind not in _UPPER for clause in clauses for bound in clause.cells.bounds)


def _in_doubt() -> UncheckedError:
    message = "a right has a lower bound, and no subscription or row that was tried keeps to it"
    return UncheckedError(message, code="BOUND_IN_DOUBT")


def _is_free(clause: Clause) -> bool:
    """Tell whether a clause admits every row and every subscription."""
    return not clause.constraints and not clause.conditions and not clause.cells.bounds


def _unmetered(clause: Clause) -> Clause:
    """Take the rates of a clause as not used up."""
    return clause if clause.guard is None else replace(clause, guard=replace(clause.guard, rates=()))


def _groups(held: Sequence[Clause], openers: Iterable[Clause], action: Action) -> Iterator[tuple[Clause, ...]]:
    """Put a clause that opens a cell beside those on other types of the lineage that the row has to do with as well.

    A row is read when a clause on the type itself admits it; it is published under one clause of each type.
    """
    by_holder: dict[object, list[Clause]] = {}
    for clause in held:
        by_holder.setdefault(clause.holder, []).append(clause)
    for opener in openers:
        needed = {None, opener.holder} if action is Action.SUBSCRIBE else by_holder.keys()
        choices = [[opener] if holder == opener.holder else by_holder.get(holder, []) for holder in needed]
        yield from islice(product(*choices), _MOST_ROWS)


def _rows(kinds: Mapping[str, ValueType], demands: Demands, uid: str) -> Iterator[Row]:
    """Give rows that meet demands; the first ones suffice unless something else is asked as well."""
    try:
        space = Space.of(kinds, (demands,))
        box = space.box(demands)
        if box is not None:
            yield space.row(box)
            yield {name: value for name, value in space.row(box).items() if name == uid or name in box}
    except UncheckedError:
        yield from _tried(kinds, demands, uid)
        raise


def _meeting(row: Row, conditions: Iterable[str], kinds: Mapping[str, ValueType]) -> Iterator[Row]:
    """Give a row, and rows like it with values that conditions on the event are written with."""
    yield row
    said = tuple(conditions)
    named = sorted({uid for text in said for uid in attributes_of(text) or () if uid in kinds})
    values = [literals(said, kinds[uid]) for uid in named]
    for chosen in islice(product(*values), _MOST_ROWS) if named else ():
        yield {**row, **dict(zip(named, chosen, strict=True))}


def _tried(kinds: Mapping[str, ValueType], demands: Demands, uid: str) -> Iterator[Row]:
    """Try values that the demands are written with, where they cannot be reasoned about."""
    chosen: dict[str, list[Value]] = {}
    for name, tag in demands:
        kind = kinds[name].base
        atoms = (*samples(tag.to_sexp()), b"0", b"1", b"10", b"100", b"a")
        values = [value for atom in atoms if (value := read_atom(atom, kind)) is not None]
        chosen[name] = [value for value in values if permits(tag, value_atom(value, kind))][:4]
    free = Space(kinds).row({})
    start = {uid: free[uid]} if uid in free else {}
    for picked in islice(product(*chosen.values()), _MOST_ROWS):
        yield start | dict(zip(chosen, picked, strict=True))


def _used(
    world: World,
    held: Sequence[Clause],
    action: Action,
    event_type: EventType,
    uid: str,
    row: Row,
    kinds: Mapping[str, ValueType],
) -> tuple[Clause, ...] | None:
    """Deliver or publish one row; give the clauses that open the cell, or nothing when it is not there."""
    try:
        if action is Action.SUBSCRIBE:
            return _read(held, event_type, uid, _transit(row, kinds), kinds)
        return _written(world, held, event_type, uid, row)
    except (pa.ArrowException, OverflowError, ValueError):
        return None  # no value of the type


def _transit(row: Row, kinds: Mapping[str, ValueType]) -> pa.RecordBatch:
    columns = {uid: pa.array([row.get(uid)], type=arrow_type(kind)) for uid, kind in kinds.items()}
    return pa.RecordBatch.from_pydict(columns)


def _read(
    held: Sequence[Clause], event_type: EventType, uid: str, batch: pa.RecordBatch, kinds: Mapping[str, ValueType]
) -> tuple[Clause, ...] | None:
    for wanted in _subscriptions(held):
        try:
            allowed = require_bounds(held, wanted, Side.SUBSCRIBE)
            check_readable(wanted, allowed)
        except DeniedError:
            continue
        if _seen(allowed, event_type, uid, batch, kinds, wanted):
            alone = tuple(clause for clause in allowed if clause.opens(uid) and _met(clause, batch, event_type, kinds))
            return alone or allowed
    return None


def _seen(
    clauses: Sequence[Clause],
    event_type: EventType,
    uid: str,
    batch: pa.RecordBatch,
    kinds: Mapping[str, ValueType],
    wanted: TypedFilter,
) -> bool:
    plan = DeliveryPlan(kinds)
    plan.add(Subscription(_IDENTITY, event_type, wanted, tuple(clauses)))
    return bool(plan.seen(_IDENTITY, uid, batch)[0])


def _met(clause: Clause, batch: pa.RecordBatch, event_type: EventType, kinds: Mapping[str, ValueType]) -> bool:
    """Tell whether a clause's demands and conditions hold in the row, whichever type it is on."""
    alone = replace(clause, holder=None)
    return any(
        clause.opens(item.uid) and _seen((alone,), event_type, item.uid, batch, kinds, TypedFilter())
        for item in event_type.attributes
    )


def _subscriptions(held: Sequence[Clause]) -> Iterator[TypedFilter]:
    """Give subscriptions that bounded rights may allow: all events, then what upper bounds and all bounds say."""
    yield TypedFilter()
    bounds = [clause.cells.bounds for clause in held if clause.cells.bounds]
    for within in dict.fromkeys(bounds):
        upper = [bound for bound in within if bound.kind in _UPPER]
        for chosen in (upper, within, *([one] for one in within)):
            constraints: dict[TypedConstraint, None] = {item: None for one in chosen for item in one.filter.constraints}
            yield TypedFilter(constraints=tuple(constraints))


def _written(
    world: World, held: Sequence[Clause], event_type: EventType, uid: str, row: Row
) -> tuple[Clause, ...] | None:
    """Publish one row: it must leave as it is where the attribute in question is concerned."""
    values = {item.name: row.get(item.uid) for item in event_type.attributes}
    batch = pa.RecordBatch.from_pylist([values], to_arrow_schema(event_type))
    descent = world.sessions.descent(event_type.type_id) if len(world.sessions.lineage(event_type)) > 1 else None
    done = enforce_publication(event_type, batch, held, at=world.at, descent=descent)
    at = done.batch.schema.get_field_index(uid)
    if not done.batch.num_rows or at < 0:
        return None
    item = event_type.by_uid(Uid(uid))
    if item is None or done.batch.column(at)[0] != batch.column(item.name)[0]:
        return None
    return tuple(clause for clause in held if clause.opens(uid))
