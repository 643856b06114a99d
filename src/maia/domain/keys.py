"""The keys that a domain seals with: where they come from when a type has none yet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from maia.domain.heard import require_heard
from maia.domain.memberships import GroupKeys
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.sealing_keys import SealingKeys
from maia.encryption import EpochId, Keyring, groups_of
from maia.errors import UnavailableError
from maia.events import EventType
from maia.home import Home, locked
from maia.kernel import milliseconds

_KEY_LENGTH = 32


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
    followed = GroupKeys(home).heard() if (home.path / "groups").exists() else {}
    for group in groups:
        require_heard(home, followed.get(group), now=milliseconds(at))
    follows = not followed.keys().isdisjoint(groups)
    if home.config.key_manager is not None:
        if groups and not follows:
            # INVARIANT: keys that nobody refreshes here seal nothing, also those of a membership that ended.
            name = event_type.name.name
            raise UnavailableError(
                f"this home is in no key group of `{name}`; `maia keys join {name}` asks its key manager",
                code="KEYS_NOT_JOINED",
            )
        return 0
    ring = home.keyring()
    if all(ring.epochs(group) for group in groups) or follows:
        return 0
    if not any(ring.epochs(group) for group in groups) and home.may_manage_keys() and own.manages(event_type, at=at):
        return len(own.join(event_type, at=at))
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
