"""What is remembered of signed requests survives restarts, and time never falls below its floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from maia.database import RequestMemory, migrate, open_database
from maia.errors import UncheckedError, VerificationError
from maia.principals import KeyId

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
FRESH = timedelta(seconds=60)
KEY, OTHER = KeyId(b"k" * 32), KeyId(b"o" * 32)


@pytest.fixture
def remember(database_url: str) -> Iterator[Callable[..., RequestMemory]]:
    """Give a function that opens the database anew, as a restarted service does."""
    engines = []

    def opened(name: str = "keys", **limits: int) -> RequestMemory:
        engine = open_database(database_url)
        engines.append(engine)
        migrate(engine)
        return RequestMemory(engine, name, **limits)

    yield opened
    for engine in engines:
        engine.dispose()


@pytest.mark.threat("T60")
def test_a_nonce_is_used_once_also_after_a_restart(remember: Callable[..., RequestMemory]) -> None:
    """The seen-cache is in the database."""
    remember().use(KEY, b"n" * 16, until=NOON + FRESH, at=NOON)
    for memory in (remember(), remember()):
        with pytest.raises(VerificationError) as refusal:
            memory.use(KEY, b"n" * 16, until=NOON + FRESH, at=NOON + timedelta(seconds=1))
        assert refusal.value.code == "REPLAY"


def test_a_nonce_belongs_to_a_key(remember: Callable[..., RequestMemory]) -> None:
    """Another key may happen to draw the same number."""
    memory = remember()
    memory.use(KEY, b"n" * 16, until=NOON + FRESH, at=NOON)
    memory.use(OTHER, b"n" * 16, until=NOON + FRESH, at=NOON)
    memory.use(KEY, b"m" * 16, until=NOON + FRESH, at=NOON)


@pytest.mark.threat("T61")
def test_time_never_falls_below_its_floor(remember: Callable[..., RequestMemory]) -> None:
    """A clock that steps back an hour, over a restart too, changes nothing; a later one counts."""
    remember().use(KEY, b"n" * 16, until=NOON + FRESH, at=NOON)
    memory = remember()
    assert memory.now(NOON - timedelta(hours=1)) == NOON
    assert memory.now(NOON + timedelta(seconds=1)) == NOON + timedelta(seconds=1)
    memory.use(KEY, b"m" * 16, until=NOON + FRESH, at=NOON - timedelta(hours=1))
    assert memory.now(NOON - timedelta(hours=1)) == NOON


def test_services_have_floors_of_their_own(remember: Callable[..., RequestMemory]) -> None:
    """One service's time is not another's."""
    remember("keys").use(KEY, b"n" * 16, until=NOON + FRESH, at=NOON)
    early = NOON - timedelta(hours=1)
    assert remember("roles").now(early) == early


def test_a_memory_without_room_refuses(remember: Callable[..., RequestMemory]) -> None:
    """One key cannot use up the room of all, no flood makes it forget, and what is too old makes room."""
    memory = remember(capacity=3, capacity_of_key=2)
    for nonce in (b"1" * 16, b"2" * 16):
        memory.use(KEY, nonce, until=NOON + FRESH, at=NOON)
    with pytest.raises(UncheckedError) as refusal:
        memory.use(KEY, b"3" * 16, until=NOON + FRESH, at=NOON)
    assert refusal.value.code == "LIMIT_EXCEEDED"
    memory.use(OTHER, b"1" * 16, until=NOON + FRESH, at=NOON)
    with pytest.raises(UncheckedError):
        memory.use(OTHER, b"2" * 16, until=NOON + FRESH, at=NOON)
    later = NOON + FRESH + timedelta(microseconds=1)
    memory.use(KEY, b"3" * 16, until=later + FRESH, at=later)
