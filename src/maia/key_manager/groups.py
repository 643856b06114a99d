"""A key manager's groups in its database: tree and rules of each, sealed, and the records of what happened.

Rules kept here:

- a group's tree and the state of its rules are written together, sealed (AES-256-GCM) under a key derived from the
  manager's own private key and bound to the group and its epoch: what is on disk shows no key, and no older state can
  be put beside a newer number;
- the message of an epoch is signed as the next record of its lane, and written, in the same transaction as the tree
  that made it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from maia.database import key_changes, key_groups, key_messages, key_places
from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption import (
    GroupState,
    KeyGroupId,
    KeyTree,
    Refresh,
    Rekey,
    next_refresh,
)
from maia.errors import EncodingError, NotFoundError, SealError
from maia.events import TypeId
from maia.log import START, LaneRecord, Place

_NONCE = 12
_PURPOSE = b"maia/1 key group"
_LIMITS = SexpLimits(max_bytes=640 << 20, max_depth=2, max_atom=512 << 20)


def manager_secret(seed: bytes) -> bytes:
    """Derive the key that seals a manager's groups from the manager's own private key."""
    return hmac.digest(seed, b"maia/1 key manager\x01", hashlib.sha256)


@dataclass(slots=True)
class StoredGroup:
    """One group while a transaction has it: its tree and what its rules remember."""

    tree: KeyTree
    state: GroupState

    @property
    def group(self) -> KeyGroupId:
        """Which group."""
        return self.tree.group


class GroupVault:
    """Reads and writes groups inside a transaction."""

    def __init__(self, secret: bytes, *, period: int | None) -> None:
        """Seal under a key; ``period`` is the groups', in milliseconds."""
        self._cipher = AESGCM(secret)
        self._period = period

    def __repr__(self) -> str:
        """Show nothing."""
        return "GroupVault()"

    def groups(self, connection: Connection, type_id: TypeId | None = None) -> tuple[KeyGroupId, ...]:
        """List the groups, of one type or all, sorted."""
        wanted = select(key_groups.c.type_id, key_groups.c.label)
        if type_id is not None:
            wanted = wanted.where(key_groups.c.type_id == type_id)
        return tuple(sorted(KeyGroupId(TypeId(row.type_id), row.label) for row in connection.execute(wanted)))

    def create(self, connection: Connection, group: KeyGroupId) -> None:
        """Make a group without members and without a key."""
        stored = StoredGroup(KeyTree(group), GroupState())
        connection.execute(insert(key_groups).values(type_id=group.type_id, label=group.label, **self._columns(stored)))

    def load(self, connection: Connection, group: KeyGroupId) -> StoredGroup:
        """Open a group.

        Raises:
            NotFoundError: There is no such group: ``KEY_GROUP_UNKNOWN``.
            SealError: Its row was not written by this manager, or is not what was written.
        """
        row = connection.execute(select(key_groups).where(is_group(key_groups, group))).one_or_none()
        if row is None:
            raise NotFoundError("the key manager has no such key group", code="KEY_GROUP_UNKNOWN")
        bound = _bound(group, row.number, row.start)
        try:
            plain = self._cipher.decrypt(row.sealed[:_NONCE], row.sealed[_NONCE:], bound)
            match parse_canonical(plain, limits=_LIMITS):
                case (b"key-group", bytes(tree), bytes(state)):
                    return StoredGroup(KeyTree.from_bytes(tree), GroupState.from_bytes(state))
        except (InvalidTag, ValueError, EncodingError) as error:
            raise SealError("the key group cannot be opened") from error
        raise SealError("the key group cannot be opened")

    def save(self, connection: Connection, stored: StoredGroup) -> None:
        """Write a group back."""
        group = stored.group
        connection.execute(update(key_groups).where(is_group(key_groups, group)).values(**self._columns(stored)))

    def lane_end(self, connection: Connection, group: KeyGroupId) -> tuple[Place, int]:
        """Tell the place and the stamp of the newest record that was signed for a group."""
        wanted = select(key_messages.c.place, key_messages.c.digest, key_messages.c.stamp).where(
            is_group(key_messages, group), key_messages.c.place.is_not(None)
        )
        row = connection.execute(wanted.order_by(key_messages.c.place.desc())).first()
        return (START, -1) if row is None else (Place(row.place, row.digest), row.stamp)

    def record_message(
        self,
        connection: Connection,
        group: KeyGroupId,
        record: LaneRecord,
        rekey: Rekey,
        *,
        causes: str,
        members: int,
        at: datetime,
        published: bool = False,
    ) -> None:
        """Write down a record of the group's lane and what its message says."""
        connection.execute(
            insert(key_messages).values(
                type_id=group.type_id, label=group.label, number=rekey.number, start=rekey.start, at=at, causes=causes,
                members=members, keys=len(rekey.keys), octets=len(record.body), body=record.raw, published=published,
                place=record.number, digest=record.digest, stamp=record.stamp,
            )
        )  # fmt: skip

    def record_epoch(
        self, connection: Connection, stored: StoredGroup, record: LaneRecord, rekey: Rekey, refresh: Refresh,
        *, at: datetime,
    ) -> None:  # fmt: skip
        """Write the record of the epoch that was just begun, to be published, and drop the places of who is out."""
        group = stored.group
        causes = " ".join(sorted(cause.value for cause in refresh.causes))
        self.record_message(connection, group, record, rekey, causes=causes, members=len(stored.tree.members), at=at)
        inside = stored.tree.members
        rows = connection.execute(select(key_places.c.member).where(is_group(key_places, group)))
        for member in [row.member for row in rows if row.member not in inside]:
            connection.execute(
                delete(key_places).where(and_(is_group(key_places, group), key_places.c.member == member))
            )

    def record_changes(
        self, connection: Connection, group: KeyGroupId, changes: Iterable[tuple[str, bytes]], *, at: datetime
    ) -> None:
        """Write down what happened to the membership."""
        rows = [
            {"type_id": group.type_id, "label": group.label, "at": at, "kind": kind, "member": member}
            for kind, member in changes
        ]
        if rows:
            connection.execute(insert(key_changes), rows)

    def _columns(self, stored: StoredGroup) -> dict[str, object]:
        tree = stored.tree
        nonce = secrets.token_bytes(_NONCE)
        plain = encode((b"key-group", tree.to_bytes(), stored.state.to_bytes()))
        bound = _bound(tree.group, tree.number, tree.start)
        return {
            "number": tree.number,
            "start": tree.start,
            "members": len(stored.state.members),
            "due": next_refresh(stored.state, period=self._period),
            "sealed": nonce + self._cipher.encrypt(nonce, plain, bound),
        }


def is_group(table: Table, group: KeyGroupId) -> ColumnElement[bool]:
    """Say that a row is of a group."""
    return and_(table.c.type_id == group.type_id, table.c.label == group.label)


def _bound(group: KeyGroupId, number: int, start: int) -> bytes:
    return encode((_PURPOSE, group.type_id, group.label, b"%d" % number, b"%d" % start))
