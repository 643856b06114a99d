"""Translator clients: they subscribe to one type and publish another.

Where a change would cut clients off from each other, the thesis advises a new type and such a client between the two.
Unlike version translation this copies from one attribute to a different one, so the pairs are written down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.errors import MalformedError
from maia.events.definition import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """Copies attributes of one type to attributes of another.

    Attributes:
        source: The version that is subscribed to.
        target: The version that is published.
        pairs: Names in the source and in the target; both attributes have one type.
    """

    source: EventType
    target: EventType
    pairs: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        """Refuse pairs of two types, two values for one attribute, and a type that would feed itself."""
        if self.source.type_id == self.target.type_id:
            raise MalformedError("versions of one type are translated by themselves", code="TRANSLATOR_PAIRS")
        if not self.pairs:
            raise MalformedError("the two types have no attribute in common; name pairs", code="TRANSLATOR_PAIRS")
        if len({new for _, new in self.pairs}) != len(self.pairs):
            raise MalformedError("an attribute would get two values", code="TRANSLATOR_PAIRS")
        for old, new in self.pairs:
            if self.source.by_name(old).type != self.target.by_name(new).type:
                raise MalformedError(f"`{old}` and `{new}` have different types", code="TRANSLATOR_PAIRS")

    @classmethod
    def by_name(cls, source: EventType, target: EventType, *, names: Iterable[str] | None = None) -> Translator:
        """Pair the attributes that are called the same and have the same type, or just those that are named."""
        if names is None:
            kinds = {item.name: item.type for item in target.attributes}
            names = [item.name for item in source.attributes if kinds.get(item.name) is item.type]
        return cls(source=source, target=target, pairs=tuple((name, name) for name in names))
