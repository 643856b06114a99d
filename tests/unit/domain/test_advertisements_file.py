"""Files of sessions: advertisements, ended subscriptions, and the last events of an outbox."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from maia.domain import Wanted, last_events, read_subscriptions
from maia.domain.advertisements import ADVERTISEMENTS_FILE, read_advertisements
from maia.domain.wanted import SUBSCRIPTIONS_FILE, read_wanted, to_toml
from maia.errors import MalformedError, UnavailableError, UsageError

ONE = f"""\
format = 1

[[advertisement]]
as = "camera"
key = "aa"
type = "{"00" * 32}"
name = "pito/Plate@1"
version = "1"
"""
DAMAGED = {
    "not TOML": "format = ",
    "no format": ONE.partition("\n")[2],
    "a table more": f"{ONE}\n[more]\n",
    "a field more": f"{ONE}more = 1\n",
    "a field less": ONE.replace('version = "1"\n', ""),
    "a number for a text": ONE.replace('as = "camera"', "as = 1"),
    "a word for yes": f'{ONE}withdrawn = "no"\n',
    "an id that is none": ONE.replace("00", "zz"),
}


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    """Nothing without a file; an advertisement with one."""
    assert read_advertisements(tmp_path) == ()
    (tmp_path / ADVERTISEMENTS_FILE).write_text(ONE)
    [found] = read_advertisements(tmp_path)
    assert (found.client, found.kept.version, found.kept.filter, found.kept.withdrawn) == ("camera", "1", None, False)


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_no_book(tmp_path: Path, text: str) -> None:
    """Nobody guesses what was withdrawn: a file that is not what it should be stops publishing, with its code."""
    (tmp_path / ADVERTISEMENTS_FILE).write_text(text)
    with pytest.raises(MalformedError, match="ADVERTISEMENTS"):
        read_advertisements(tmp_path)


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    """A later Maia wrote it."""
    (tmp_path / ADVERTISEMENTS_FILE).write_text(ONE.replace("format = 1", "format = 9"))
    with pytest.raises(UnavailableError, match="FORMAT_NEWER"):
        read_advertisements(tmp_path)


def test_ended_subscriptions_are_kept_apart(tmp_path: Path) -> None:
    """Those that are live are served; those that ended are known, and no name stands twice."""
    live, over = (Wanted(name=name, as_="BO", type="T", where="x = '\"'", version="1") for name in ("a", "b"))
    (tmp_path / SUBSCRIPTIONS_FILE).write_bytes(to_toml([live], [over]))
    assert read_wanted(tmp_path) == ((live,), (over,))
    assert read_subscriptions(tmp_path) == (live,)
    (tmp_path / SUBSCRIPTIONS_FILE).write_bytes(to_toml([live], [live]))
    with pytest.raises(MalformedError, match="SUBSCRIPTIONS"):
        read_wanted(tmp_path)
    (tmp_path / SUBSCRIPTIONS_FILE).write_bytes(to_toml([live], []))
    assert read_wanted(tmp_path) == ((live,), ())


@pytest.mark.parametrize(("sizes", "count", "rows"), [
    ((), 3, []), ((2,), 3, [0, 1]), ((2, 3), 3, [2, 3, 4]), ((2, 3), 4, [1, 2, 3, 4]), ((1, 1, 1), 1, [2]),
    ((3, 0, 1), 2, [2, 3]),
])  # fmt: skip
def test_the_last_events_are_the_last(sizes: tuple[int, ...], count: int, rows: list[int]) -> None:
    """Across batches, in their order, no more than asked for."""
    numbers = iter(range(100))
    batches = [
        pa.record_batch({"n": pa.array([next(numbers) for _ in range(size)], type=pa.int64())}) for size in sizes
    ]
    assert [value for batch in last_events(batches, count) for value in batch.column("n").to_pylist()] == rows


def test_the_last_none_is_no_question() -> None:
    """At least one."""
    with pytest.raises(UsageError):
        last_events([], 0)
