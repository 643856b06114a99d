"""The embedded default: a home that manages the key groups of its types itself, in process.

A home does so when it holds the private key ``key-manager``, or the key that speaks for its domain and owns the type,
and its broker is one by the domain's own word (a name certificate ``brokers``). Any other home without a key manager
keeps keys of its own, which no log announces; it hands them on by other ways, or not at all.

Rules kept here:

- nobody can follow a group before its first epoch, so that one begins at once; later ones are announced ahead;
- what time asks of the manager (ends, periods) is done when the home follows its log, once a second at most. When it
  cannot be done events go on with the keys there are.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime, timedelta
from pathlib import Path

from maia.broker import BROKERS, KEY_MANAGER, named
from maia.encryption import KeyGroupId
from maia.errors import NotFoundError, UnavailableError
from maia.events import EventType
from maia.pipeline import NoticeLog
from maia.principals import KeyHash, PublicKey
from maia.stores.group_keys import GroupKeys
from maia.stores.home import Home
from maia.stores.key_manager import KeyManager, KeySettings
from maia.stores.key_manager_home import join_key_groups, manager_signer, open_home_groups, open_key_manager

_BETWEEN = timedelta(seconds=1)
_MAX_OPEN = 16
_logger = logging.getLogger(__name__)
_open: dict[tuple[int, str, bytes], KeyManager] = {}
_ticked: dict[tuple[int, str, bytes], datetime] = {}


def manages(home: Home, event_type: EventType, *, at: datetime) -> bool:
    """Tell whether a home manages the key groups of a type itself."""
    if home.config.key_manager is not None:
        return False
    own = _own_key(home, event_type)
    if own is None:
        return False
    if _has_manager_key(home):
        return True
    broker = home.broker.public_key
    return named(broker, own.key_id, BROKERS, home.pool(), verifier=home.verifier(), at=at) is not None


def join_own_groups(home: Home, event_type: EventType, *, at: datetime) -> tuple[KeyGroupId, ...]:
    """Open the groups of a type in the home's own manager and let its broker join; return the groups that it is in.

    Raises:
        NotFoundError: The home has no key that could manage the type: ``NO_KEY_MANAGER``.
        MaiaError: The manager is not the type's, or the broker may join no group.
    """
    if _own_key(home, event_type) is None:
        raise NotFoundError(
            f"this home does not manage the keys of `{event_type.name.name}` and names no key manager",
            code="NO_KEY_MANAGER",
        )
    manager = _manager(home)
    groups = open_home_groups(home, manager, event_type.name, at=at)
    known = {status.group: status.number for status in manager.status()}
    if not any(known.get(group, 0) for group in groups):
        manager, _ = open_key_manager(home, settings=KeySettings(lead=timedelta(0)))
        try:
            return _join(home, manager, event_type, at)
        finally:
            manager.close()
    return _join(home, manager, event_type, at)


def _own_key(home: Home, event_type: EventType) -> PublicKey | None:
    """Return the key with which a home could manage a type: the manager's own, or the type's owner's."""
    try:
        own = manager_signer(home).public_key
    except NotFoundError:
        return None
    owner = event_type.name.owner
    owns = isinstance(owner, (PublicKey, KeyHash)) and owner.key_id == own.key_id
    return own if owns or _has_manager_key(home) else None


def _has_manager_key(home: Home) -> bool:
    return (home.path / "keys" / f"{KEY_MANAGER}.key").exists()


def _join(home: Home, manager: KeyManager, event_type: EventType, at: datetime) -> tuple[KeyGroupId, ...]:
    joined = join_key_groups(
        home, event_type, lambda request, evidence: manager.join(request, evidence, at=at),
        manager=manager.public_key, at=at,
    )  # fmt: skip
    GroupKeys(home).follow(NoticeLog(home.log_path), at=at)
    return joined


def tick_own_groups(home: Home, at: datetime) -> None:
    """Let the home's own manager do what time asks for; nothing when the home has none.

    A manager whose database is not there is named in the program's log and asked again a second later: what was
    announced before stays in force, and events go on.
    """
    if home.config.key_manager is not None or not _has_database(home) or not (home.path / "groups").exists():
        return
    try:
        key = _key(home)
    except NotFoundError:
        return
    last = _ticked.get(key)
    if last is not None and abs(at - last) < _BETWEEN:
        return
    _ticked[key] = at
    try:
        _manager(home).tick(at=at)
    except UnavailableError as error:
        _logger.warning("the key manager of this home cannot work: %s", error.code)


def close_managers() -> None:
    """Close the managers that this process opened; they open again when they are needed."""
    for manager in _open.values():
        manager.close()
    _open.clear()
    _ticked.clear()


def _manager(home: Home) -> KeyManager:
    """Return the manager of a home, opened once in a process."""
    key = _key(home)
    if key not in _open:
        if len(_open) >= _MAX_OPEN:
            close_managers()
        _open[key], _ = open_key_manager(home)
    return _open[key]


def _key(home: Home) -> tuple[int, str, bytes]:
    return os.getpid(), str(home.path.resolve()), manager_signer(home).public_key.key_id


def _has_database(home: Home) -> bool:
    url = home.config.database
    return "://" in url or Path(home.path, url).exists()
