"""Providers: databases, files, flags and their configuration. What fails means no, with a reason."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from maia.errors import DeniedError, MalformedError, UnavailableError, UsageError
from maia.home.providers import EmergencyFlag, FileFacts, HomeSurroundings, SqlFacts, read_providers
from maia.policy import Atom, Constant, Environment, FactKind, PolicyEngine, Predicate, parse_fact, parse_policy
from maia.principals import KeySigner
from maia.testing import at

NOW = at("2026-07-01T11:00")
CHIEF, DEPUTY = KeySigner(b"c" * 32), KeySigner(b"d" * 32)
SMITH, JONES = (Atom("detective", (Constant(name),)) for name in ("smith", "jones"))


def code_of(call) -> str:
    """Tell how a call fails."""
    with pytest.raises(UnavailableError) as caught:
        call()
    return caught.value.code


@pytest.fixture
def roster(tmp_path: Path) -> Path:
    """A database with one detective."""
    path = tmp_path / "roster.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table staff (name text, rank text)")
        connection.execute("insert into staff values ('smith', 'detective'), ('brown', 'constable')")
    connection.close()
    return path


def detectives(path: Path, **options) -> SqlFacts:
    """The detectives of a database."""
    return SqlFacts(
        predicate=Predicate("detective", 1),
        database=str(path),
        ask_sql="select 1 from staff where rank = 'detective' and name = ?",
        list_sql="select name from staff where rank = 'detective'",
        **options,
    )


def test_a_database_answers_and_lists(roster):
    """A row is yes, no row is no."""
    found = detectives(roster)
    assert [found.ask(fact, at=NOW) for fact in (SMITH, JONES)] == [True, False]
    assert found.facts(at=NOW) == {SMITH}


def test_a_database_predicate_and_an_appointment_give_equal_results(roster, tmp_path):
    """detective(id) by look-up or by appointment: the same roles; an emergency opens the emergency rule only."""
    rules = "tracker(self) <- {}detective(self)*\nrescuer(self) <- ?emergency*, medic(self)*"
    by_database, by_appointment = (PolicyEngine(parse_policy(rules.format(mark))) for mark in ("?", ""))
    flag = EmergencyFlag(path=tmp_path / "emergency.jsonl", by=frozenset((CHIEF.public_key,)))
    environments = (Environment([detectives(roster), flag]), Environment([flag]))
    known = {by_database: frozenset(), by_appointment: frozenset()}
    by_appointment.appoint("detective(smith)")
    for engine in (by_database, by_appointment):
        engine.appoint("medic(ali)")

    def look(engine, environment, when):
        now = frozenset(fact for item in environment.providers() for fact in environment.listed(item, at=at(when)))
        gone = [engine.retract(fact, kind=FactKind.ENVIRONMENT).fallen for fact in known[engine] - now]
        for fact in now - known[engine]:
            engine.observe(fact)
        known[engine] = now
        return [str(role) for fallen in gone for role in fallen]

    def outcome(engine, environment, when):
        look(engine, environment, when)
        held = []
        for who, role in (("smith", "tracker"), ("jones", "tracker"), ("ali", "rescuer"), ("smith", "rescuer")):
            try:
                engine.activate(f"{role}({who})", principal=who)
                held.append(f"{role}({who})")
            except Exception as error:  # noqa: BLE001 - the code is what is compared
                held.append(error.code)
        return held

    def outcomes(when):
        return [outcome(*pair, when) for pair in zip((by_database, by_appointment), environments, strict=True)]

    first, second = outcomes(100)
    assert first == second == ["tracker(smith)", "ROLE_REFUSED", "ROLE_REFUSED", "ROLE_REFUSED"]
    flag.declare(CHIEF, reason="flood", at=at(105))
    first, second = outcomes(110)
    assert first == second == ["tracker(smith)", "ROLE_REFUSED", "rescuer(ali)", "ROLE_REFUSED"]
    flag.end(CHIEF, reason="over", at=at(115))
    assert look(by_database, environments[0], 120) == ["ali: rescuer(ali)"]


SQL_FAULTS = {
    "no such table": ("select 1 from nowhere where name = ?", "PROVIDER_FAILED"),
    "a statement that writes": ("delete from staff where name = ? returning 1", "PROVIDER_FAILED"),
    "a statement without end": (
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n where ? != ''",
        "PROVIDER_SLOW",
    ),
}


@pytest.mark.parametrize("case", SQL_FAULTS.values(), ids=SQL_FAULTS.keys())
def test_a_database_that_fails_or_is_slow_means_no(roster, case):
    """The reason is typed; the database is unchanged."""
    statement, code = case
    found = SqlFacts(predicate=Predicate("detective", 1), database=str(roster), ask_sql=statement, seconds=0.2)
    assert code_of(lambda: found.ask(SMITH, at=NOW)) == code
    assert detectives(roster).ask(SMITH, at=NOW)


def test_parameters_are_bound_and_never_written_into_a_statement(roster):
    """A name that looks like SQL is a name."""
    found = detectives(roster)
    assert not found.ask(Atom("detective", (Constant("x' or '1'='1"),)), at=NOW)
    nested = Atom("detective", (Atom("smith"),))
    assert code_of(lambda: found.ask(nested, at=NOW)) == "PROVIDER_VALUE"
    with pytest.raises(UsageError):
        SqlFacts(predicate=Predicate("detective", 1), database="x", ask_sql="select 1 where '?' = 'x'")


def test_a_database_lists_no_more_than_is_taken_and_only_plain_values(roster, tmp_path):
    """Too many rows, or other values, and the whole list counts for nothing."""
    assert code_of(lambda: detectives(roster, rows=0).facts(at=NOW)) == "PROVIDER_LIMIT"
    odd = SqlFacts(
        predicate=Predicate("detective", 1), database=str(roster), ask_sql="select ?", list_sql="select null"
    )
    assert code_of(lambda: odd.facts(at=NOW)) == "PROVIDER_VALUE"
    missing = detectives(tmp_path / "missing.db")
    assert code_of(lambda: missing.facts(at=NOW)) == "PROVIDER_FAILED"
    assert not (tmp_path / "missing.db").exists()


def test_a_file_is_read_again_when_it_changes(tmp_path):
    """People edit it; the next look sees that."""
    path = tmp_path / "staff.csv"
    path.write_text("smith\n\n", "utf-8")
    found = FileFacts(Predicate("detective", 1), path)
    assert found.facts(at=NOW) == {SMITH}
    path.write_text("smith\n jones \n", "utf-8")
    assert found.facts(at=NOW) == {SMITH, JONES}
    toml = tmp_path / "staff.toml"
    toml.write_text('facts = [["jones"]]', "utf-8")
    assert FileFacts(Predicate("detective", 1), toml).ask(JONES, at=NOW)
    path.unlink()
    assert code_of(lambda: found.facts(at=NOW)) == "PROVIDER_FAILED"


BAD_FILES = {
    "another number of columns": ("staff.csv", b"smith,x\n"),
    "an open quote": ("staff.csv", b'"smith\n'),
    "no UTF-8": ("staff.csv", b"\xff\n"),
    "no TOML": ("staff.toml", b"facts = ["),
    "no facts": ("staff.toml", b"other = 1"),
    "facts that are no rows": ("staff.toml", b'facts = "smith"'),
    "cells that are no words": ("staff.toml", b"facts = [[1]]"),
}


@pytest.mark.parametrize("case", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_is_not_well_formed_says_nothing_at_all(tmp_path, case):
    """Not even its good lines count."""
    name, data = case
    (tmp_path / name).write_bytes(data)
    assert code_of(lambda: FileFacts(Predicate("detective", 1), tmp_path / name).facts(at=NOW)) == "PROVIDER_VALUE"


def test_an_emergency_has_a_word_a_reason_and_a_trail(tmp_path):
    """It begins and ends at stated times, by itself where that was said; every change is kept."""
    flag = EmergencyFlag(path=tmp_path / "policy" / "emergency.jsonl", by=frozenset((CHIEF.public_key,)))
    fact = Atom("emergency")
    assert not flag.ask(fact, at=NOW)
    flag.declare(CHIEF, reason="flood", at=at(100), until=at(200))
    assert [flag.ask(fact, at=at(when)) for when in (99, 100, 199, 200)] == [False, True, True, False]
    flag.end(CHIEF, reason="dry", at=at(150))
    assert not flag.ask(fact, at=at(160))
    assert [(change.declared, change.by, change.reason) for change in flag.history()] == [
        (True, CHIEF.public_key, "flood"),
        (False, CHIEF.public_key, "dry"),
    ]
    for reason, when in ((" ", 300), ("x" * 1001, 300), ("late", 1)):
        with pytest.raises(UsageError):
            flag.declare(CHIEF, reason=reason, at=at(when))


def test_an_emergency_is_the_word_of_those_who_may_declare_it(tmp_path):
    """Somebody else's is refused; what somebody said whose word counts no longer does not count."""
    chief = EmergencyFlag(path=tmp_path / "emergency.jsonl", by=frozenset((CHIEF.public_key,)))
    both = replace(chief, by=frozenset((CHIEF.public_key, DEPUTY.public_key)))
    with pytest.raises(DeniedError) as denied:
        chief.declare(DEPUTY, reason="flood", at=at(100))
    assert (denied.value.code, chief.path.exists()) == ("EMERGENCY_DENIED", False)
    both.declare(DEPUTY, reason="flood", at=at(100))
    assert [flag.ask(Atom("emergency"), at=at(110)) for flag in (both, chief)] == [True, False]
    assert [change.by for change in chief.history()] == [DEPUTY.public_key]


