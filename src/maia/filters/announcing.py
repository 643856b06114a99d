"""Which filters need to be told to a neighbour: those that no other told filter covers.

Telling a wider filter makes a narrower one superfluous; taking the wider one back makes the narrower one needed again.
A contradictory filter matches nothing and is never told.
Every other filter that is not told is covered by one that is, so a neighbour that forwards what the told filters match
forwards everything that any filter matches, and nothing else. Filters too large to be compared are told each by itself.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from maia.errors import NotFoundError, UsageError
from maia.filters.covering import satisfiable, surely_covers
from maia.filters.tree import TypedFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What a change means for the neighbour: filters to tell, and filters to take back, in this order."""

    announce: tuple[Hashable, ...] = ()
    withdraw: tuple[Hashable, ...] = ()


class CoveringSet:
    """Named filters of one event type, of which only the widest are announced.

    >>> from maia.filters import compile_filter
    >>> types = {"price": "integer"}
    >>> link = CoveringSet()
    >>> link.add("wide", compile_filter("price > 10", types)).announce
    ('wide',)
    >>> link.add("narrow", compile_filter("price > 20", types)).announce
    ()
    >>> link.remove("wide")
    Announcement(announce=('narrow',), withdraw=('wide',))
    """

    def __init__(self) -> None:
        """Start with nothing announced."""
        self._filters: dict[Hashable, TypedFilter] = {}
        self._hidden_by: dict[Hashable, Hashable] = {}
        self._hides: dict[Hashable, dict[Hashable, None]] = {}
        # Only a filter whose attributes are among those of another can cover it, so they are kept apart by attributes.
        self._by_attributes: dict[frozenset[str], dict[Hashable, None]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def announced(self) -> tuple[Hashable, ...]:
        """The names of the filters a neighbour knows, in no particular order."""
        return tuple(self._hides)

    def add(self, name: Hashable, filter_: TypedFilter) -> Announcement:
        """Add a filter.

        Args:
            name: Any hashable name that is not in use.
            filter_: The typed filter.

        Returns:
            The filter itself if it can match and nothing announced covers it, and the announced filters it makes
            superfluous.

        Raises:
            UsageError: The name is in use.
            UncheckedError: The filter is too large to say whether it can match; it is not added.
        """
        if name in self._filters:
            raise UsageError("the filter is already in the set", code="COVERING_DUPLICATE")
        if not satisfiable(filter_):
            self._filters[name] = filter_
            return Announcement()
        cover = self._cover_of(filter_)
        covered = [] if cover is not None else self._covered_by(filter_)
        # Everything that can fail is behind us: nothing was changed yet.
        self._filters[name] = filter_
        if cover is not None:
            self._hide(name, cover)
            return Announcement()
        self._show(name)
        for other in covered:
            for hidden in (*self._unshow(other), other):
                self._hide(hidden, name)
        return Announcement(announce=(name,), withdraw=tuple(covered))

    def remove(self, name: Hashable) -> Announcement:
        """Remove a filter.

        Args:
            name: The name it was added under.

        Returns:
            The filter itself if it was announced, and the filters that it hid and that nothing else covers.

        Raises:
            NotFoundError: There is no such filter.
        """
        if name not in self._filters:
            raise NotFoundError("the filter is not in the set", code="COVERING_UNKNOWN")
        if name not in self._hides:
            if name in self._hidden_by:
                del self._hides[self._hidden_by.pop(name)][name]
            del self._filters[name]
            return Announcement()
        orphans = self._unshow(name)
        waiting = [(orphan, self._filters.pop(orphan)) for orphan in orphans]
        del self._filters[name]
        shown: dict[Hashable, None] = {}
        for orphan, filter_ in waiting:
            change = self.add(orphan, filter_)
            shown.update(dict.fromkeys(change.announce))
            # What is taken back here was announced a moment ago: the neighbour never hears of it.
            for withdrawn in change.withdraw:
                shown.pop(withdrawn, None)
        return Announcement(announce=tuple(shown), withdraw=(name,))

    def _cover_of(self, filter_: TypedFilter) -> Hashable | None:
        attributes = filter_.attributes
        for known, names in self._by_attributes.items():
            if known <= attributes:
                for name in names:
                    if surely_covers(self._filters[name], filter_):
                        return name
        return None

    def _covered_by(self, filter_: TypedFilter) -> list[Hashable]:
        return [
            name
            for known, names in self._by_attributes.items()
            if filter_.attributes <= known
            for name in names
            if surely_covers(filter_, self._filters[name])
        ]

    def _show(self, name: Hashable) -> None:
        self._hides[name] = {}
        self._by_attributes.setdefault(self._filters[name].attributes, {})[name] = None

    def _unshow(self, name: Hashable) -> tuple[Hashable, ...]:
        """Stop announcing a filter and let go of those it hid."""
        attributes = self._filters[name].attributes
        del self._by_attributes[attributes][name]
        if not self._by_attributes[attributes]:
            del self._by_attributes[attributes]
        orphans = tuple(self._hides.pop(name))
        for orphan in orphans:
            del self._hidden_by[orphan]
        return orphans

    def _hide(self, name: Hashable, cover: Hashable) -> None:
        self._hidden_by[name] = cover
        self._hides[cover][name] = None
