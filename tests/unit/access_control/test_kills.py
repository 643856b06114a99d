"""The service is killed at every step: nothing handed out is unknown, nothing acknowledged is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from domain_world import PLATE, Force
from maia import database
from maia.authority import ListStatement, parse_statement
from maia.errors import UnavailableError

PROGRAM = Path(__file__).with_name("access_control_killing.py")


def check(url: str, said: list[tuple[str, str]]) -> None:
    """Open the service again, and hold it to what the killed one said."""
    met = Force(url)
    met.service.tell(at=met.now)
    live = {entry.certificate_id.hex() for entry in met.service.register(at=met.now)}
    listed: set[str] = set()
    for raw in met.service.statements(at=met.now):
        body = parse_statement(raw).body
        assert isinstance(body, ListStatement)
        listed |= {identity.hex() for identity in body.certificates}
    words = {word for word, _ in said}
    handed = {rest for word, rest in said if word == "handed"}
    revoked = {rest for word, rest in said if word == "revoked"}
    assert handed <= live | listed
    assert revoked <= listed
    assert not revoked & live
    active = [str(role) for role in met.service.roles(at=met.now)]
    if "fallen" in words:
        assert f"smith: {PLATE}" not in active
    members = {item.name: item.gone is not None for item in met.service.members(at=met.now)}
    assert {rest for word, rest in said if word == "joined"} <= members.keys()
    assert all(members[rest] for word, rest in said if word == "gone")
    # Who joins and leaves together does so together, with the roles that came along.
    assert members.get("jones") == members.get("kay")
    together = {f"{name}: npTracker({name})" for name, gone in members.items() if name != "smith" and not gone}
    assert together == set(active) - {f"smith: {PLATE}"}
    met.engine.dispose()


@pytest.mark.slow
def test_a_kill_at_any_step_loses_no_certificate_and_no_withdrawal(tmp_path):
    """Before and after every commit, and before and after everything that is told."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), "sweep"], capture_output=True, text=True, check=True, timeout=250
    )
    lives = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lives) > 30
    assert [life["ended"] for life in lives] == [0] + [9] * (len(lives) - 1)
    for life in lives:
        said = [(word, rest) for word, _, rest in (line.partition(" ") for line in life["said"])]
        check(str(tmp_path / f"{life['kill']}.db"), said)


def test_the_primary_is_killed_and_the_standby_takes_over(database_url):
    """Existing roles remain, and a role is activated at the standby."""
    met = Force(database_url)
    standby = database.Leadership(met.engine, "access-control")
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), database_url, "lead"], stdout=subprocess.PIPE, text=True
    ) as primary:
        assert primary.stdout is not None
        assert primary.stdout.readline() == "leading\n"
        assert not standby.try_lead()
        met.service = met.open(transaction=standby.transaction)
        with pytest.raises(UnavailableError) as refusal:
            met.service.appoint("x", at=met.now)
        assert refusal.value.code == "NOT_LEADER"
        primary.kill()
        primary.wait(timeout=30)
    for _ in range(200):
        if standby.try_lead():
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert standby.is_leader
    assert [str(role) for role in met.service.roles(at=met.now)] == [f"smith: {PLATE}"]
    met.service.activate(met.prove("BO"), PLATE, at=met.now)
    assert len(met.service.roles(at=met.now)) == 2
    standby.resign()
    met.engine.dispose()
