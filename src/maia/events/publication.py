"""Single events: checked against one version, or on their way between two.

A `Publication` holds a value (or null) for each attribute of its version and nothing else. A `TransitEvent` is what
travels: the type without version, and uids instead of names, so that no broker on the way needs a definition and none
can confuse two attributes that were called the same at different times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from maia.errors import MalformedError
from maia.events.attributes import Uid
from maia.events.definition import EventType
from maia.events.names import TypeId
from maia.events.values import Value, check_value


@dataclass(frozen=True, slots=True)
class Publication:
    """One event of one version, type-checked when it was made."""

    event_type: EventType
    values: Mapping[str, Value]

    def __post_init__(self) -> None:
        """Check each value, refuse unknown attributes, and say null for missing ones."""
        names = {item.name for item in self.event_type.attributes}
        for name in self.values:
            if name not in names:
                version = self.event_type.name.version
                raise MalformedError(f"version {version} has no attribute `{name}`", code="NO_ATTRIBUTE")
        checked = {item.name: check_value(item, self.values.get(item.name)) for item in self.event_type.attributes}
        object.__setattr__(self, "values", MappingProxyType(checked))


@dataclass(frozen=True, slots=True)
class TransitEvent:
    """One event on its way: the type's identity, and values by uid."""

    type_id: TypeId
    values: Mapping[Uid, Value]

    def __post_init__(self) -> None:
        """Keep the values from changing under way."""
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))


def to_transit(publication: Publication) -> TransitEvent:
    """Replace names by uids and forget the version.

    Nulls travel too: what a publisher did not say looks like what it was not allowed to say.
    """
    event_type = publication.event_type
    return TransitEvent(
        event_type.type_id,
        {item.uid: publication.values[item.name] for item in event_type.attributes},
    )


def from_transit(event: TransitEvent, event_type: EventType) -> Publication:
    """See a transit event the way one version sees it.

    Only this version is needed, never the publisher's. Uids it does not know are dropped, attributes that did not
    travel are null.

    Raises:
        MalformedError: The event belongs to another type, or a value is not of the type this version gives its uid.
    """
    if event.type_id != event_type.type_id:
        raise MalformedError(f"the event is none of `{event_type.name.name}`", code="OTHER_TYPE")
    return Publication(event_type, {item.name: event.values.get(item.uid) for item in event_type.attributes})


def translate(publication: Publication, event_type: EventType) -> Publication:
    """See an event of one version the way another version of the same type sees it."""
    return from_transit(to_transit(publication), event_type)
