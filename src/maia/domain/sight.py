"""What a client saw of a read, and what not: an empty result never hides a refusal, nor a part of the log that waits.

The counts are those of the audit rows that the read wrote; a repeated task counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from maia.domain.parked import read_parked
from maia.domain.stretches import SILENT
from maia.encoding import counted
from maia.encryption import groups_of
from maia.events import TypeId
from maia.home import Home
from maia.kernel import DeliverPlan, contradicts_right
from maia.log import read_audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a client saw of a type.

    Attributes:
        events: Events that were delivered.
        closed: Attributes, by name, that no right of the client opens.
        keyless: Attributes that are open to the client and whose key the home does not hold: null in every event.
        refused: Events that were refused, by code.
        unmatched: Events that no right admits, or that the client's filter leaves out.
        parked: Lanes of which something is in doubt, damaged or missing, so that it was not read, by code.
        silent: How many lanes there are whose origin does not say any more where they end.
        contradicted: Whether the client's filter asks for what its right never shows.
    """

    events: int = 0
    closed: tuple[str, ...] = ()
    keyless: tuple[str, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    unmatched: int = 0
    parked: Mapping[str, int] = field(default_factory=dict)
    silent: int = 0
    contradicted: bool = False

    def line(self, rows: int | None = None) -> str:
        """Say in one line what was delivered, closed, refused, left out and not read yet.

        >>> Sight(events=3, closed=("name", "ward"), refused={"ORIGIN_NOT_PROVEN": 120}).line()
        '3 rows; 2 attributes closed to you: name, ward; 120 events refused: ORIGIN_NOT_PROVEN'
        >>> Sight(parked={"LOG_FILE_MISSING": 1}).line()
        '0 rows; 1 lane of the log waits, and not all of it was read: LOG_FILE_MISSING (`maia status`)'
        """
        parts = [counted(self.events if rows is None else rows, "row")]
        if self.closed:
            parts.append(f"{counted(len(self.closed), 'attribute')} closed to you: {', '.join(self.closed)}")
        if self.keyless:
            parts.append(f"this home holds no key for {', '.join(self.keyless)}: null in every row")
        if self.refused:
            listed = list(self.refused.items())
            codes = listed[0][0] if len(listed) == 1 else ", ".join(f"{code} {count:,}" for code, count in listed)
            parts.append(f"{counted(sum(self.refused.values()), 'event')} refused: {codes}")
        if self.contradicted:
            parts.append("your filter asks for what your right never shows")
        if self.unmatched:
            parts.append(f"{counted(self.unmatched, 'event')} not in your right or filter")
        if self.parked:
            lanes = counted(sum(self.parked.values()), "lane of the log waits", "lanes of the log wait")
            parts.append(f"{lanes}, and not all of it was read: {', '.join(self.parked)} (`maia status`)")
        if self.silent:
            lanes = counted(self.silent, "origin does not say", "origins do not say")
            parts.append(f"{lanes} any more where its lane ends, so there may be more (`maia status`)")
        return "; ".join(parts)

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        return {
            "events": self.events, "closed": list(self.closed), "keyless": list(self.keyless),
            "refused": dict(self.refused), "unmatched": self.unmatched,
            "parked": dict(self.parked), "silent": self.silent, "contradicted": self.contradicted,
        }  # fmt: skip


def sight_of(
    home: Home,
    plans: Sequence[DeliverPlan],
    *,
    client: str,
    reader: str,
    since: datetime,
    attributes: Sequence[str] | None = None,
    refused_types: Iterable[TypeId] = (),
) -> Sight:
    """Tell what a client saw of a read that began at an instant.

    Args:
        home: Where it was read.
        plans: With the client's one subscription each; several for topics, which have the same attributes.
        client: What the client is called here.
        reader: Under which name it read, see `reader_of`.
        since: When the read began.
        attributes: Which attributes were asked for; all when there are none.
        refused_types: Of which types the client sees nothing.
    """
    closed, keyless = hidden_attributes(home, plans, attributes)
    types = {identity.hex() for identity in (*(plan.type_id for plan in plans), *refused_types)}
    wire = frozenset[str]().union(*(plan.type_ids() for plan in plans))
    counts: dict[tuple[str, str, str, str], int] = {}
    principal = home.key(client).fingerprint
    parked = {(item.lane, item.code) for item in read_parked(home.path) if item.reader == reader}
    for row in read_audit(home.audit_path, since=since):
        if (row.principal, row.subject) == (principal, client) and row.type_id in types:
            counts[row.kind, row.type_id, row.source, row.code] = row.events
        elif row.kind == "alarm" and row.subject == client and row.type_id in wire:
            parked.add((row.source, row.code))  # a segment that was passed by
    refused: dict[str, int] = {}
    for (kind, _, _, code), events in counts.items():
        if kind == "refuse" and events:
            refused[code] = refused.get(code, 0) + events
    codes = Counter(code for _, code in parked)
    silent = codes.pop(SILENT, 0)
    return Sight(
        events=sum(events for (kind, *_), events in counts.items() if kind == "deliver"),
        closed=closed,
        keyless=keyless,
        refused=dict(sorted(refused.items())),
        unmatched=sum(events for (kind, *_), events in counts.items() if kind == "withhold"),
        parked=dict(sorted(codes.items())),
        silent=silent,
        contradicted=all(contradicts_right(plan.subscriptions[0]) for plan in plans),
    )


def hidden_attributes(
    home: Home, plans: Sequence[DeliverPlan], attributes: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the attributes that no right of the client opens, and those whose key the home does not hold.

    A cell that a right opens in other rows alone is not among them: it is null, so that nobody learns from it which
    demand a row meets.
    """
    event_type = plans[0].subscriptions[0].event_type
    wanted = [item for item in event_type.attributes if attributes is None or item.name in attributes]
    clauses = [clause for plan in plans for clause in plan.subscriptions[0].clauses if clause.counts]
    closed = tuple(item.name for item in wanted if not any(clause.opens(item.uid) for clause in clauses))
    ring, mode = home.keyring(), event_type.options.encryption
    keyless = tuple(
        item.name
        for item in wanted
        if item.name not in closed
        and not any(
            all(ring.epochs(group) for group in groups_of(_type_of(plan, item.uid), [item.uid.encode()], mode))
            for plan in plans
        )
    )
    return closed, keyless


def _type_of(plan: DeliverPlan, uid: str) -> TypeId:
    """Tell by which type's keys an attribute is sealed."""
    return (None if plan.descent is None else plan.descent.type_of(uid)) or plan.type_id
