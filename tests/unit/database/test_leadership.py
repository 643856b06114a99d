"""Hot standby: one leads, the others wait, and who led once cannot write after the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, func, insert, select

from maia.database import Leadership, migrate, open_database, reading
from maia.database.requests import leader_terms
from maia.errors import UnavailableError, UsageError


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """Give a migrated database of each kind."""
    opened = open_database(database_url)
    migrate(opened)
    yield opened
    opened.dispose()


def write(leader: Leadership, name: str) -> None:
    """Do something that only a leader may."""
    with leader.transaction() as connection:
        connection.execute(insert(leader_terms).values(name=name, term=0))


def test_one_of_two_leads(engine: Engine) -> None:
    """The second stands by until the first resigns, and then has the next term."""
    with Leadership(engine, "keys") as first, Leadership(engine, "keys") as second:
        assert (first.try_lead(), first.try_lead(), second.try_lead()) == (True, True, False)
        assert (first.is_leader, second.is_leader) == (True, False)
        assert (first.term, second.term) == (1, None)
        first.resign()
        assert second.try_lead()
        assert (first.is_leader, second.is_leader, second.term) == (False, True, 2)


def test_leading_one_service_says_nothing_about_another(engine: Engine) -> None:
    """Each service has its own lock and its own terms."""
    with Leadership(engine, "keys") as keys, Leadership(engine, "roles") as roles:
        assert keys.try_lead()
        assert roles.try_lead()


def test_a_standby_writes_nothing(engine: Engine) -> None:
    """Who does not lead gets no transaction."""
    with Leadership(engine, "keys") as standby:
        with pytest.raises(UnavailableError) as refusal:
            write(standby, "mine")
        assert refusal.value.code == "NOT_LEADER"


def test_a_former_leader_that_does_not_know_commits_nothing(engine: Engine) -> None:
    """Another has led since: the term tells, whatever the former leader believes of its lock."""
    with Leadership(engine, "keys") as former, Leadership(engine, "keys") as next_one:
        assert former.try_lead()
        believed = former.term
        former.resign()
        former._term = believed  # a process that was asleep since before it lost its lock
        write(former, "still allowed: nobody else led")
        assert next_one.try_lead()
        with pytest.raises(UnavailableError) as refusal:
            write(former, "late")
        assert refusal.value.code == "NOT_LEADER"
        write(next_one, "in time")
    with reading(engine) as connection:
        late = select(func.count()).select_from(leader_terms).where(leader_terms.c.name == "late")
        assert connection.scalar(late) == 0


@pytest.mark.postgres
def test_leadership_ends_with_its_connection(postgres: str, postgres_server: Any) -> None:
    """The leader sees that its session is gone; the standby takes over; both go on with the same objects."""
    engine, other = open_database(postgres), open_database(postgres)
    migrate(engine)
    with Leadership(engine, "keys") as first, Leadership(other, "keys") as second:
        assert first.try_lead()
        postgres_server.cut_connections(postgres)
        assert not first.is_leader
        assert second.try_lead()
        assert not first.try_lead()
        with pytest.raises(UnavailableError):
            write(first, "late")
        write(second, "in time")
    engine.dispose()
    other.dispose()


@pytest.mark.postgres
def test_a_leader_whose_session_died_unnoticed_is_fenced(postgres: str, postgres_server: Any) -> None:
    """Between the loss and its discovery, a commit is refused by the term."""
    engine, other = open_database(postgres), open_database(postgres)
    migrate(engine)
    with Leadership(engine, "keys") as first, Leadership(other, "keys") as second:
        assert first.try_lead()
        postgres_server.cut_connections(postgres)
        assert second.try_lead()
        with pytest.raises(UnavailableError) as refusal:
            write(first, "late")  # it has not looked at its lock
        assert refusal.value.code == "NOT_LEADER"
    engine.dispose()
    other.dispose()


LEAD = """
import sys
from maia.database import Leadership, open_database
leader = Leadership(open_database(sys.argv[1]), "keys")
print(leader.try_lead(), flush=True)
sys.stdin.read()
"""


def test_a_killed_leader_leaves_the_place_free(engine: Engine, database_url: str) -> None:
    """Kill -9: the lock ends with the process."""
    with (
        subprocess.Popen(
            [sys.executable, "-c", LEAD, database_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
        Leadership(engine, "keys") as standby,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        assert not standby.try_lead()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        while not standby.try_lead():
            pass  # the server notices a closed socket at once, but not within the same instant
        assert standby.term == 2


@pytest.mark.parametrize("name", ["", "a/b", "../x", "x" * 65])
def test_a_service_has_a_plain_name(name: str, engine: Engine) -> None:
    """The name becomes part of a file's name."""
    with pytest.raises(UsageError):
        Leadership(engine, name)
