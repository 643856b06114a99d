"""Labels as clauses: what may flow to a reader, in the form in which rights meet data; there is no second enforcement.

Rules kept here:

- a cell is open when a clause of the reader's rights opens it **and** its label may flow to the reader: labels only
  ever close;
- a flow tag that a carrier gives stays a question to each row: the carrier's value must be one that may flow to the
  reader, and a row without one is as secret as the whole family;
- a filter over an attribute that no row opens is refused, as it is without labels;
- a flow tag that a reader lost opens to it what was stamped before, by clauses of their own, and no filter reads by
  them: what is published since has the next tag of the sequence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from maia.authority import intersect, is_nothing, uids_tag, value_tag
from maia.errors import DeniedError
from maia.events import AttributeType, EventType
from maia.filters import TypedFilter
from maia.kernel.clauses import Clause
from maia.kernel.client_filter import check_readable
from maia.labels import FlowChecks, Label, RelationLabel

Demand = tuple[str, tuple[str, ...]]
"""A uid, and the values of it that may flow to the reader."""
MAX_ENDS = 64
"""At so many instants, the latest, lost tags count; what was lost earlier is closed as a whole."""


def screen_by_labels(
    clauses: Iterable[Clause],
    event_type: EventType,
    labels: RelationLabel,
    reader: Label,
    filter_: TypedFilter,
    *,
    lost: Mapping[str, int] | None = None,
) -> tuple[Clause, ...]:
    """Close what may not flow to a reader.

    Args:
        clauses: The reader's rights.
        event_type: The version that it sees.
        labels: What its attributes carry, by name.
        reader: The reader's label.
        filter_: Its filter, over uids.
        lost: Flow tags that it had, each with the stamp from which on what carries it is closed.

    Raises:
        DeniedError: Nothing of the type may flow to the reader (``LABELS_CLOSE_ALL``), or its filter reads what may
            not (``FILTER_NOT_AUTHORISED``).
    """
    rights = tuple(clauses)
    now = _screened(rights, event_type, labels, FlowChecks(reader))
    found = [*now]
    for before, secrecy in _earlier(reader, lost or {}):
        then = Label(secrecy=secrecy, integrity=reader.integrity)
        found += [replace(item, before=before) for item in _screened(rights, event_type, labels, FlowChecks(then))]
    if not found:
        raise DeniedError("nothing of the type may flow to this reader", code="LABELS_CLOSE_ALL")
    check_readable(filter_, now, event_type)
    return tuple(found)


def _earlier(reader: Label, lost: Mapping[str, int]) -> Iterator[tuple[int, frozenset[str]]]:
    """Say, latest first, at which stamps tags were lost, and what of before each may flow to the reader."""
    ends = sorted({stamp for tag, stamp in lost.items() if tag not in reader.secrecy}, reverse=True)
    for end in ends[:MAX_ENDS]:
        yield end, reader.secrecy.union(tag for tag, stamp in lost.items() if stamp >= end)


def _screened(
    clauses: tuple[Clause, ...], event_type: EventType, labels: RelationLabel, checks: FlowChecks
) -> tuple[Clause, ...]:
    """Narrow clauses to what may flow to a reader."""
    groups: dict[tuple[Demand, ...], list[str]] = defaultdict(list)
    uids = {item.name: item.uid for item in event_type.attributes}
    texts = {str(item.uid) for item in event_type.attributes if item.type is AttributeType.STRING}
    for name, label in labels.columns.items():
        bounded = checks.open_part(label)  # of attributes with equal labels, the first is checked
        if bounded is None:
            continue
        open_to = {
            (uids[str(item.column)], tuple(sorted(item.values))) for item in bounded.carriers if item.values is not None
        }
        groups[tuple(sorted(open_to))].append(uids[name])
    found: dict[tuple[object, ...], Clause] = {}
    for clause in clauses:
        for demands, opened in groups.items():
            made = _narrowed(clause, opened, demands, texts)
            if made is not None:
                found[made.cells, made.conditions, made.holder, made.chain] = made
    return tuple(found.values())


def _narrowed(clause: Clause, opened: list[str], demands: tuple[Demand, ...], texts: set[str]) -> Clause | None:
    """Let a clause open only some attributes, in rows that meet demands; nothing when there are none."""
    cells = clause.cells
    uids = intersect(cells.uids, uids_tag(opened))
    asked = dict(cells.constraints)
    for uid, values in demands:
        if uid not in texts:
            return None
        tag = value_tag("in", values)
        asked[uid] = intersect(asked[uid], tag) if uid in asked else tag
    if is_nothing(uids) or any(map(is_nothing, asked.values())):
        return None
    return replace(clause, cells=replace(cells, uids=uids, constraints=tuple(asked.items())))
