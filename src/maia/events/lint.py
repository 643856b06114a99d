"""Would a new version hurt anybody? Adding and renaming never do; removing and retyping may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.events.attributes import Attribute, Uid
from maia.events.changes import diff
from maia.events.definition import EventType


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
class Finding:
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
    "define a new type and run a translator client that subscribes to the old one and publishes the new one, "
    "or keep the attribute"
)


def lint(old: EventType, new: EventType, clients: Iterable[LiveClient]) -> tuple[Finding, ...]:
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
        users = tuple(sorted(client.name for client in live if client.uses(lost.uid)))
        if users:
            code = "ATTRIBUTE_REMOVED" if change.after is None else "ATTRIBUTE_RETYPED"
            findings.append(Finding(code=code, attribute=lost, clients=users, advice=_ADVICE))
    return tuple(findings)
