"""Making a new version from an old one: add, remove, rename, retype.

A rename keeps the uid, so that events of both versions still mean the same attribute. A new type gets a new uid, since
old values would not fit. The old version is untouched and stays in use as long as anybody wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from maia.errors import MalformedError
from maia.events.attributes import Attribute, Uid
from maia.events.definition import EventType, UnverifiedEventType
from maia.events.names import TypeName
from maia.events.uids import FoldedUids, UidPolicy
from maia.events.value_types import ValueType
from maia.events.versions import Version, hash_version, next_counter, uuid_version


@dataclass(frozen=True, slots=True)
class Add:
    """Add an attribute; its uid comes from the policy unless it is named."""

    name: str
    type: ValueType
    uid: Uid | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Give an attribute another name; it keeps its uid."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class Retype:
    """Give a name another type: the old attribute goes and one with a new uid comes."""

    name: str
    type: ValueType
    uid: Uid | None = None


Operation: TypeAlias = "Add | Remove | Rename | Retype"
VersionPolicy: TypeAlias = "Callable[[EventType], Version]"


def counted(old: EventType) -> Callable[[EventType], Version]:
    """Number the new version one higher; for types with a single manager."""
    return lambda _: next_counter(old.name.version)


def drawn(_: EventType) -> Version:
    """Number the new version by a fresh UUID; for types with several managers."""
    return uuid_version()


def hashed(new: EventType) -> Version:
    """Number the new version by the hash of its attributes."""
    return hash_version(new.attributes)


def evolve(
    old: UnverifiedEventType,
    operations: Sequence[Operation],
    *,
    version: Version | VersionPolicy = drawn,
    uids: UidPolicy | None = None,
    known: Iterable[EventType] = (),
    embed: bool = False,
    extends: TypeName | None = None,
) -> EventType:
    """Apply operations to a version, one after the other, and give the unsigned new one.

    The new version refers to the old one (by its identity, or embedded) and carries no credentials: whoever signs it
    adds the ones that link the signer to the owner.

    Args:
        old: The version to start from, as it was signed.
        operations: In this order.
        version: The number of the new version, or how to find it. A UUID unless said otherwise, so that managers who
            work at the same time never clash.
        uids: Where new uids come from; folded UUIDs unless said otherwise.
        known: Other versions whose uids must not be used again.
        embed: Put the old version into the new one, for verifiers that cannot look it up.
        extends: Which version of which type the new one extends; as the old one unless said.

    Raises:
        MalformedError: An operation names an attribute that is not there, or makes a name stand twice, or a named uid
            was in use.
    """
    base = old.definition
    policy = uids or FoldedUids()
    taken = {uid for item in (base, *known) for uid in item.uids}
    attributes = list(base.attributes)
    for operation in operations:
        _apply(operation, attributes, taken, policy)
    new = replace(
        base,
        attributes=tuple(attributes),
        extends=base.extends if extends is None else extends,
        previous=old if embed else base.definition_id,
        credentials=(),
    )
    number = version if isinstance(version, Version) else version(new)
    if number == base.name.version and (new.attributes, new.extends) != (base.attributes, base.extends):
        raise MalformedError(f"version `{number}` is the old one", code="VERSION_TAKEN")
    return replace(new, name=replace(new.name, version=number))


def _apply(operation: Operation, attributes: list[Attribute], taken: set[Uid], policy: UidPolicy) -> None:
    if isinstance(operation, Add):
        if any(item.name == operation.name for item in attributes):
            raise MalformedError(f"two attributes are called `{operation.name}`", code="ATTRIBUTE_NAME_TWICE")
        attributes.append(_new(operation.name, operation.type, operation.uid, taken, policy))
        return
    at = next((index for index, item in enumerate(attributes) if item.name == operation.name), None)
    if at is None:
        raise MalformedError(f"there is no attribute `{operation.name}`", code="NO_ATTRIBUTE")
    if isinstance(operation, Remove):
        del attributes[at]
    elif isinstance(operation, Rename):
        if any(item.name == operation.new_name for item in attributes):
            raise MalformedError(f"two attributes are called `{operation.new_name}`", code="ATTRIBUTE_NAME_TWICE")
        attributes[at] = replace(attributes[at], name=operation.new_name)
    else:
        if attributes[at].type == operation.type:
            raise MalformedError(f"`{operation.name}` already has this type", code="ATTRIBUTE_TYPE")
        attributes[at] = _new(operation.name, operation.type, operation.uid, taken, policy)


def _new(name: str, kind: ValueType, uid: Uid | None, taken: set[Uid], policy: UidPolicy) -> Attribute:
    if uid is not None and uid in taken:
        raise MalformedError(f"uid `{uid}` was used before", code="UID_REUSED")
    chosen = policy.next_uid(taken) if uid is None else uid
    taken.add(chosen)
    return Attribute(name=name, uid=chosen, type=kind)


def first_attributes(
    wanted: Iterable[Add], uids: UidPolicy, *, known: Iterable[Attribute] = ()
) -> tuple[Attribute, ...]:
    """Make the attributes of a first version; those without a uid get one that no other has, known ones included.

    >>> from maia.events import AttributeType, SequenceUids
    >>> wanted = [Add("plate", AttributeType.STRING, "7"), Add("speed", AttributeType.INTEGER)]
    >>> [(item.name, item.uid) for item in first_attributes(wanted, SequenceUids())]
    [('plate', '7'), ('speed', '8')]
    """
    adds = tuple(wanted)
    taken = {item.uid for item in adds if item.uid is not None} | {item.uid for item in known}
    made = []
    for item in adds:
        uid = item.uid if item.uid is not None else uids.next_uid(taken)
        taken.add(uid)
        made.append(Attribute(name=item.name, uid=uid, type=item.type))
    return tuple(made)
