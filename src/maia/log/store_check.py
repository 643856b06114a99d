"""Whether a store does what the log needs of it: tried with an object of its own, which is removed again."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from maia.errors import MaiaError, NotFoundError
from maia.log.store import Store

_FOLDER = "_probe"
_DATA = b"maia asks whether this store keeps its word"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """What a store was seen to do.

    Attributes:
        failures: What it does not do, for people; empty when it does all.
        ahead: By how much its clock is ahead of ours, by the time that it gives to objects, as far as can be told.
    """

    failures: tuple[str, ...]
    ahead: timedelta


def check_store(store: Store, *, clock: Callable[[], datetime]) -> StoreCheck:
    """Put an object, put it again, read a part of it, list it, look at it, and remove it.

    Raises:
        UnavailableError: The store did not answer, or may not be written to.
    """
    last = secrets.token_hex(16)
    name = f"{_FOLDER}/{last}"
    failures: list[str] = []
    before = clock()
    try:
        if not store.put_new(name, _DATA):
            failures.append("says of a name that nobody has that it is taken")
        after = clock()
        # SECURITY: where this fails two writers would believe that they have the same number of a lane.
        if store.put_new(name, b"another"):
            failures.append("lets two writers create the same object: it ignores the condition of a put")
            store.put(name, _DATA)
        if store.get(name, limit=len(_DATA)) != _DATA:
            failures.append("gives other octets back than were put")
        with store.open(name, limit=len(_DATA)) as found:
            if found.get_range(5, 4) != _DATA[5:9]:
                failures.append("gives other parts of an object than were asked for")
        if store.list_after(_FOLDER, last[:-1], limit=1) != [last]:
            failures.append("does not list what was just put")
        written = store.look(name).written
        store.delete(name)
        with suppress(NotFoundError):
            store.get(name, limit=len(_DATA))
            failures.append("gives back what was removed")
    except MaiaError:
        with suppress(MaiaError):
            store.delete(name)
        raise
    # Stores tell whole seconds.
    ahead = timedelta(0) if before - timedelta(seconds=1) <= written <= after else written - after
    return StoreCheck(failures=tuple(failures), ahead=ahead)
