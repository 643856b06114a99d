"""`maia keys`: what a home's key manager shows, and what it does when it is told to."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from maia.authority import Action, type_right
from maia.domain import join_key_groups, open_home_groups, open_key_manager
from maia.events import EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS
from maia.key_manager import KeySettings
from maia.principals import KeySigner
from maia.testing import grant, naming

NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
TYPE = "clinic.Result"


@pytest.fixture
def home(maia: Any) -> Home:
    """Give a home that owns a type, manages its keys, and has one broker inside."""
    made = Home.create(maia.home, HomeConfig(name="clinic"))
    domain = KeySigner.generate()
    made.add_key("domain", domain)
    broker = made.broker
    made.certificates.add(naming(domain, BROKERS, broker))
    made.certificates.add(grant(domain, broker, type_right(domain.public_key, actions=[Action.SUBSCRIBE])))
    event_type = EventType(
        name=TypeName(domain.public_key, TYPE, parse_version("1")),
        attributes=(attribute("patient", "11", "string"), attribute("value", "12", "integer")),
        options=Options(),
    )
    made.types.put(sign_event_type(event_type, domain).raw, at=NOW)
    manager, _ = open_key_manager(made, settings=KeySettings(lead=timedelta(0)))
    open_home_groups(made, manager, event_type.name, at=NOW)
    join_key_groups(
        made, event_type, lambda request, evidence: manager.join(request, evidence, at=NOW),
        manager=manager.public_key, at=NOW,
    )  # fmt: skip
    manager.close()
    return made


def test_status_sums_up(maia: Any, home: Home) -> None:
    """Groups, places and what is due; nothing waits."""
    data = maia("keys", "status", "--json").data
    assert (data["groups"], data["places"], data["unpublished"], data["behind"]) == (3, 3, 0, 0)
    assert data["due"] == (NOW + timedelta(days=1)).isoformat(timespec="milliseconds")
    assert data["manager"] == home.key("domain").fingerprint
    assert "3 places" in maia("keys", "status").out


def test_groups_are_named_by_type_and_attribute(maia: Any, home: Home) -> None:
    """One line a group, with its epoch; the whole-event group is a star."""
    rows = maia("keys", "groups", "--json").data["groups"]
    assert [(row["group"], row["uid"], row["epoch"], row["members"]) for row in rows] == [
        ("clinic.Result/*", None, 1, 1), ("clinic.Result/patient", "11", 1, 1), ("clinic.Result/value", "12", 1, 1),
    ]  # fmt: skip
    assert "clinic.Result/patient" in maia("keys", "groups", "--type", TYPE).out
    assert maia("keys", "groups", "--type", "other").code == 5


def test_refresh_begins_an_epoch_and_history_tells_why(maia: Any, home: Home) -> None:
    """By name or uid; the other groups stay."""
    data = maia("keys", "refresh", f"{TYPE}/patient", "--json").data
    assert (data["group"], data["epoch"]) == (f"{TYPE}/patient", 2)
    assert maia("keys", "refresh", f"{TYPE}/11").out.startswith(f"{TYPE}/patient: epoch 3 begins at ")
    data = maia("keys", "history", f"{TYPE}/patient", "--json").data
    assert [(row["epoch"], row["causes"], row["published"]) for row in data["epochs"]] == [
        (1, ["join"], True), (2, ["order"], True), (3, ["order"], True),
    ]  # fmt: skip
    assert [(row["kind"], row["broker"]) for row in data["changes"]] == [("join", "broker")]
    assert "order" in maia("keys", "history", f"{TYPE}/patient").out
    assert len(maia("keys", "history", f"{TYPE}/*", "--json").data["epochs"]) == 1


def test_plot_draws_tree_and_times(maia: Any, home: Home, tmp_path: Path) -> None:
    """An SVG or a PNG, the same again for the same group."""
    maia("keys", "refresh", f"{TYPE}/patient")
    for name, start in (("a.svg", b"<?xml"), ("b.png", b"\x89PNG")):
        target = tmp_path / name
        assert maia("keys", "plot", f"{TYPE}/patient", "--out", str(target)).code == 0
        drawn = target.read_bytes()
        assert drawn.startswith(start)
        assert maia("keys", "plot", f"{TYPE}/patient", "--out", str(target), "--json").data["file"] == str(target)
        assert target.read_bytes() == drawn
    assert maia("keys", "plot", f"{TYPE}/patient", "--out", "a.gif").code == 2
    assert maia("keys", "plot", f"{TYPE}/patient", "--out", str(tmp_path / "no" / "a.svg")).code == 1


def test_plot_without_matplotlib_says_what_to_install(maia: Any, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = maia("keys", "plot", f"{TYPE}/patient", "--out", "a.svg", "--json")
    assert (ran.code, ran.data["error"]) == (2, "PLOT_MISSING")
    assert "pip install maia[plot]" in ran.err


@pytest.mark.fault("F23")
def test_a_restored_backup_is_seen_and_repaired(maia: Any, home: Home) -> None:
    """Status says so with exit 1, a refresh is refused, and the repair goes on behind the log."""
    backup = {path: path.read_bytes() for path in home.path.glob("store.db*")}
    maia("keys", "refresh", f"{TYPE}/patient")
    for path in home.path.glob("store.db*"):
        path.unlink()
    for path, data in backup.items():
        path.write_bytes(data)
    ran = maia("keys", "status")
    assert ran.code == 1
    assert "maia keys repair" in ran.err
    assert maia("keys", "refresh", f"{TYPE}/patient", "--json").data["error"] == "KEY_MANAGER_BEHIND"
    data = maia("keys", "repair", f"{TYPE}/patient", "--json").data
    assert (data["epoch"], data["members"]) == (3, 1)
    assert maia("keys", "status").code == 0
    assert maia("keys", "repair", f"{TYPE}/patient", "--json").data["error"] == "KEY_MANAGER_NOT_BEHIND"


REFUSED = {
    "no slash": ("refresh", "patient", 2, "KEY_GROUP_TEXT"),
    "an unknown type": ("refresh", "x/patient", 5, "TYPE_NOT_FOUND"),
    "an unknown attribute": ("history", f"{TYPE}/x", 5, "KEY_GROUP_UNKNOWN"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_groups_that_are_none_are_refused_by_name(maia: Any, home: Home, case: tuple[str, str, int, str]) -> None:
    """A group is a type's name and an attribute of it."""
    verb, group, code, error = case
    ran = maia("keys", verb, group, "--json")
    assert (ran.code, ran.data["error"]) == (code, error)


def test_a_home_that_manages_nothing_says_so(maia: Any) -> None:
    """Without a key to manage with, or with a manager elsewhere, there is nothing to show."""
    Home.create(maia.home, HomeConfig(name="clinic"))
    assert maia("keys", "status").code == 5
    shutil.rmtree(maia.home)
    made = Home.create(maia.home, HomeConfig(name="clinic", key_manager="https://keys.example"))
    made.add_key("domain", KeySigner.generate())
    assert maia("keys", "status", "--json").data["error"] == "KEY_MANAGER_ELSEWHERE"
    (maia.home / "maia.toml").write_text(HomeConfig(name="clinic").to_toml(), "utf-8")
    ran = maia("keys", "groups")
    assert (ran.code, ran.out) == (0, "")
    assert "manages no key groups" in ran.err


def test_a_home_without_a_key_to_manage_with_says_which_is_missing(maia: Any) -> None:
    """The way out is told, as by every command that needs the domain's key."""
    Home.create(maia.home, HomeConfig(name="clinic"))
    ran = maia("keys", "refresh", f"owner/{TYPE}@1", "--json")
    assert (ran.code, ran.data["error"]) == (5, "NO_DOMAIN_KEY")
    assert "`maia key new domain` makes it" in ran.data["message"]