def test_a_trail_that_was_touched_declares_nothing(tmp_path):
    """A line that was altered, removed or added by hand breaks the chain, and the flag fails."""
    path = tmp_path / "emergency.jsonl"
    flag = EmergencyFlag(path=path, by=frozenset((CHIEF.public_key,)))
    flag.declare(CHIEF, reason="flood", at=at(100))
    flag.end(CHIEF, reason="dry", at=at(150))
    first, second = whole = path.read_bytes().splitlines(keepends=True)
    touched = {
        "another reason": [first.replace(b"flood", b"blood"), second],
        "in another's name": [first.replace(CHIEF.public_key.raw.hex().encode(), DEPUTY.public_key.raw.hex().encode())],
        "the start removed": [second],
        "a line twice": [*whole, second],
        "no JSON": [*whole, b"emergency!\n"],
        "no truth": [first.replace(b"true", b'"true"')],
    }
    for lines in touched.values():
        path.write_bytes(b"".join(lines))
        assert code_of(lambda: flag.ask(Atom("emergency"), at=at(200))) == "EMERGENCY_DAMAGED"


CONFIG = """
every = 7

[[predicate]]
name = "detective"
arity = 1
kind = "sql"
database = "../roster.db"
ask = "select 1 from staff where name = ?"
list = "select name from staff"

[[predicate]]
name = "assigned"
arity = 2
kind = "file"
path = "assigned.csv"

[[predicate]]
name = "office"
kind = "hours"
zone = "Europe/London"
days = ["mon", "tue", "wed", "thu", "fri"]
from = "09:00"
to = "17:00"
holidays = ["2026-12-25"]

[[predicate]]
name = "at"
kind = "location"
terminals = "terminals.csv"
networks = { station = ["10.1.0.0/16", "fd00::/8"] }

[[predicate]]
name = "licensed"
arity = 1
kind = "http"
url = "https://registry.example/licences/{1}"
hosts = ["registry.example"]

[[predicate]]
name = "emergency"
kind = "emergency"
by = []
"""


