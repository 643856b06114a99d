"""Frames of a gateway: one reading, just their fields, within their limits; whatever comes, only Maia's errors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import MaiaError
from maia.wire import MAX_CREDIT, MAX_ROWS, OPERATIONS, FrameError, encode_octets, read_frame, write_frame

KEY = encode_octets(b"k" * 32)
GOOD = {
    "hello": {"op": "hello", "key": KEY, "nonce": KEY},
    "a proof": {"op": "prove", "own_nonce": KEY, "proof": encode_octets(b"s" * 64), "credentials": [KEY]},
    "an advertisement": {"op": "advertise", "id": 0, "definition": KEY, "where": "a = 1"},
    "a publication": {"op": "publish", "id": 1, "type": "t", "rows": [{}, 7]},
    "a subscription": {"op": "subscribe", "id": 2, "name": "n", "type": "t", "after": "", "credit": MAX_CREDIT},
    "credit": {"op": "credit", "name": "n", "events": 0},
}
BAD = {
    "no object": [],
    "no operation": {"id": 1},
    "an operation that is none": {"op": ["publish"], "id": 1},
    "an unknown operation": {"op": "addEventType", "id": 1},
    "a field too many": {"op": "unsubscribe", "id": 1, "name": "n", "all": True},
    "a field too few": {"op": "publish", "id": 1, "type": "t"},
    "a number that is true": {"op": "unsubscribe", "id": True, "name": "n"},
    "a negative number": {"op": "credit", "name": "n", "events": -1},
    "too much credit": {"op": "credit", "name": "n", "events": MAX_CREDIT + 1},
    "too many rows": {"op": "publish", "id": 1, "type": "t", "rows": [1] * (MAX_ROWS + 1)},
    "a key of another length": {"op": "hello", "key": "AA", "nonce": KEY},
    "too many certificates": {"op": "advertise", "id": 1, "type": "t", "credentials": [KEY] * 17},
    "a text that is none": {"op": "unsubscribe", "id": 1, "name": None},
    "a long text": {"op": "unsubscribe", "id": 1, "name": "n" * 5000},
}


@pytest.mark.parametrize("frame", GOOD.values(), ids=GOOD.keys())
def test_a_frame_is_read_as_it_was_written(frame: dict[str, object]) -> None:
    """What a client may say is understood."""
    fields = {name: value for name, value in frame.items() if name != "op"}
    found = read_frame(write_frame(str(frame["op"]), **fields).encode())
    assert (found.operation, set(found.fields), found.number) == (frame["op"], set(fields), frame.get("id"))


@pytest.mark.parametrize("frame", BAD.values(), ids=BAD.keys())
def test_what_is_no_frame_is_refused(frame: object) -> None:
    """Each refusal has the one code; the number of its request is kept where it has one."""
    with pytest.raises(FrameError) as refused:
        read_frame(json.dumps(frame).encode())
    number = frame.get("id") if isinstance(frame, dict) else None
    assert (refused.value.code, refused.value.number) == ("FRAME", None if number is True else number)


@given(st.binary(max_size=300) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr))
def test_whatever_comes_only_maias_errors_are_raised(data: bytes | str) -> None:
    """A parser of foreign octets raises nothing else."""
    try:
        read_frame(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
    except MaiaError:
        return


@given(
    st.dictionaries(
        st.sampled_from(["op", "id", "name", "type", "rows", "after", "credit", "key", "nonce", "credentials", "x"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(OPERATIONS)
        | st.lists(st.text(max_size=3), max_size=3),
    )
)  # fmt: skip
def test_whatever_object_comes_only_maias_errors_are_raised(frame: dict[str, object]) -> None:
    """Objects that are nearly frames as well."""
    try:
        read_frame(json.dumps(frame).encode())
    except MaiaError:
        return
