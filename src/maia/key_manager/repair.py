"""Groups that are older than the log shows: a database that was restored from a backup.

Rule kept here: such a group begins no epoch until it is repaired, and then it goes on behind all that the log shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, delete

from maia.database import key_messages
from maia.encryption import ChangeKind, GroupChange, GroupState, KeyGroupId, KeyTree, VerifiedRekey, step_group
from maia.errors import UnavailableError, UsageError
from maia.kernel import GroupAdmission, membership_changes, milliseconds
from maia.key_manager.brokers import list_brokers
from maia.key_manager.groups import StoredGroup, is_group
from maia.key_manager.register import GroupRegister
from maia.key_manager.review import look_again, snapshot, still_so


def is_behind(register: GroupRegister, tree: KeyTree) -> bool:
    """Tell whether the log shows a later epoch than a tree, or another one of the same number."""
    try:
        register.log.check(tree)
    except UnavailableError as error:
        return error.code == "KEY_MANAGER_BEHIND"
    return False


def repair(register: GroupRegister, group: KeyGroupId, *, at: datetime) -> int:
    """Let a group that is older than the log go on; see `KeyManager.repair`."""
    looked = look_again(register, snapshot(register, lambda connection: list_brokers(connection, group.type_id)), at)
    with register.writing() as connection:
        stored = register.vault.load(connection, group)
        later = _missed(register, stored)
        if len(still_so(connection, looked)) != len(list_brokers(connection, group.type_id)):
            raise UnavailableError("brokers changed while the key group was repaired", code="KEY_MANAGER_BUSY")
        admitted: dict[bytes, Sequence[GroupAdmission]]
        admitted = {item.record.member: item.admissions[group] for item in looked if item.admissions.get(group)}
        connection.execute(
            delete(key_messages).where(is_group(key_messages, group), key_messages.c.published.is_(False))
        )
        number = _restart(register, connection, stored, later, admitted, at)
    register.publish()
    return number


def _missed(register: GroupRegister, stored: StoredGroup) -> tuple[VerifiedRekey, ...]:
    """List what the log shows and the group does not know, oldest first."""
    later = register.log.after(stored.group, stored.tree.number)
    if later:
        return later
    newest = register.log.newest(stored.group)
    if newest is None or newest.message.digest == stored.tree.digest:
        raise UsageError("the key group is not behind its log", code="KEY_MANAGER_NOT_BEHIND")
    return (newest,)


def _restart(
    register: GroupRegister,
    connection: Connection,
    stored: StoredGroup,
    later: tuple[VerifiedRekey, ...],
    admitted: Mapping[bytes, Sequence[GroupAdmission]],
    at: datetime,
) -> int:
    """Begin an epoch after those that were missed, with whom it may be; return its number."""
    group = stored.group
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
    register.vault.record_epoch(connection, stored, message, refresh, at=at)
    register.vault.record_changes(connection, group, [("repair", bytes(32))], at=at)
    return message.rekey.number
