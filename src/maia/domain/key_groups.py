"""A home and its key managers: the one that runs in process, and how the home's broker joins the groups of a type.

In the embedded default a home that owns types manages their key groups itself: with the key ``key-manager`` when the
home has one of this name (its owner must then name it so), else with the key that speaks for the domain. Its state is
in the home's database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from maia.authority import VerifiedEventType
from maia.database import Leadership, OpenDatabase, migrate, open_database
from maia.domain.manager_key import manager_signer
from maia.domain.memberships import GroupKeys
from maia.domain.statements import StatementFollower, accept_statements, lists_behind, usable_lists
from maia.domain.types import check_types
from maia.encryption import (
    GroupRequest,
    JoinGroups,
    KeyGroupId,
    LeaveGroups,
    join_public_key,
    new_join_key,
    open_join_answer,
    sign_group_request,
)
from maia.errors import NotFoundError, UsageError, VerificationError
from maia.events import EventType, TypeId, TypeName
from maia.home import Home
from maia.kernel import admit_broker, milliseconds
from maia.key_manager import KeyManager, KeySettings, manager_secret, used_evidence
from maia.log import NoticeLog
from maia.principals import PublicKey, parse_certificate

AskToJoin = Callable[[bytes, Sequence[bytes]], bytes]
"""Carries a signed request and the evidence to a key manager, and its answer back."""
AskToLeave = Callable[[bytes], Sequence[KeyGroupId]]
"""Carries a signed request to a key manager, and back the groups that the broker was in."""


def key_settings(home: Home) -> KeySettings:
    """Give the settings of the key manager of a home, as far as ``maia.toml`` says something of them.

    Raises:
        UsageError: No epoch could be announced within the one before: ``REFRESH_PERIOD``.
    """
    return KeySettings(period=timedelta(seconds=home.config.key_period))


def open_key_manager(
    home: Home,
    *,
    settings: KeySettings | None = None,
    standby: bool = False,
    engine: OpenDatabase | None = None,
) -> tuple[KeyManager, Leadership | None]:
    """Open the key manager of a home, making its tables when they are not there.

    Args:
        home: The home; its verifier, types, network and log are the manager's.
        settings: Periods and limits; without any, those of the home.
        standby: Whether several processes run the manager and only one of them, the leader, may write.
        engine: The home's database, migrated, when the process has it open: a process opens a database once.

    Returns:
        The manager, not started; and with ``standby`` the leadership, which the caller takes.
    """
    signer = manager_signer(home)
    if engine is None:
        engine = open_database(home.database_url)
        migrate(engine)
    leadership = Leadership(engine, "key-manager") if standby else None
    notices = NoticeLog(home.log_store)
    statements = StatementFollower(home, notices)
    manager = KeyManager(
        engine,
        signer,
        manager_secret(signer.export_seed()),
        verifier=home.verifier,
        versions=lambda type_id, at: [item.definition for item in verified_versions(home, type_id, at=at)],
        notices=notices,
        network=home.network,
        settings=key_settings(home) if settings is None else settings,
        leadership=leadership,
        heed=lambda signers, at: statements.follow(home.pool(), at=at, also=signers),
        take=lambda lists, at: accept_statements(home.statements, usable_lists(lists, at), at),
    )
    return manager, leadership


def verified_versions(home: Home, type_id: TypeId, *, at: datetime) -> tuple[VerifiedEventType, ...]:
    """Return the versions of a type that a home knows and that verify at an instant."""
    checked = check_types(home, verifier=home.verifier(), at=at, type_id=type_id)
    return tuple(verified for _, verified in checked if verified is not None)


def open_home_groups(home: Home, manager: KeyManager, name: TypeName, *, at: datetime) -> tuple[KeyGroupId, ...]:
    """Let a home's manager manage the groups of a type that the home knows.

    Raises:
        NotFoundError: No version of the type verifies: ``UNKNOWN_TYPE``.
        ChainError: The manager is not the type's.
    """
    versions = verified_versions(home, name.type_id, at=at)
    if not versions:
        raise NotFoundError("no version of the type verifies now", code="UNKNOWN_TYPE")
    return manager.open_groups(versions, home.pool(), at=at)


def join_key_groups(
    home: Home, event_type: EventType | TypeName, ask: AskToJoin, *, manager: PublicKey, at: datetime
) -> tuple[KeyGroupId, ...]:
    """Let a home's broker join all key groups of a type that its certificates open, and follow them from then on.

    Args:
        home: Whose broker joins.
        event_type: The type.
        ask: The way to the key manager: in process ``manager.join``, or a client's.
        manager: The manager's key.
        at: Now.

    Returns:
        The groups that it is in now.

    Raises:
        MaiaError: The manager refuses, or its answer is not for this request.
    """
    home.keyring()  # who cannot keep a key asks for none: nothing has changed by then, at either side
    broker, private = home.broker, new_join_key()
    request = GroupRequest(
        manager=manager.key_id,
        type_id=event_type.type_id,
        stamp=milliseconds(at),
        what=JoinGroups(key=join_public_key(private)),
    )
    evidence = _evidence(home, event_type.type_id, at=at)
    answer = ask(sign_group_request(request, broker), evidence)
    places = open_join_answer(answer, private, member=broker.public_key.key_id, manager=manager)
    keys = GroupKeys(home)
    for place in places:
        keys.join(place.group, place.individual, manager=manager, welcome=place.welcome, at=at)
    return tuple(place.group for place in places)


def leave_key_groups(
    home: Home, event_type: EventType | TypeName, ask: AskToLeave, *, manager: PublicKey, at: datetime
) -> tuple[KeyGroupId, ...]:
    """Let a home's broker leave all key groups of a type, and follow them no longer.

    Keys that it holds still open what was sealed before; they go with their grace. A broker that the manager does not
    know any more forgets its groups all the same.

    Args:
        home: Whose broker leaves.
        event_type: The type.
        ask: The way to the key manager, such as a client's ``leave``.
        manager: The manager's key.
        at: Now.

    Returns:
        The groups that it followed until now, sorted.

    Raises:
        MaiaError: The manager refuses, or cannot be asked; the home then follows its groups as before.
    """
    request = GroupRequest(
        manager=manager.key_id, type_id=event_type.type_id, stamp=milliseconds(at), what=LeaveGroups(labels=())
    )
    ask(sign_group_request(request, home.broker))
    keys = GroupKeys(home)
    followed = tuple(group for group in keys.groups() if group.type_id == event_type.type_id)
    for group in followed:
        keys.leave(group)
    return followed


def check_admission(home: Home, type_id: TypeId, *, at: datetime) -> None:
    """Raise what a home's own certificates lack for its broker to join; a key manager that refuses does not say.

    Raises:
        NotFoundError: No version of the type verifies: ``UNKNOWN_TYPE``.
        VerificationError: The broker's right, or its place in a domain, is not proven.
    """
    versions = [item.definition for item in verified_versions(home, type_id, at=at)]
    if not versions:
        raise NotFoundError("no version of the type verifies now", code="UNKNOWN_TYPE")
    admit_broker(home.broker.public_key, versions, home.pool(), verifier=home.verifier(), at=at, network=home.network)


def _evidence(home: Home, type_id: TypeId, *, at: datetime) -> tuple[bytes, ...]:
    """List the certificates that carry the broker's admission, and the lists that they demand.

    All certificates go along when those that count cannot be told from here.
    """
    pool, verifier = home.pool(), home.verifier()
    versions = [item.definition for item in verified_versions(home, type_id, at=at)]
    try:
        found = admit_broker(home.broker.public_key, versions, pool, verifier=verifier, at=at, network=home.network)
        shown = used_evidence(pool, found)
    except (VerificationError, UsageError):
        shown = tuple(raw for _, raw in home.certificates)
    tests = (test for raw in shown for test in parse_certificate(raw).body.tests)
    return (*shown, *lists_behind(tests, verifier.statements, at=at, withdrawals=True))
