"""Optional inheritance: a child lists its own attributes and takes over those of the version it extends."""

from __future__ import annotations

from dataclasses import replace

from maia.errors import MalformedError
from maia.events.definition import EventType


def inherit(child: EventType, parent: EventType) -> EventType:
    """Put a child's attributes together: those of the parent first, then its own.

    ``parent`` is the definition that the child's `extends` names, itself put together when it extends another.

    Raises:
        MalformedError: The child extends another type or version, or re-uses a name or a uid of the parent.
    """
    if child.extends != parent.name:
        raise MalformedError(f"`{child.name.name}` does not extend `{parent.name}`", code="TYPE_EXTENDS")
    return replace(child, attributes=parent.attributes + child.attributes)
