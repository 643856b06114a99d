"""Who is bounded by what, and what becomes of a filter or an event: asked of the kernel, before anything happens.

Either of the rules in policy files, which need not be in force, or of the clauses that a client has now. Each right is
judged alone, as the kernel judges it; conditions are not asked, and no rate is drawn upon.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from maia.authority import Action, cell_rights
from maia.domain.access_control import HomeHoldings
from maia.domain.snapshot import Snapshot
from maia.encoding import did_you_mean
from maia.errors import DeniedError, MaiaError, MalformedError, UsageError
from maia.events import (
    Attribute,
    AttributeType,
    ClosedAttributes,
    EventType,
    batch_to_transit,
    to_arrow_schema,
    value_from_json,
)
from maia.filters import Side, TypedFilter, compile_filter
from maia.home import Home, words
from maia.kernel import (
    Clause,
    DeliveryPlan,
    Subscription,
    announce,
    check_readable,
    enforce_publication,
    omit_closed,
    require_bounds,
    uid_filter,
)
from maia.policy import (
    AuthorisationRule,
    EventRight,
    PolicySource,
    TypeCatalogue,
    compile_privilege,
    parse_source,
)
from maia.principals import PublicKey

_EXACT = 1 << 53  # whole numbers up to here are floats as they are
_ACTIONS = {"publish": Action.PUBLISH, "advertise": Action.PUBLISH, "subscribe": Action.SUBSCRIBE}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuestion:
    """What is asked about: a subscription, an advertisement or an event of a version.

    Attributes:
        event_type: The version.
        side: Which of the three.
        filter: The text of a subscription or advertisement.
        event: The event to publish, or the one of which a subscription would see something; values as in JSON.

    Raises:
        UsageError: The event has an attribute that the version lacks (``NO_ATTRIBUTE``), or a value that is not of its
            attribute's type (``VALUE_TYPE``).
    """

    event_type: EventType
    side: Side
    filter: str = ""
    event: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        """Refuse an event that is none of the version, whichever rights there are."""
        _row(self.event_type, self.event or {})

    @property
    def action(self) -> Action:
        """Which right it takes."""
        return Action.SUBSCRIBE if self.side is Side.SUBSCRIBE else Action.PUBLISH


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundView:
    """One right and its bounds.

    Attributes:
        by: The file and line of a rule, or the chain of a clause.
        holder: The role, or the client.
        right: The right in words, its bounds included.
        bounds: Its bounds; empty when it has none.
        allowed: The answer to a question, if one was asked; nothing when it depends on a rule's variables.
        code: Why it is refused.
        becomes: What becomes of the filter, or what is published or seen of the event.
    """

    by: str
    holder: str
    right: str
    bounds: str
    allowed: bool | None = None
    code: str = ""
    becomes: str = ""

    def lines(self) -> list[str]:
        """Say it: the right, and the answer below it."""
        found = [f"{self.holder}: {self.right}   by {self.by}"]
        if self.allowed is not None:
            found.append(f"  allowed: {self.becomes}" if self.allowed else f"  refused: {self.code}")
        return found

    def to_json(self) -> dict[str, object]:
        """Give the parts for machines."""
        return {
            "by": self.by, "holder": self.holder, "right": self.right, "bounds": self.bounds,
            "allowed": self.allowed, "code": self.code, "becomes": self.becomes,
        }  # fmt: skip


def rule_bounds(
    sources: Sequence[PolicySource], home: Home | None, asked: BoundQuestion | None = None, *, at: datetime
) -> tuple[BoundView, ...]:
    """List the rights to publish and subscribe that rules give; with a question, those on its type that it takes.

    Args:
        sources: Policy files; they need not be in force.
        home: Knows the types; nothing is judged without it.
        asked: What is asked about.
        at: Now.

    Raises:
        PolicySyntaxError: A file is no policy.
    """
    catalogue = None if home is None else HomeHoldings(home).types(at=at)
    found: list[BoundView] = []
    for source in sources:
        for rule, right in _rights(parse_source(source).authorisations):
            view = BoundView(
                by=f"{source.name}:{rule.line}",
                holder=str(rule.role),
                right=str(right),
                bounds=" ".join(map(str, right.bounds)),
            )
            if asked is None or catalogue is None:
                found.append(view)
                continue
            try:
                known = catalogue.find(right.event_type)
            except MaiaError:
                continue
            name = asked.event_type.name
            if (known.owner, known.name) == (name.owner, name.name) and _ACTIONS[right.action] is asked.action:
                found.append(_judged(view, right, asked, catalogue))
    return tuple(found)


def client_bounds(
    known: Snapshot,
    client: PublicKey,
    event_type: EventType,
    asked: BoundQuestion | None = None,
    *,
    holder: str,
    actions: Iterable[Action],
    at: datetime,
) -> tuple[BoundView, ...]:
    """List the clauses that a client has now; with a question, what each makes of it.

    Args:
        known: The home's evidence.
        client: Whose.
        event_type: The version.
        asked: What is asked about.
        holder: What the client is called here.
        actions: Which rights.
        at: Now.
    """
    chosen = actions if asked is None else (asked.action,)
    found: list[BoundView] = []
    parts = known.sessions.descent(event_type.type_id).parts(item.uid for item in event_type.attributes)
    for action in chosen:
        for clause in known.sessions.clauses(client, action, event_type, known.pool, at=at):
            view = BoundView(
                by=" -> ".join(identity.hex()[:16] for identity in clause.chain) or "the owner itself",
                holder=holder,
                right=f"{action.value} {_cells(clause, event_type)}",
                bounds=words.describe_bounds(clause.cells.bounds, _names(event_type)),
            )
            found.append(view if asked is None else _answered(view, clause, asked, parts.get(clause.holder, ())))
    return tuple(found)


def _rights(rules: Iterable[AuthorisationRule]) -> Iterator[tuple[AuthorisationRule, EventRight]]:
    for rule in rules:
        if isinstance(rule.privilege, EventRight) and rule.privilege.action in _ACTIONS:
            yield rule, rule.privilege


def _judged(view: BoundView, right: EventRight, asked: BoundQuestion, catalogue: TypeCatalogue) -> BoundView:
    """Judge what a rule gives, when it says that without variables."""
    try:
        made = compile_privilege(right, catalogue)
    except MaiaError as error:
        return view if error.code == "POLICY_GROUND" else replace(view, allowed=False, code=error.code)
    if made is None:
        return view
    (cells,) = cell_rights(made.tag)
    return _answered(view, Clause(cells, (), ()), asked, [item.uid for item in asked.event_type.attributes])


def _answered(view: BoundView, clause: Clause, asked: BoundQuestion, uids: Collection[str]) -> BoundView:
    alone = replace(clause, conditions=(), guard=None, holder=None)
    try:
        return replace(view, allowed=True, becomes=_becomes(alone, asked, uids))
    except DeniedError as error:
        return replace(view, allowed=False, code=error.code)


def _becomes(clause: Clause, asked: BoundQuestion, uids: Collection[str]) -> str:
    """Say what becomes of what is asked about, under one clause, which is about certain attributes.

    Raises:
        DeniedError: It is refused.
    """
    event_type = asked.event_type
    if asked.side is Side.PUBLISH:
        done = enforce_publication(event_type, _batch(event_type, asked.event or {}, named=True), (clause,))
        if done.refusals:
            raise DeniedError("the event is refused", code=done.refusals[0].code)
        return _shown(done.batch, event_type)
    wanted = uid_filter(event_type, compile_filter(asked.filter, _types(event_type)))
    if asked.side is Side.ADVERTISE:
        announce((clause,), wanted, {None: uids})
        return asked.filter or "nothing is announced"
    require_bounds((clause,), wanted, asked.side)
    check_readable(wanted, (clause,))
    if asked.event is not None:
        return _seen(clause, wanted, event_type, asked.event)
    names = _names(event_type)
    demands = [f"{names.get(uid, uid)} {words.describe_value(tag.to_sexp())}" for uid, tag in clause.constraints]
    rows = " and ".join(filter(None, (asked.filter, *demands))) or "every event"
    shown = ", ".join(item.name for item in event_type.attributes if clause.opens(item.uid))
    return f"{rows}; shows {shown}"


def _seen(clause: Clause, wanted: TypedFilter, event_type: EventType, event: Mapping[str, object]) -> str:
    plan = DeliveryPlan({item.uid: item.type for item in event_type.attributes})
    plan.add(Subscription("", event_type, wanted, (clause,)))
    for delivery in plan.deliver(_batch(event_type, event, named=False)):
        omits = event_type.options.closed is ClosedAttributes.OMIT
        return json.dumps((omit_closed(delivery) if omits else delivery.batch).to_pylist()[0], default=str)
    return "nothing of this event"


def _batch(event_type: EventType, event: Mapping[str, object], *, named: bool) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist([_row(event_type, event)], schema=to_arrow_schema(event_type))
    return batch if named else batch_to_transit(event_type, batch)


def _row(event_type: EventType, event: Mapping[str, object]) -> dict[str, object]:
    known = {item.name: item for item in event_type.attributes}
    for name in event:
        if name not in known:
            near = did_you_mean(name, known)
            raise UsageError(f"version {event_type.name.version} has no attribute `{name}`{near}", code="NO_ATTRIBUTE")
    return {name: _value(known[name], value) for name, value in event.items()}


def _value(attribute: Attribute, value: object) -> object:
    if attribute.type is AttributeType.FLOAT and type(value) is int and abs(value) <= _EXACT:
        value = float(value)
    try:
        return value_from_json(attribute, value)
    except MalformedError as error:
        message = f"the value of `{attribute.name}` is no {attribute.type.value}"
        raise UsageError(message, code="VALUE_TYPE") from error


def _shown(batch: pa.RecordBatch, event_type: EventType) -> str:
    names = _names(event_type)
    return json.dumps({names[uid]: value for uid, value in batch.to_pylist()[0].items()}, default=str)


def _cells(clause: Clause, event_type: EventType) -> str:
    names = _names(event_type)
    opened = ", ".join(item.name for item in event_type.attributes if clause.opens(item.uid))
    demands = [f"{names.get(uid, uid)} {words.describe_value(tag.to_sexp())}" for uid, tag in clause.constraints]
    within = words.describe_bounds(clause.cells.bounds, names)
    return "".join(
        (
            f"{event_type.name.name}({opened})",
            f" where {' and '.join(demands)}" if demands else "",
            f" {within}" if within else "",
        )
    )


def _names(event_type: EventType) -> dict[str, str]:
    return {str(item.uid): item.name for item in event_type.attributes}


def _types(event_type: EventType) -> dict[str, str]:
    return {item.name: item.type.value for item in event_type.attributes}
