"""Facts from a real PostgreSQL: read-only, bound parameters, a time limit."""

from __future__ import annotations

import psycopg
import pytest

from maia.errors import UnavailableError
from maia.home.providers import SqlFacts
from maia.policy import Atom, Constant, Predicate
from maia.testing import at

pytestmark = pytest.mark.postgres
NOW = at(0)
SMITH, ODD = (Atom("detective", (Constant(name),)) for name in ("smith", "x' or 'a%s?' = 'a%s?"))
ASK = "select 1 from staff where rank <> 'a%s?' and name = ?"


@pytest.fixture
def staff(postgres: str) -> str:
    """A database with one detective."""
    url = postgres.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url) as connection:
        connection.execute("create table staff (name text, rank text)")
        connection.execute("insert into staff values ('smith', 'detective')")
    return url


def facts(url: str, ask: str = ASK, **options) -> SqlFacts:
    """The detectives of the database."""
    return SqlFacts(predicate=Predicate("detective", 1), database=url, ask_sql=ask, **options)


def test_the_database_answers_and_lists(staff):
    """Percent signs and question marks inside quotes are letters; parameters are parameters."""
    found = facts(staff, list_sql="select name from staff where rank like 'det%'")
    assert [found.ask(fact, at=NOW) for fact in (SMITH, ODD)] == [True, False]
    assert found.facts(at=NOW) == {SMITH}


FAULTS = {
    "a statement that writes": ("delete from staff where name = ? returning 1", "PROVIDER_FAILED"),
    "no such table": ("select 1 from nowhere where name = ?", "PROVIDER_FAILED"),
    "a statement that sleeps": ("select pg_sleep(60) from staff where name = ?", "PROVIDER_SLOW"),
}


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS.keys())
def test_a_database_that_fails_or_is_slow_means_no(staff, case):
    """The reason is typed; nothing was written."""
    statement, code = case
    with pytest.raises(UnavailableError) as caught:
        facts(staff, statement, seconds=0.3).ask(SMITH, at=NOW)
    assert caught.value.code == code
    assert facts(staff).ask(SMITH, at=NOW)


def test_a_database_that_is_not_there_means_no():
    """Nobody listens."""
    with pytest.raises(UnavailableError) as caught:
        facts("postgresql:///none?host=/nonexistent").ask(SMITH, at=NOW)
    assert caught.value.code == "PROVIDER_FAILED"