def test_a_home_declares_its_providers_in_a_file(roster, tmp_path):
    """Every kind is there; paths are relative to the file."""
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "providers.toml").write_text(CONFIG, "utf-8")
    (folder / "assigned.csv").write_text("smith,c1\n", "utf-8")
    (folder / "terminals.csv").write_text("smith,10.1.2.3\njones,::ffff:10.1.0.9\nbrown,10.2.0.1\n", "utf-8")
    found = read_providers(folder)
    assert found.every == timedelta(seconds=7)
    assert {str(item) for item in found.environment.predicates} == {
        "detective/1", "assigned/2", "office/0", "at/2", "licensed/1", "emergency/0",
    }  # fmt: skip
    held = ("detective(smith)", "assigned(smith, c1)", "office", "at(smith, station)", "at(jones, station)")
    assert all(found.environment.holds(parse_fact(fact), at=NOW) for fact in held)
    not_held = ("assigned(smith, c2)", "at(brown, station)", "emergency")
    assert not any(found.environment.holds(parse_fact(fact), at=NOW) for fact in not_held)
    assert read_providers(tmp_path / "elsewhere").environment.predicates == frozenset()


BAD_CONFIG = {
    "no TOML": "every = ",
    "an unknown setting": "often = 5",
    "no interval": "every = 0",
    "an unknown kind": '[[predicate]]\nname = "x"\nkind = "telepathy"',
    "nobody may declare it": '[[predicate]]\nname = "x"\nkind = "emergency"',
    "somebody unknown may": '[[predicate]]\nname = "x"\nkind = "emergency"\nby = ["nobody"]',
    "no name": '[[predicate]]\nkind = "emergency"',
    "a setting too many": '[[predicate]]\nname = "x"\nkind = "emergency"\nby = []\nloud = true',
    "a setting too few": '[[predicate]]\nname = "x"\nkind = "file"\narity = 1',
    "an arity that is none": '[[predicate]]\nname = "x"\nkind = "file"\narity = true\npath = "x"',
    "a day that is none": (
        '[[predicate]]\nname = "x"\nkind = "hours"\nzone = "UTC"\nfrom = "09:00"\nto = "17:00"\ndays = ["day"]'
    ),
    "a network that is none": '[[predicate]]\nname = "x"\nkind = "location"\nterminals = "t"\nnetworks = { a = ["b"] }',
    "a host in the parameters": (
        '[[predicate]]\nname = "x"\nkind = "http"\narity = 1\nurl = "https://{1}/"\nhosts = ["a"]'
    ),
    "more time than is given": (
        '[[predicate]]\nname = "x"\nkind = "http"\narity = 0\nurl = "https://a/"\nhosts = ["a"]\nseconds = 60'
    ),
    "a predicate twice": 2 * '[[predicate]]\nname = "x"\nkind = "emergency"\nby = []\n',
}


@pytest.mark.parametrize("text", BAD_CONFIG.values(), ids=BAD_CONFIG.keys())
def test_half_a_configuration_is_none(tmp_path, text):
    """It is refused with a code; a home whose file is refused declares nothing, so what needs it denies."""
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "providers.toml").write_text(text, "utf-8")
    with pytest.raises(MalformedError) as caught:
        read_providers(tmp_path / "policy")
    assert caught.value.code == "PROVIDER_CONFIG"
    place = HomeSurroundings(str(tmp_path))()
    assert place.predicates == frozenset()


def test_a_changed_configuration_is_read_where_it_is_used(tmp_path):
    """The reference carries a path; what it opens follows the file."""
    reference = HomeSurroundings(str(tmp_path))
    assert reference().predicates == frozenset()
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "providers.toml").write_text(
        '[[predicate]]\nname = "emergency"\nkind = "emergency"\nby = []', "utf-8"
    )
    assert reference().predicates == {Predicate("emergency", 0)}
    assert reference().clock().tzinfo is not None
