"""What a key manager shows of its groups: where they stand, their epochs, and what happened to their membership."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, func, select

from maia.database import key_changes, key_groups, key_messages
from maia.encryption import KeyGroupId
from maia.events import TypeId
from maia.key_manager.groups import is_group
from maia.key_manager.register import GroupRegister
from maia.log import LaneRecord

MAX_RECORDS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """Where a group stands.

    Attributes:
        group: Which group.
        number: Its newest epoch; 0 before the first.
        start: When that begins, in milliseconds since 1970; ``None`` before the first.
        members: How many brokers are inside.
        due: When the key must change if nothing else happens, in milliseconds; ``None`` when never.
        unpublished: Messages that the log does not have yet.
        behind: Whether the log shows a later epoch, so that the group waits for a repair.
    """

    group: KeyGroupId
    number: int
    start: int | None
    members: int
    due: int | None
    unpublished: int
    behind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """One epoch of a group: its number and start, why it was begun and when, and what its message cost."""

    number: int
    start: int
    at: datetime
    causes: tuple[str, ...]
    members: int
    keys: int
    octets: int
    published: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipRecord:
    """Something that happened to the membership of a group: ``join``, ``leave``, ``end``, ``revoke`` or ``repair``."""

    at: datetime
    kind: str
    member: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePicture:
    """The shape of a group's tree: its height, and who sits at which leaf. Holds no key."""

    height: int
    places: tuple[tuple[int, bytes], ...]
    waiting: tuple[bytes, ...]


def status(register: GroupRegister) -> tuple[GroupStatus, ...]:
    """Tell where every group stands, sorted by group."""
    with register.reading() as connection:
        found = _read_status(connection)
        ends = {item.group: register.vault.lane_end(connection, item.group)[0] for item in found}
    return tuple(replace(item, behind=register.log.is_ahead(item.group, ends[item.group])) for item in found)


def history(register: GroupRegister, group: KeyGroupId) -> tuple[EpochRecord, ...]:
    """List the epochs of a group that are still recorded, oldest first; the newest 100,000 of them."""
    columns = [
        column
        for column in key_messages.c
        if column.name not in {"type_id", "label", "body", "place", "digest", "stamp"}
    ]
    newest = select(*columns).where(is_group(key_messages, group)).order_by(key_messages.c.number.desc())
    with register.reading() as connection:
        rows = connection.execute(newest.limit(MAX_RECORDS)).all()
    return tuple(
        EpochRecord(
            number=row.number, start=row.start, at=row.at, causes=tuple(row.causes.split()), members=row.members,
            keys=row._mapping["keys"], octets=row.octets, published=row.published,  # noqa: SLF001 - a method's name
        )
        for row in reversed(rows)
    )  # fmt: skip


def rekeys(register: GroupRegister, group: KeyGroupId, *, after: int, limit: int) -> tuple[LaneRecord, ...]:
    """List the records of a group that were published behind a place in its lane, oldest first, at most so many."""
    wanted = (
        select(key_messages.c.place, key_messages.c.body)
        .where(is_group(key_messages, group), key_messages.c.place > after, key_messages.c.published.is_(True))
        .order_by(key_messages.c.place)
    )
    with register.reading() as connection:
        rows = connection.execute(wanted.limit(limit)).all()
    return tuple(register.log.parse(group, row.place, row.body) for row in rows)


def changes(register: GroupRegister, group: KeyGroupId) -> tuple[MembershipRecord, ...]:
    """List what happened to the membership of a group, oldest first; the newest 100,000 of it."""
    newest = select(key_changes).where(is_group(key_changes, group)).order_by(key_changes.c.id.desc())
    with register.reading() as connection:
        rows = connection.execute(newest.limit(MAX_RECORDS)).all()
    return tuple(MembershipRecord(at=row.at, kind=row.kind, member=row.member) for row in reversed(rows))


def picture(register: GroupRegister, group: KeyGroupId) -> TreePicture:
    """Show the shape of a group's tree."""
    with register.reading() as connection:
        tree = register.vault.load(connection, group).tree
    placed = {member for _, member in tree.places}
    return TreePicture(height=tree.height, places=tree.places, waiting=tuple(sorted(tree.members - placed)))


def _read_status(connection: Connection) -> list[GroupStatus]:
    """List all groups, sorted; whether the log is ahead is not known here."""
    pending = (
        select(key_messages.c.type_id, key_messages.c.label, func.count().label("count"))
        .where(key_messages.c.published.is_(False))
        .group_by(key_messages.c.type_id, key_messages.c.label)
    )
    waiting = {(row.type_id, row.label): row._mapping["count"] for row in connection.execute(pending)}  # noqa: SLF001
    columns = (key_groups.c.type_id, key_groups.c.label, key_groups.c.number, key_groups.c.start)
    rows = connection.execute(select(*columns, key_groups.c.members, key_groups.c.due))
    found = [
        GroupStatus(
            group=KeyGroupId(TypeId(row.type_id), row.label),
            number=row.number,
            start=row.start if row.number else None,
            members=row.members,
            due=row.due,
            unpublished=waiting.get((row.type_id, row.label), 0),
            behind=False,
        )
        for row in rows
    ]
    return sorted(found, key=lambda status: status.group)
