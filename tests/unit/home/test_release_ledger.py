"""The ledger of releases: only grows, survives a line that was cut, refuses what is damaged; and the secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maia.errors import EncodingError
from maia.home import ReleaseEntry, ReleaseLedger, release_secret
from maia.testing import at


def entry(to: str = "registry", form: str = "rows") -> ReleaseEntry:
    """Make a release."""
    return ReleaseEntry(
        at=at(0), to=to, type="nhs/T@1", type_id="00", form=form, attributes=("a",), reader="clerk", target="out.jsonl",
        upto={"lane": "3:9:ff"},
    )  # fmt: skip


def test_what_is_begun_and_done_is_read_back(tmp_path: Path) -> None:
    """Each release has its number, its place in the log, and how it ended."""
    ledger = ReleaseLedger(tmp_path)
    assert ledger.entries() == ()
    with ledger.turn():
        ledger.begin(entry())
        second = ledger.begin(entry("gp", "counts"))
        assert [item.begun for item in ledger.entries()] == [True, True]
        done = ledger.finish(second, rows=4, groups=2)
    assert [(item.number, item.state, item.rows, item.groups) for item in ledger.entries()] == [
        (1, "begun", 0, 0), (2, "done", 4, 2)
    ]  # fmt: skip
    assert ledger.entries()[1] == done
    assert done.same_series(entry("gp", "counts"))
    assert not done.same_series(entry("gp", "rows"))
    assert (tmp_path / "releases" / "ledger").stat().st_mode & 0o777 == 0o600


def test_types_that_were_defined_are_listed_beside_the_releases(tmp_path: Path) -> None:
    """Each once; they take no number."""
    ledger, path = ReleaseLedger(tmp_path), tmp_path / "releases" / "ledger"
    with ledger.turn():
        for type_id in ("aa", "bb", "aa"):
            ledger.define(type_id)
        assert ledger.begin(entry()).number == 1
    assert (ledger.defined(), len(path.read_bytes().splitlines())) == ({"aa", "bb"}, 3)


CHANGES = {"rules": "ff", "target": "b.jsonl", "reader": "chen", "withheld": ("a",), "to": "gp"}


@pytest.mark.parametrize("name", CHANGES)
def test_a_release_is_the_same_by_rules_target_and_reader(name: str) -> None:
    """Over one stretch; when and under which number does not matter."""
    again = replace(entry(), number=7, at=at(5))
    assert entry().same_release(again)
    assert not entry().same_release(replace(again, **{name: CHANGES[name]}))


def test_counts_of_another_type_cover_what_they_may_have_counted() -> None:
    """Done or begun; neither rows, nor what went to others."""
    ours, theirs = (replace(entry(form="counts"), type_id=type_id) for type_id in ("00", "11"))
    assert theirs.counts_too(ours)
    assert replace(theirs, state="done").counts_too(ours)
    assert not ours.counts_too(ours)
    for change in ({"to": "gp"}, {"form": "rows"}):
        assert not replace(theirs, **change).counts_too(ours)


def test_a_line_that_was_cut_never_was(tmp_path: Path) -> None:
    """A kill while a line is written leaves a part, which counts for nothing and is written over."""
    ledger, path = ReleaseLedger(tmp_path), tmp_path / "releases" / "ledger"
    with ledger.turn():
        first = ledger.begin(entry())
    path.write_bytes(path.read_bytes() + b'{"done": 1, "ro')
    assert [item.state for item in ledger.entries()] == ["begun"]
    with ledger.turn():
        ledger.finish(first, rows=1, groups=0)
    assert [(item.state, item.rows) for item in ledger.entries()] == [("done", 1)]


DAMAGE = {
    "no JSON": b"x\n",
    "no object": b"[]\n",
    "an end without a beginning": b'{"done": 1, "groups": 0, "rows": 0, "v": 1}\n',
    "another format": b'{"defined": "00", "v": 2}\n',
    "lacking a field": b'{"number": 1, "v": 1}\n',
    "not UTF-8": b"\xff\n",
    "a type that is none": b'{"defined": "x", "v": 1}\n',
}


@pytest.mark.parametrize("line", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_ledger_is_refused(tmp_path: Path, line: bytes) -> None:
    """Who cannot tell what was released releases nothing."""
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "ledger").write_bytes(line)
    with pytest.raises(EncodingError, match="RELEASE_LEDGER"):
        ReleaseLedger(tmp_path).entries()


def test_the_secret_is_made_once_and_refused_when_damaged(tmp_path: Path) -> None:
    """Everybody who opens the home finds the same one."""
    secret = release_secret(tmp_path)
    assert len(secret) == 32
    assert release_secret(tmp_path) == secret
    (tmp_path / "releases" / "secret").write_bytes(secret[:-1])
    with pytest.raises(EncodingError, match="RELEASE_SECRET"):
        release_secret(tmp_path)
