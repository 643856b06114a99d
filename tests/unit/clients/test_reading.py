"""A service's answer of another shape is an error of Maia's, whichever field is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from maia.clients.reading import (
    read_blob,
    read_blobs,
    read_instant,
    read_list,
    read_number,
    read_table,
    read_text,
    read_texts,
)
from maia.errors import MalformedError

WRONG: dict[str, Callable[[], object]] = {
    "no object": lambda: read_table([]),
    "no list": lambda: read_list({"a": {}}, "a"),
    "a list of something else": lambda: read_list({"a": [1]}, "a"),
    "no text": lambda: read_text({"a": 1}, "a"),
    "nothing": lambda: read_text({}, "a"),
    "no number": lambda: read_number({"a": "1"}, "a"),
    "a truth for a number": lambda: read_number({"a": True}, "a"),
    "half a number": lambda: read_number({"a": 1.5}, "a"),
    "no octets": lambda: read_blob({"a": "***"}, "a"),
    "too many octets": lambda: read_blob({"a": "A" * (2 << 20)}, "a"),
    "no octets in a list": lambda: read_blobs({"a": ["+"]}, "a"),
    "no list of texts": lambda: read_texts({"a": ["x", None]}, "a"),
    "no instant": lambda: read_instant({"a": "noon"}, "a"),
    "an instant without a zone": lambda: read_instant({"a": "2026-11-16T12:00:00"}, "a"),
}


@pytest.mark.parametrize("read", WRONG.values(), ids=WRONG)
def test_another_shape_is_refused(read: Callable[[], object]) -> None:
    """Nothing is guessed."""
    with pytest.raises(MalformedError):
        read()


def test_the_right_shape_is_read() -> None:
    """Each kind of field."""
    table: dict[str, object] = {"n": 7, "t": "x", "b": "AAEC", "l": [{}], "w": ["AA"], "i": "2026-11-16T12:00:00Z"}
    assert (read_number(table, "n"), read_text(table, "t"), read_blob(table, "b")) == (7, "x", b"\x00\x01\x02")
    assert (read_list(table, "l"), read_blobs(table, "w"), read_texts(table, "w")) == ([{}], (b"\x00",), ("AA",))
    assert read_instant(table, "i") == datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert read_instant(table, "none") is None
