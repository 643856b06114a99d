"""Subscriptions that wait at a place of their own, since they could not be judged when the others were served.

Rules kept here:

- whoever waits keeps the place from which on it was delivered nothing; whoever was delivered what it missed up to where
  the others are goes on with them;
- subscriptions that wait at the same place are one group, so a doubt that concerns many costs one note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from maia.log import Places, Waiting, hash_subscription

Whom = Callable[[str], bool]
"""Tells whether a subscription, by its name, is meant."""


def everybody(_name: str) -> bool:
    """Mean all subscriptions."""
    return True


def held_back(item: Waiting) -> Whom:
    """Mean the subscriptions that wait at one place."""
    return lambda name: hash_subscription(name) in item.subscriptions


def left_waiting(found: Iterable[tuple[Places, Mapping[str, str]]], upto: Places) -> tuple[Waiting, ...]:
    """Put those together that wait at the same place; whoever is where the others are does not wait.

    Args:
        found: Places, and who waits there with which code, by the hash of its name.
        upto: Where the others are.
    """
    groups: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for places, names in found:
        if dict(places) != dict(upto):
            group = groups.setdefault(tuple(sorted(places.items())), {})
            group.update(names)
    return tuple(Waiting(dict(places), group) for places, group in groups.items() if group)
