"""The register by itself: transactions, memory, and what happens to roles whose time is over; on both databases."""

from __future__ import annotations

import pytest

from domain_world import ASSIGNED, HOUR, MINUTE, ORDER, PLATE, Force
from maia.access_control.register import Register
from maia.access_control.values import Revocation
from maia.errors import DeniedError, NotFoundError
from maia.policy import parse_policy


@pytest.fixture
def met(database_url):
    """A force where Smith tracks a plate for an hour."""
    force = Force(database_url)
    force.track(until=force.now + HOUR)
    yield force
    force.engine.dispose()


@pytest.fixture
def fallen():
    """What the register's cascade was told."""
    return []


@pytest.fixture
def register(met, fallen):
    """A second register over the same database, with a cascade that only listens."""

    def cascade(register, records, roles, gone, *, at):
        fallen.append((tuple(map(str, roles)), tuple(map(str, gone))))
        return Revocation(roles=tuple(map(str, roles)))

    return Register(
        signer=met.network.people["Met"], engine=met.engine, holdings=met.home, cascade=cascade, outside=met.outside
    )


def revision(register):
    """Ask how often the database was written to."""
    with register.reading_rows() as records:
        return records.state()[0]


def test_looking_loads_what_the_database_holds_and_writes_nothing(met, register, fallen):
    """Members, policy and roles are those that another process wrote, and nobody has to load anew for it."""
    before = revision(register)
    with register.reading(met.now):
        assert [member.name for member in register.members.values()] == ["smith"]
        assert [str(role.atom) for role in register.roles.engine.roles("smith")] == [PLATE]
        assert "npTracker" in register.policy
    assert revision(register) == before
    assert fallen == []


def test_what_is_over_is_handed_to_the_cascade_before_anything_else(met, register, fallen):
    """The court order ended: its role falls before whoever looks sees it, once."""
    late = met.now + HOUR + MINUTE
    with register.reading(late):
        assert register.roles.engine.roles("smith") == ()
        assert [item.roles for item in register.caught] == [(f"smith: {PLATE}",)]
    assert [roles for roles, _ in fallen] == [(f"smith: {PLATE}",)]
    with register.reading(late):
        assert len(fallen) == 1


def test_another_process_is_seen_by_the_revision(met, register, fallen):
    """What the service took back is gone here as well, without a cascade of this register's own."""
    with register.reading(met.now):
        assert register.roles.engine.roles("smith") != ()
    met.service.retract(ASSIGNED, at=met.now)
    with register.reading(met.now):
        assert register.roles.engine.roles("smith") == ()
    assert fallen == []


def test_a_preview_leaves_database_and_memory_as_they_were(met, register):
    """What is tried gives its answer and is undone, members and policy alike."""
    before = revision(register)

    def work(records):
        register.end_members(records, ["smith"], at=met.now)
        register.change_policy(records, "", parse_policy(""), at=met.now)
        return register.members["smith"].gone

    assert register.preview(work, at=met.now) == met.now
    with register.reading(met.now):
        assert register.present("smith").gone is None
        assert "npTracker" in register.policy
    assert revision(register) == before


@pytest.mark.parametrize("error", [DeniedError("no", code="NO_RULE"), RuntimeError("a bug")], ids=["denial", "bug"])
def test_what_fails_leaves_everything_as_it_was(met, register, error):
    """A change of the memory that is not committed is forgotten, whatever stopped it."""

    def work(records):
        register.end_members(records, ["smith"], at=met.now)
        raise error

    with pytest.raises(type(error)):
        register.write(work, at=met.now)
    with register.reading(met.now):
        assert register.require(met.prove("Smith")).gone is None


def test_who_is_gone_is_nobody_and_the_key_stays_taken(met, register):
    """A member that left is not found by name or key; its key is still known."""
    smith = met.prove("Smith")
    with register.writing(met.now) as records:
        register.end_members(records, ["smith"], at=met.now)
    with register.reading(met.now):
        assert register.find(smith) is None
        assert register.has_key(smith.key)
        with pytest.raises(NotFoundError):
            register.present("smith")
        with pytest.raises(DeniedError, match="NOT_A_MEMBER"):
            register.require(smith)


def test_a_fact_that_ends_while_it_is_remembered_is_named_to_the_cascade(met, register, fallen):
    """A register that runs on hears which facts are gone, beside the roles that fell."""
    for moment in (met.now, met.now + HOUR + MINUTE):
        with register.reading(moment):
            pass
    ((roles, gone),) = fallen
    assert roles == (f"smith: {PLATE}",)
    assert len(gone) == 1
    assert ORDER in gone[0]
