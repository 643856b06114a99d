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
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from maia.domain.manager_key import manager_signer
from maia.domain.memberships import GroupKeys
from maia.encryption import KeyGroupId
from maia.errors import NotFoundError, UnavailableError
from maia.events import EventType
from maia.home import Home
from maia.kernel import BROKERS, KEY_MANAGER, named
from maia.log import NoticeLog
from maia.principals import KeyHash, PublicKey

if TYPE_CHECKING:
    from maia.database import OpenDatabase
    from maia.key_manager import KeyManager

_BETWEEN = timedelta(seconds=1)
_logger = logging.getLogger(__name__)


class OwnKeyManager:
    """The key manager that a home runs for its own types, opened when it is first needed."""

    def __init__(self, home: Home) -> None:
        """Serve a home; nothing is opened yet."""
        self._home = home
        self._engine: OpenDatabase | None = None
        self._opened: tuple[bytes, KeyManager] | None = None
        self._ticked: datetime | None = None

    def manages(self, event_type: EventType, *, at: datetime) -> bool:
        """Tell whether the home manages the key groups of a type itself."""
        home = self._home
        if home.config.key_manager is not None:
            return False
        own = self._own_key(event_type)
        if own is None:
            return False
        if self._has_manager_key():
            return True
        broker = home.broker.public_key
        return named(broker, own.key_id, BROKERS, home.pool(), verifier=home.verifier(), at=at) is not None

    def join(self, event_type: EventType, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Open the groups of a type and let the home's broker join; return the groups that it is in.

        Raises:
            NotFoundError: The home has no key that could manage the type: ``NO_KEY_MANAGER``.
            MaiaError: The manager is not the type's, or the broker may join no group.
        """
        from maia.domain.key_groups import open_home_groups  # noqa: PLC0415 - needs a database

        if self._own_key(event_type) is None:
            raise NotFoundError(
                f"this home does not manage the keys of `{event_type.name.name}` and names no key manager",
                code="NO_KEY_MANAGER",
            )
        manager = self._manager()
        groups = open_home_groups(self._home, manager, event_type.name, at=at)
        known = {status.group: status.number for status in manager.status()}
        if any(known.get(group, 0) for group in groups):
            return self._join(manager, event_type, at)
        return self._join(self._at_once(), event_type, at)

    def admit(
        self, event_type: EventType, request: bytes, evidence: Sequence[bytes], *, at: datetime, window: timedelta
    ) -> bytes:
        """Admit a broker of another domain, whose request something else than its stamp shows to be wanted.

        Nobody but this home's own broker follows the groups of a type before the first other one: then there is nobody
        to tell ahead of time, and the newcomer's keys begin at once.

        Returns:
            The manager's answer.

        Raises:
            MaiaError: As `join`; or the other broker's right is not proven.
        """
        from maia.domain.key_groups import open_home_groups  # noqa: PLC0415 - needs a database

        groups = open_home_groups(self._home, self._manager(), event_type.name, at=at)
        if not set(groups) & set(GroupKeys(self._home).groups()):
            self.join(event_type, at=at)
        manager = self._manager()
        members = {item.group: item.members for item in manager.status()}
        if all(members.get(group, 0) <= 1 for group in groups):
            manager = self._at_once()
        return manager.join(request, evidence, at=at, window=window)

    def tick(self, *, at: datetime) -> None:
        """Let the manager do what time asks for; nothing when the home has none.

        A manager whose database is not there is named in the program's log and asked again a second later: what was
        announced before stays in force, and events go on.
        """
        home = self._home
        if home.config.key_manager is not None or not home.may_manage_keys() or not self._has_database():
            return
        if self._ticked is not None and abs(at - self._ticked) < _BETWEEN:
            return
        self._ticked = at
        try:
            self._manager().tick(at=at)
        except NotFoundError:
            return
        except UnavailableError as error:
            _logger.warning("the key manager of this home cannot work: %s", error.code)

    def close(self) -> None:
        """Close the manager; it opens again when it is needed."""
        if self._engine is not None:
            self._engine.dispose()
        self._engine = self._opened = self._ticked = None

    def _at_once(self) -> KeyManager:
        """Open the manager so that it announces nothing ahead."""
        from maia.domain.key_groups import key_settings, open_key_manager  # noqa: PLC0415 - needs a database

        settings = replace(key_settings(self._home), lead=timedelta(0))
        return open_key_manager(self._home, settings=settings, engine=self._database())[0]

    def _own_key(self, event_type: EventType) -> PublicKey | None:
        """Return the key with which the home could manage a type: the manager's own, or the type's owner's."""
        try:
            own = manager_signer(self._home).public_key
        except NotFoundError:
            return None
        owner = event_type.name.owner
        owns = isinstance(owner, (PublicKey, KeyHash)) and owner.key_id == own.key_id
        return own if owns or self._has_manager_key() else None

    def _has_manager_key(self) -> bool:
        return self._home.key_path(KEY_MANAGER).exists()

    def _join(self, manager: KeyManager, event_type: EventType, at: datetime) -> tuple[KeyGroupId, ...]:
        from maia.domain.key_groups import join_key_groups  # noqa: PLC0415 - needs a database

        joined = join_key_groups(
            self._home, event_type, lambda request, evidence: manager.join(request, evidence, at=at),
            manager=manager.public_key, at=at,
        )  # fmt: skip
        GroupKeys(self._home).follow(NoticeLog(self._home.log_store), at=at)
        return joined

    def _manager(self) -> KeyManager:
        from maia.domain.key_groups import open_key_manager  # noqa: PLC0415 - needs a database

        key = manager_signer(self._home).public_key.key_id
        if self._opened is None or self._opened[0] != key:
            self.close()
            self._opened = (key, open_key_manager(self._home, engine=self._database())[0])
        return self._opened[1]

    def _database(self) -> OpenDatabase:
        """Open the home's database, once for all managers of this process."""
        from maia.database import migrate, open_database  # noqa: PLC0415 - most processes need none

        if self._engine is None:
            engine = open_database(self._home.database_url)
            migrate(engine)
            self._engine = engine
        return self._engine

    def _has_database(self) -> bool:
        url = self._home.database_url
        return "://" in url or Path(url).exists()
