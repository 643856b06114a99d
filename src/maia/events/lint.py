"""Would a new version hurt anybody? Adding and renaming never do; removing and retyping may."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from maia.encoding import printable
from maia.errors import MalformedError
from maia.events.attributes import Attribute, Uid, parse_uid
from maia.events.changes import diff
from maia.events.definition import EventType
from maia.events.lookalikes import lookalikes
from maia.events.names import TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveClient:
    """Someone who uses a type now.

    Attributes:
        name: How to call the client in a warning.
        uids: The attributes it reads or writes; ``None`` when it uses all of them.
    """

    name: str
    uids: frozenset[Uid] | None = None

    def uses(self, uid: Uid) -> bool:
        """Tell whether the client needs this attribute."""
        return self.uids is None or uid in self.uids


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFinding:
    """A warning: clients that lose an attribute once others move to the new version.

    Attributes:
        code: ``ATTRIBUTE_REMOVED`` or ``ATTRIBUTE_RETYPED``.
        attribute: What they lose.
        clients: Their names, sorted; empty when nobody is known to use it.
        advice: What to do instead.
    """

    code: str
    attribute: Attribute
    clients: tuple[str, ...]
    advice: str


_ADVICE = (
    "define a new type and run a translator client, which subscribes to the old one and publishes the new one "
    "(`maia translate OLD NEW`), or keep the attribute"
)


def lint(old: EventType, new: EventType, clients: Iterable[LiveClient]) -> tuple[VersionFinding, ...]:
    """Warn about what a new version takes away from live clients.

    Returns:
        A finding for each attribute that is removed or retyped while somebody uses it; none when the change is safe.

    Raises:
        MalformedError: The versions belong to two types, or a uid changed its type.
    """
    live = tuple(clients)
    findings = []
    for change in diff(old, new).changes:
        lost = change.before
        if lost is None or (change.after is not None and change.after.uid == lost.uid):
            continue
        users = tuple(sorted({client.name for client in live if client.uses(lost.uid)}))
        if users:
            code = "ATTRIBUTE_REMOVED" if change.after is None else "ATTRIBUTE_RETYPED"
            findings.append(VersionFinding(code=code, attribute=lost, clients=users, advice=_ADVICE))
    return tuple(findings)


def parse_live_clients(data: bytes, version: EventType) -> list[LiveClient]:
    """Read live clients, one JSON object a line; attributes by name in a version, or by uid.

    Raises:
        MalformedError: A line is no client: ``CLIENTS_FILE``.
    """
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, names, uids = str(row["client"]), row.get("attributes"), row.get("uids")
            used = None if names is None and uids is None else {parse_uid(uid) for uid in uids or ()}
            if used is not None:
                used |= {version.by_name(item).uid for item in names or ()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise MalformedError(f"line {number} is no client", code="CLIENTS_FILE") from error
        found.append(LiveClient(name=name, uids=None if used is None else frozenset(used)))
    return found


def misleading_names(definition: EventType, known: Iterable[TypeName]) -> list[str]:
    """Say what about the readable names could mislead: the type's own, and those of its attributes."""
    name, own = definition.name.name, printable(definition.name.name)
    others = tuple({item.name for item in known if item.type_id != definition.type_id})
    notes = [f"the name `{own}` {note}" for note in lookalikes(name, others)]
    if name in others:
        notes.append(f"another owner has a type `{own}`; the key decides which one is meant")
    siblings = tuple(item.name for item in definition.attributes)
    for item in definition.attributes:
        notes.extend(f"the attribute `{printable(item.name)}` {note}" for note in lookalikes(item.name, siblings))
    return notes
