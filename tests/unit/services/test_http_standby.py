"""The leader's rounds: what a start asks for comes first and once, failures are tried again, and a loss is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine

from maia.database import Leadership, migrate, open_database
from maia.errors import MaiaError, UnavailableError, VerificationError
from maia.services.http import Standby

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Work:
    """Notes what it is told to do, and fails when it is told to."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failing: dict[str, Exception] = {}

    def begin(self, at: datetime) -> None:
        """Start."""
        self._do("begin")

    def step(self, at: datetime) -> None:
        """Go on."""
        self._do("step")

    def _do(self, what: str) -> None:
        if what in self.failing:
            raise self.failing.pop(what)
        self.done.append(what)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """Give a migrated database of each kind."""
    opened = open_database(database_url)
    migrate(opened)
    yield opened
    opened.dispose()


def standby(engine: Engine) -> tuple[Standby, Work]:
    """Make one of several processes."""
    work = Work()
    return Standby(Leadership(engine, "echo"), now=lambda: NOON, begin=work.begin, step=work.step), work


def test_a_start_comes_first_and_once(engine: Engine) -> None:
    """Each round goes on from there."""
    one, work = standby(engine)
    assert (one.leads, one.round(), one.round()) == (False, True, True)
    assert work.done == ["begin", "step", "step"]
    one.stop()
    assert not one.leads


def test_a_second_process_does_nothing_until_it_leads(engine: Engine) -> None:
    """When the first has stopped, the second starts by itself."""
    (one, _), (two, work) = standby(engine), standby(engine)
    assert (one.round(), two.round(), work.done) == (True, False, [])
    one.stop()
    assert two.round()
    assert work.done == ["begin", "step"]
    two.stop()


FAILURES = {
    "something is not available": (UnavailableError("x", code="LOG_UNAVAILABLE"), True),
    "the database is gone": (UnavailableError("x", code="DATABASE_UNAVAILABLE"), False),
    "another leads": (UnavailableError("x", code="NOT_LEADER"), False),
    "something is not proven": (VerificationError("x"), True),
    "a bug": (ZeroDivisionError("x"), False),
}


@pytest.mark.parametrize("error, leads", FAILURES.values(), ids=FAILURES)
def test_a_round_that_fails_is_tried_again(engine: Engine, error: MaiaError, leads: bool) -> None:
    """The rounds go on; readiness says whether the process still leads."""
    one, work = standby(engine)
    one.round()
    work.failing["step"] = error
    assert one.round() is leads
    assert one.round()
    assert work.done == ["begin", "step", "step"]
    one.stop()


def test_a_start_that_fails_is_not_skipped(engine: Engine) -> None:
    """What a start asks for is asked for again before anything else."""
    one, work = standby(engine)
    work.failing["begin"] = UnavailableError("x", code="LOG_UNAVAILABLE")
    assert not one.round()
    assert one.round()
    assert work.done == ["begin", "step"]
    one.stop()
