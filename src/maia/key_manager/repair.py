"""Groups that are older than the log shows: a database that was restored from a backup.

Rules kept here:

- such a group begins no epoch until it is repaired, and then it goes on behind all that the log shows;
- epochs that the database began meanwhile, and that never got out, are gone: nobody has their keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, delete

from maia.database import key_messages
from maia.encryption import ChangeKind, GroupChange, GroupState, KeyGroupId, VerifiedRekey, step_group
from maia.errors import UnavailableError, UsageError
from maia.kernel import GroupAdmission, membership_changes, milliseconds
from maia.key_manager.brokers import list_brokers
from maia.key_manager.groups import StoredGroup, is_group
from maia.key_manager.register import GroupRegister
from maia.key_manager.review import look_again, snapshot, still_so
from maia.log import LaneRecord


def repair(register: GroupRegister, group: KeyGroupId, *, at: datetime) -> int:
    """Let a group that is older than the log go on; see `KeyManager.repair`."""
    looked = look_again(register, snapshot(register, lambda connection: list_brokers(connection, group.type_id)), at)
    with register.writing() as connection:
        stored = register.vault.load(connection, group)
        place, _ = register.vault.lane_end(connection, group)
        if not register.log.is_ahead(group, place):
            raise UsageError("the key group is not behind its log", code="KEY_MANAGER_NOT_BEHIND")
        missed = register.log.missed(group, place)
        if not missed:
            raise UnavailableError("the log does not show what the key group missed", code="LANE_GAP")
        if len(still_so(connection, looked)) != len(list_brokers(connection, group.type_id)):
            raise UnavailableError("brokers changed while the key group was repaired", code="KEY_MANAGER_BUSY")
        admitted: dict[bytes, Sequence[GroupAdmission]]
        admitted = {item.record.member: item.admissions[group] for item in looked if item.admissions.get(group)}
        _take_over(register, connection, group, missed, at)
        later = [register.log.verify(record) for record in missed]
        number = _restart(register, connection, stored, later, admitted, at)
    register.publish(at=at)
    return number


def _take_over(
    register: GroupRegister, connection: Connection, group: KeyGroupId, missed: Sequence[LaneRecord], at: datetime
) -> None:
    """Let the database know what the log shows, in the place of whatever it knew under the same numbers."""
    known = is_group(key_messages, group)
    first = register.log.verify(missed[0]).rekey.number
    for gone in (key_messages.c.published.is_(False), key_messages.c.place >= missed[0].number):
        connection.execute(delete(key_messages).where(known, gone))
    connection.execute(delete(key_messages).where(known, key_messages.c.number >= first))
    for record in missed:
        rekey = register.log.verify(record).rekey
        register.vault.record_message(
            connection, group, record, rekey, causes="repair", members=0, at=at, published=True
        )


def _restart(
    register: GroupRegister,
    connection: Connection,
    stored: StoredGroup,
    later: Sequence[VerifiedRekey],
    admitted: Mapping[bytes, Sequence[GroupAdmission]],
    at: datetime,
) -> int:
    """Begin an epoch after those that were missed, with whom it may be; return its number."""
    group = stored.group
    end = register.vault.lane_end(connection, group)
    start = max(milliseconds(at) + register.lead, later[-1].rekey.start + 1)
    message = stored.tree.restart(register.signer, later, start=start, keep=admitted.keys())
    changes = [
        change
        for member in sorted(stored.tree.members)
        for change in membership_changes(GroupState(), member, admitted[member], at=start, joins=True)
    ]
    order = GroupChange(at=start, kind=ChangeKind.REFRESH)
    stored.state, refresh = step_group(GroupState(), (order, *changes), at=start, period=register.period)
    assert refresh is not None  # noqa: S101 - ordered
    register.vault.save(connection, stored)
    record = register.log.sign(group, end, message.to_bytes(), at=at)
    register.vault.record_epoch(connection, stored, record, message.rekey, refresh, at=at)
    register.vault.record_changes(connection, group, [("repair", bytes(32))], at=at)
    return message.rekey.number
