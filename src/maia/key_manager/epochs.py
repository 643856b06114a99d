"""When a key changes, and what is written down for it.

Rules kept here:

- 16.04 to 16.06 and T46 decide when a key changes (`maia.encryption.step_group`);
- an epoch is announced ``lead`` before it begins, so that brokers know its key in time and lose no event. What ends is
  announced ahead and ends when it must; what comes by surprise (a join, a revocation) takes effect ``lead`` later;
- no epoch is begun that the log could already have: a group that is older than its log waits for a repair.

Every function that takes a connection runs inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection

from maia.encryption import ChangeKind, GroupChange, KeyGroupId, Refresh, next_refresh, step_group
from maia.kernel import milliseconds
from maia.key_manager.groups import StoredGroup
from maia.key_manager.register import GroupRegister
from maia.principals import KeyId


def change_of(kind: ChangeKind, member: KeyId | None = None) -> GroupChange:
    """Write a change that carries no credential."""
    return GroupChange(at=0, kind=kind, member=b"" if member is None else member)


def refresh(register: GroupRegister, group: KeyGroupId, *, at: datetime) -> int:
    """Change a group's key because somebody says so; return the number of the epoch."""
    with register.writing() as connection:
        stored = change(register, connection, group, [change_of(ChangeKind.REFRESH)], at)
    register.tell(at=at)
    return stored.tree.number


def change(
    register: GroupRegister,
    connection: Connection,
    group: KeyGroupId,
    changes: Sequence[GroupChange],
    at: datetime,
) -> StoredGroup:
    """Let the rules of a group take changes in, and begin an epoch when they ask for it."""
    stored = register.vault.load(connection, group)
    instant, due = register.instant(stored, at), next_refresh(stored.state, period=register.period)
    renewed = all(change.kind is ChangeKind.JOIN for change in changes)
    if renewed and (due is None or due > milliseconds(at)):
        instant = milliseconds(at)  # nobody's key changes for it, so what is due soon keeps its time
    before = stored.state.members
    stored.state, wanted = step_group(stored.state, changes, at=instant, period=register.period)
    _settle(register, connection, stored, wanted, before, changes, at)
    return stored


def run_timers(register: GroupRegister, connection: Connection, group: KeyGroupId, at: datetime) -> bool:
    """Let time pass for a group: what is due within the lead is announced now and begins when it is due.

    Returns:
        Whether the group's key changes.
    """
    now = milliseconds(at)
    stored = register.vault.load(connection, group)
    due = next_refresh(stored.state, period=register.period)
    if due is None or due > now + register.lead:
        return False
    before = stored.state.members
    instant = due if due >= now else register.instant(stored, at)
    stored.state, wanted = step_group(stored.state, (), at=instant, period=register.period)
    _settle(register, connection, stored, wanted, before, (), at)
    return wanted is not None


def begin(
    register: GroupRegister,
    connection: Connection,
    stored: StoredGroup,
    wanted: Refresh,
    at: datetime,
    *,
    joins: Mapping[bytes, bytes] | None = None,
) -> None:
    """Begin an epoch: everybody who is not inside is put out, and whoever joins gets a place."""
    # INVARIANT: no epoch is begun that the log shows already; checked in the transaction that begins it.
    end = register.vault.lane_end(connection, stored.group)
    register.log.check(stored.group, end[0])
    members = stored.tree.members
    leaves = (members - stored.state.members) | (members & frozenset(joins or {}))
    message = stored.tree.rekey(register.signer, start=wanted.at, joins=joins, leaves=leaves)
    record = register.log.sign(stored.group, end, message.to_bytes(), at=at)
    register.vault.record_epoch(connection, stored, record, message.rekey, wanted, at=at)


def _settle(
    register: GroupRegister,
    connection: Connection,
    stored: StoredGroup,
    wanted: Refresh | None,
    before: frozenset[bytes],
    changes: Sequence[GroupChange],
    at: datetime,
) -> None:
    """Write down what a step made of a group."""
    if wanted is not None:
        # before anything is written, so that other groups may go on
        register.log.check(stored.group, register.vault.lane_end(connection, stored.group)[0])
    revoked = {change.member for change in changes if change.kind is ChangeKind.REVOKE}
    left = {change.member for change in changes if change.kind is ChangeKind.LEAVE}
    gone = sorted(before - stored.state.members)
    kinds = [("revoke" if m in revoked else "leave" if m in left else "end", m) for m in gone]
    register.vault.record_changes(connection, stored.group, kinds, at=at)
    if wanted is not None:
        begin(register, connection, stored, wanted, at)
    register.vault.save(connection, stored)
