"""The index of a log in Kafka: what a topic of names says, against a plain telling of its rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import UnavailableError
from maia.log import kafka_index
from maia.log.kafka_index import MARK, PART, Act, ActVerb, Index, pack_places, read_act, write_act

AT = datetime(2026, 11, 17, tzinfo=UTC)
NAMES = ("a", "b", "x/a", "x/b", "x/y/a", "x/.hidden", "z/a")


def _mark(number: int) -> bytes:
    return number.to_bytes(MARK)


steps = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(ActVerb), st.integers(0, 40)), max_size=40)


@given(steps)
def test_the_first_of_a_name_holds_it_until_it_is_exchanged_or_removed(told: list[tuple[str, ActVerb, int]]) -> None:
    """Of every sequence of acts the index holds what the rules say, lists it in order, and tells who won."""
    index = Index()
    live: dict[str, bytes] = {}
    for number, (name, verb, of) in enumerate(told):
        act = Act(verb=verb, mark=_mark(number), of=_mark(of))
        done = {
            ActVerb.NEW: name not in live, ActVerb.PUT: True, ActVerb.DELETE: live.get(name) == _mark(of),
        }[verb]  # fmt: skip
        heard = index.hear(name.encode(), write_act(act), AT)
        assert heard is not None
        assert (heard[0], heard[1].done) == (_mark(number), done)
        freed = live.get(name) if done else _mark(number) if verb is ActVerb.NEW else None
        assert (heard[1].freed.mark if heard[1].freed is not None else None) == freed
        if done and verb is ActVerb.DELETE:
            del live[name]
        elif done:
            live[name] = _mark(number)
    found = {name: index.find(name) for name in NAMES}
    assert {name: kept.act.mark for name, kept in found.items() if kept is not None} == live
    for folder in ("", "x", "x/y", "z", "none"):
        start = f"{folder}/" if folder else ""
        inner = [name.removeprefix(start) for name in live if name.startswith(start)]
        objects = sorted(name for name in inner if "/" not in name and not name.startswith("."))
        assert index.list_after(folder, "", limit=99) == objects
        assert index.list_after(folder, "a", limit=1) == [name for name in objects if name > "a"][:1]
        assert index.list_folders(folder, "", limit=99) == sorted({n.split("/")[0] for n in inner if "/" in n})


@given(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=120))
def test_no_record_of_strangers_harms_the_index(key: bytes | None, value: bytes | None) -> None:
    """What is no act changes nothing."""
    index = Index()
    if index.hear(key, value, AT) is None:
        assert index.list_after("", "", limit=9) == index.list_folders("", "", limit=9) == []


@given(
    st.sampled_from(ActVerb),
    st.integers(0, 4 * PART),
    st.sampled_from([PART, 0, 1, PART - 1, PART + 1, 2**32 - 1]),
    st.lists(st.integers(0, 2**63 - 1)),
)
def test_an_act_is_read_as_it_was_written_or_not_at_all(verb: ActVerb, size: int, part: int, places: list[int]) -> None:
    """It has as many places as parts of the one length; one octet more or less is none."""
    act = Act(verb=verb, mark=_mark(1), of=_mark(2), size=size, part=part, places=pack_places(places))
    raw = write_act(act)
    fits = part == PART and len(places) == -(-size // part)
    assert read_act(raw) == (act if fits else None)
    assert read_act(raw[:-1]) is read_act(raw + b"\0") is None
    if fits and places:
        assert [act.place(number) for number in range(len(places))] == places
        assert sum(act.length(number) for number in range(len(places))) == size


def test_no_more_names_are_held_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever fills a topic does not fill the memory of those who read it."""
    monkeypatch.setattr(kafka_index, "MAX_NAMES", 2)
    index = Index()
    for name in (b"a", b"b"):
        index.hear(name, write_act(Act(verb=ActVerb.NEW, mark=_mark(1))), AT)
    index.hear(b"a", write_act(Act(verb=ActVerb.PUT, mark=_mark(2))), AT)
    with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"):
        index.hear(b"c", write_act(Act(verb=ActVerb.NEW, mark=_mark(3))), AT)
