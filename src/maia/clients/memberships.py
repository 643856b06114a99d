"""Joining and leaving the key groups of a type: over HTTP, or with the home's own manager.

A home whose settings name a key manager asks that one, as its broker and with the very certificates of its API
requests; any other home can only ask the manager that it runs itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from maia.clients.homes import KEY_MANAGER, connect_key_manager
from maia.clients.key_manager import KeyManagerClient
from maia.domain import (
    Domain,
    check_admission,
    find_type,
    join_key_groups,
    leave_key_groups,
    manager_signer,
)
from maia.encryption import WHOLE_EVENT, KeyGroupId
from maia.errors import DeniedError, MaiaError, NotFoundError, UnavailableError, UsageError
from maia.events import TypeName
from maia.home import Home
from maia.kernel import instant_at
from maia.principals import PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedGroup:
    """One group that a home's broker is in, or was.

    Attributes:
        group: Type and attribute, as people name them.
        uid: The attribute's uid; nothing for the key of whole events.
        start: When the newest key that the home holds begins; nothing while it holds none.
    """

    group: str
    uid: str | None
    start: datetime | None

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        start = None if self.start is None else self.start.isoformat(timespec="milliseconds")
        return {"group": self.group, "uid": self.uid, "start": start}


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What joining or leaving came to."""

    type: str
    manager: PublicKey
    address: str | None
    places: tuple[FollowedGroup, ...]

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "type": self.type, "manager": self.manager.fingerprint, "address": self.address,
            "groups": [place.to_json() for place in self.places],
        }  # fmt: skip


def join_type(path: Path, type_name: str) -> Membership:
    """Let a home's broker join the key groups of a type, and take the keys that the log has for it.

    Raises:
        NotFoundError: There is no such type, or no key manager to ask: ``NO_KEY_MANAGER``, ``NO_MANAGER_KEY``.
        DeniedError: The key manager refuses over HTTP; the message says what this home's own certificates lack.
        VerificationError: The home's own manager refuses, or the service is not who it should be.
        UnavailableError: The key manager cannot be reached or cannot answer now.
    """
    home, at = Home.open(path), _now()
    name = _find_type(home, type_name)
    with closing(Domain(home)) as domain:
        if home.config.key_manager is None:
            groups, manager = _join_own(domain, name, at), manager_signer(home).public_key
        else:
            with _asking(home, name, at) as (client, manager):
                groups = join_key_groups(home, name, client.join, manager=manager, at=at)
        domain.follow(at=at)
    return _membership(home, name, manager, groups)


def leave_type(path: Path, type_name: str) -> Membership:
    """Let a home's broker leave the key groups of a type; what it holds still opens what was sealed before.

    Raises:
        UsageError: The home manages its keys itself: ``KEY_MANAGER_HERE``.
        MaiaError: As `join_type` does.
    """
    home, at = Home.open(path), _now()
    name = _find_type(home, type_name)
    if home.config.key_manager is None:
        raise UsageError(
            "this home names no key manager; the groups that it manages itself it does not leave",
            code="KEY_MANAGER_HERE",
        )
    with _asking(home, name, at) as (client, manager):
        groups = leave_key_groups(home, name, client.leave, manager=manager, at=at)
    return _membership(home, name, manager, groups)


def _join_own(domain: Domain, name: TypeName, at: datetime) -> tuple[KeyGroupId, ...]:
    """Join the groups of the manager that the home runs itself."""
    try:
        return domain.own_key_manager.join(domain.home.read_type(name), at=at)
    except NotFoundError as error:
        if error.code != "NO_KEY_MANAGER":
            raise
        raise NotFoundError(
            f"{error.message}; write its address to `maia.toml`, as `key_manager` under `[services]`", code=error.code
        ) from error


@contextmanager
def _asking(home: Home, name: TypeName, at: datetime) -> Iterator[tuple[KeyManagerClient, PublicKey]]:
    """Give a client of the home's key manager and the manager's key; explain what goes wrong meanwhile."""
    address = home.config.key_manager
    try:
        manager = home.key(KEY_MANAGER)
    except NotFoundError as error:
        raise NotFoundError(
            f"this home does not know the key of `{address}`; `maia key import {KEY_MANAGER} FILE` adds it",
            code="NO_MANAGER_KEY",
        ) from error
    try:
        with connect_key_manager(home) as client:
            yield client, manager
    except UnavailableError as error:
        raise UnavailableError(
            f"the key manager at `{address}` does not answer: {error.message}; the keys of this home stay as they are, "
            "so see that it runs (`maia serve key-manager`) and try again",
            code=error.code,
        ) from error
    except DeniedError as error:
        raise DeniedError(
            f"the key manager at `{address}` refuses this home's broker: {_reason(home, name, at)}", code=error.code
        ) from error


def _reason(home: Home, name: TypeName, at: datetime) -> str:
    """Say why a manager may have refused; it does not say itself, since nobody shall learn what there is by asking."""
    try:
        check_admission(home, name.type_id, at=at)
    except MaiaError as error:
        return f"{error.message} (`{error.code}`)"
    return (
        "by the certificates of this home it may join, so the manager knows of a revocation, lacks a statement, does "
        "not manage the type, or has another time"
    )


def _find_type(home: Home, text: str) -> TypeName:
    """Find a type as people name it; its versions share their key groups, so any of them does.

    Raises:
        NotFoundError: There is none.
        UsageError: Several owners have one of this name.
    """
    try:
        return find_type(home, text)
    except UsageError as error:
        if error.code != "TYPE_AMBIGUOUS":
            raise
        found = {known.type_id: known for known in home.types.names() if known.name == text}
        if len(found) != 1:
            raise
        return next(iter(found.values()))


def _membership(home: Home, name: TypeName, manager: PublicKey, groups: tuple[KeyGroupId, ...]) -> Membership:
    ring = home.keyring()
    attributes = {
        item.uid.encode(): item.name
        for known in home.types.names()
        if known.type_id == name.type_id
        for item in home.read_type(known).attributes
    }
    places = []
    for group in sorted(groups):
        held = [epoch for epoch in ring.epochs(group) if ring.key(group, epoch) is not None]
        label = group.label.decode("utf-8", "replace")
        places.append(
            FollowedGroup(
                group=f"{name.name}/{attributes.get(group.label, label)}",
                uid=None if group.label == WHOLE_EVENT else label,
                start=instant_at(held[-1]) if held else None,
            )
        )
    return Membership(type=name.name, manager=manager, address=home.config.key_manager, places=tuple(places))


def _now() -> datetime:
    """Read the clock to the millisecond: a manager takes a broker's requests in the order of their stamps."""
    return datetime.now(UTC)
