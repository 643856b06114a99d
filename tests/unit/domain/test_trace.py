"""The trace of a home: steps by name and count, together, bounded, and silent unless it is turned on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maia.domain import TRACE_FILE, read_trace, trace
from maia.errors import MalformedError
from maia.home import Home, HomeConfig

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)


def steps(home: Path) -> list[tuple[object, object]]:
    """Read what was traced."""
    return [(item["step"], item["count"]) for item in read_trace(home)]


@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_home_traces_when_its_settings_say_so(tmp_path: Path, setting: str) -> None:
    """The default writes nothing; turned on, what was heard is written together, by its owner alone to be read."""
    config = HomeConfig(name="met", trace=setting)
    home = Home.create(tmp_path / "met", config)
    assert HomeConfig.from_toml(config.to_toml().encode()) == config
    found = trace.trace_of(home, "publish", "p")
    found.tell("stamp", 1)
    found.tell("encrypt", 3)
    assert steps(home.path) == []
    found.write(at=NOW)
    found.write(at=NOW)
    assert steps(home.path) == ([("stamp", 1), ("encrypt", 3)] if setting == "on" else [])
    if setting == "on":
        assert (home.path / TRACE_FILE).stat().st_mode & 0o777 == 0o600


def test_a_trace_stops_at_its_bound_and_says_when_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace that nobody clears does not fill the disk; a line that is none is no trace."""
    monkeypatch.setattr(trace, "MAX_TRACE", 200)
    found = trace.Trace(path=tmp_path / TRACE_FILE, operation="read")
    for number in range(10):
        found.tell("verify", number)
        found.write(at=NOW)
    assert 0 < len(steps(tmp_path)) < 3
    (tmp_path / TRACE_FILE).write_text("no line\n")
    with pytest.raises(MalformedError, match="TRACE"):
        steps(tmp_path)
    assert replace(found, path=None).write(at=NOW) is None
