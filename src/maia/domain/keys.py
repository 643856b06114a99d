"""The keys that a domain seals with: where they come from when a type has none yet."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from maia.domain.heard import require_heard
from maia.domain.memberships import GroupKeys
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.sealing_keys import SealingKeys
from maia.encryption import EpochId, KeyGroupId, Keyring, groups_of
from maia.errors import UnavailableError
from maia.events import EventType
from maia.home import Home, locked
from maia.kernel import milliseconds

_KEY_LENGTH = 32
_FIRST_KEYS = "first-keys"
"""What is locked while a type gets its first keys."""


def ensure_keys(home: Home, own: OwnKeyManager, event_type: EventType, *, at: datetime) -> int:
    """See that a type's groups have keys; return how many groups got one now.

    The keys of groups that a key manager looks after come from there: this home's own when it manages the type. Without
    a manager they are made here, and kept here.

    Raises:
        UnavailableError: The keys are managed elsewhere, and the broker did not join (``KEYS_NOT_JOINED``), or hears
            nothing of their manager (``KEYS_STALE``).
        MaiaError: The home's own key manager refuses its broker.
    """
    uids = [item.uid.encode() for item in event_type.attributes]
    groups = groups_of(event_type.type_id, uids, event_type.options.encryption)
    follows = _follows(home, groups, at=at)
    if home.config.key_manager is not None:
        if groups and not follows:
            # INVARIANT: keys that nobody refreshes here seal nothing, also those of a membership that ended.
            name = event_type.name.name
            raise UnavailableError(
                f"this home is in no key group of `{name}`; `maia keys join {name}` asks its key manager",
                code="KEYS_NOT_JOINED",
            )
        return 0
    if _all_keyed(home.keyring(), groups):
        return 0
    # Of several processes one makes the first keys. The others wait until they are on disk, and use them.
    with locked(home.path / _FIRST_KEYS):
        ring = home.keyring()
        if _all_keyed(ring, groups) or _follows(home, groups, at=at):
            return 0
        none = not any(ring.epochs(group) for group in groups)
        if none and home.may_manage_keys() and own.manages(event_type, at=at):
            return len(own.join(event_type, at=at))
        return _make(home, groups, at=at)


def _follows(home: Home, groups: Sequence[KeyGroupId], *, at: datetime) -> bool:
    """Tell whether the home is in one of some groups, of whose managers it must have heard."""
    followed = GroupKeys(home).heard() if (home.path / "groups").exists() else {}
    for group in groups:
        require_heard(home, followed.get(group), now=milliseconds(at))
    return not followed.keys().isdisjoint(groups)


def _all_keyed(ring: Keyring, groups: Sequence[KeyGroupId]) -> bool:
    return all(ring.epochs(group) for group in groups)


def _make(home: Home, groups: Sequence[KeyGroupId], *, at: datetime) -> int:
    """Make the keys that groups lack, which no manager looks after."""
    with locked(home.path / "keyring"):
        ring = home.keyring()
        missing = [group for group in groups if not ring.epochs(group)]
        for group in missing:
            ring.add(group, EpochId(milliseconds(at)), secrets.token_bytes(_KEY_LENGTH))
        if missing:
            home.save_keyring(ring)
        return len(missing)


@dataclass(frozen=True, slots=True)
class HomeKeys:
    """A reference to a home's keyring: builds the key provider where it is called, and carries no key."""

    path: str

    def __call__(self) -> Keyring:
        """Open the keyring here; what is sealed with it is counted in the home."""
        return SealingKeys(Home.open(self.path))
