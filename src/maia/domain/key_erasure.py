"""Erasing keys whose time is over: nobody waits for a lock while the log is looked through for what needs them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from maia.domain.key_times import deafness, retention
from maia.encryption import Keyring, Tolerance
from maia.events import TypeId
from maia.home import Home, locked
from maia.kernel import milliseconds
from maia.log import LogDirectory

_STALE_SECONDS = 60.0


def erase_keys(
    home: Home, ring: Keyring, promised: Mapping[TypeId, int], *, at: datetime, log: LogDirectory | None
) -> int:
    """Erase the keys of a home that were replaced and that nothing needs any more; tell how many.

    Args:
        home: Whose keyring.
        ring: Its keys as they were a moment ago; they are used up.
        promised: For how long the word of each type's manager holds, in milliseconds.
        at: Now.
        log: As `retention` takes it.
    """
    types, now = _replaced(ring), milliseconds(at)
    if not _erase(ring, _kept(home, types, promised, at=at, log=log, fresh=False), now):
        return 0
    kept = _kept(home, types, promised, at=at, log=log, fresh=True)
    with locked(home.path / "keyring"):
        ring = home.keyring()
        erased = _erase(ring, kept, now)
        if erased:
            home.save_keyring(ring)
            _remove_parts(home)
    return erased


def _kept(
    home: Home,
    types: list[TypeId],
    promised: Mapping[TypeId, int],
    *,
    at: datetime,
    log: LogDirectory | None,
    fresh: bool,
) -> dict[TypeId, Tolerance]:
    """Tell how long the replaced keys of each type are kept, see `retention`."""
    by_deafness: dict[int, Tolerance] = {}
    kept: dict[TypeId, Tolerance] = {}
    for type_id in types:
        # SECURITY: what one type's manager promises keeps no key of another type.
        deaf = deafness(home, promised.get(type_id, 0))
        if deaf not in by_deafness:
            by_deafness[deaf] = retention(home, at=at, log=log, deaf=deaf, fresh=fresh)
        kept[type_id] = by_deafness[deaf]
    return kept


def _erase(ring: Keyring, kept: Mapping[TypeId, Tolerance], now: int) -> int:
    return sum(ring.retire(now=now, tolerance=tolerance, type_id=type_id) for type_id, tolerance in kept.items())


def _replaced(ring: Keyring) -> list[TypeId]:
    """List the types of which a key is held that is not its group's newest."""
    return sorted(
        {
            group.type_id
            for group in ring.groups()
            if any(ring.key(group, epoch) is not None for epoch in ring.epochs(group)[:-1])
        }
    )


def _remove_parts(home: Home) -> None:
    """Remove what killed writers left beside the keyring: it may hold keys that are erased now."""
    for part in home.path.glob(".*.part"):
        with suppress(OSError):
            if part.stat().st_mtime < time.time() - _STALE_SECONDS:
                part.unlink()
