"""The laws of version translation, on single events and on batches."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from maia.events import (
    Attribute,
    AttributeType,
    EventType,
    Publication,
    TypeName,
    Uid,
    Value,
    Version,
    batch_from_transit,
    batch_to_transit,
    check_batch,
    from_transit,
    to_arrow_schema,
    to_transit,
    translate,
    translate_batch,
)
from maia.principals import KeySigner

OWNER = KeySigner(bytes([1]) * 32).public_key
# Over all versions a uid has one type; here the type follows from the uid, so every version agrees.
KINDS = list(AttributeType)
UIDS = [Uid(str(number)) for number in range(16)]
NAMES = ["a", "b", "license-plate", "numberplate", "é", "x y", "timestamp", "0"]
VALUES: dict[AttributeType, st.SearchStrategy[Value]] = {
    AttributeType.INTEGER: st.integers(-(2**63), 2**63 - 1),
    AttributeType.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    AttributeType.DECIMAL: st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-18")),
    AttributeType.STRING: st.text(max_size=8),
    AttributeType.BOOLEAN: st.booleans(),
    AttributeType.DATE: st.dates(date(1900, 1, 1), date(2200, 1, 1)),
    AttributeType.TIMESTAMP: st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    AttributeType.BINARY: st.binary(max_size=8),
}


@st.composite
def versions(draw: st.DrawFn, number: str) -> EventType:
    """Draw a version: some uids in some order, each under some name."""
    uids = draw(st.lists(st.sampled_from(UIDS), unique=True, max_size=6))
    names = draw(st.permutations(NAMES))[: len(uids)]
    attributes = tuple(
        Attribute(name=name, uid=uid, type=KINDS[int(uid) % len(KINDS)]) for name, uid in zip(names, uids, strict=True)
    )
    return EventType(name=TypeName(OWNER, "x.T", Version(number)), attributes=attributes)


@st.composite
def rows_of(draw: st.DrawFn, version: EventType) -> list[dict[str, Value]]:
    """Draw events of a version; some attributes null, some left out."""
    row = st.fixed_dictionaries({}, optional={item.name: st.none() | VALUES[item.type] for item in version.attributes})
    return draw(st.lists(row, max_size=5))


def _by_uid(version: EventType, row: dict[str, Value]) -> dict[str, Value]:
    """Restate an event by uid, in the plainest way there is: the oracle of everything below."""
    return {item.uid: row.get(item.name) for item in version.attributes}


def _seen(version: EventType, by_uid: dict[str, Value]) -> dict[str, Value]:
    return {item.name: by_uid.get(item.uid) for item in version.attributes}


def _batch(version: EventType, rows: list[dict[str, Value]]) -> pa.RecordBatch:
    whole = [{item.name: row.get(item.name) for item in version.attributes} for row in rows]
    if not version.attributes:
        return pa.RecordBatch.from_struct_array(pa.nulls(len(rows), pa.struct([])))
    return check_batch(version, pa.RecordBatch.from_pylist(whole, schema=to_arrow_schema(version)))


def _checked(version: EventType, rows: list[dict[str, Value]]) -> pa.RecordBatch:
    return check_batch(version, _batch(version, rows))


@given(st.data())
def test_no_value_ever_appears_under_another_uid(data: st.DataObject) -> None:
    """What a subscriber sees under a uid is what the publisher said under that uid, or null."""
    source, target = data.draw(versions("1")), data.draw(versions("2"))
    for row in data.draw(rows_of(source)):
        said = _by_uid(source, row)
        seen = translate(Publication(source, row), target)
        assert dict(seen.values) == _seen(target, said)


@given(st.data())
def test_batches_and_single_events_are_translated_alike(data: st.DataObject) -> None:
    """Row for row, the vectorised translation equals the one on single events."""
    source, target = data.draw(versions("1")), data.draw(versions("2"))
    rows = data.draw(rows_of(source))
    single = [dict(translate(Publication(source, row), target).values) for row in rows]
    batch = translate_batch(source, target, _checked(source, rows))
    assert batch.num_rows == len(rows)
    assert batch.to_pylist() == single
    assert batch.schema.equals(to_arrow_schema(target), check_metadata=True)


@given(st.data())
def test_translation_to_the_own_version_changes_nothing(data: st.DataObject) -> None:
    """Publisher and subscriber of one version see the same event."""
    version = data.draw(versions("1"))
    rows = data.draw(rows_of(version))
    batch = _checked(version, rows)
    assert translate_batch(version, version, batch).equals(batch)
    for row in rows:
        published = Publication(version, row)
        assert translate(published, version) == published


@given(st.data())
def test_two_steps_lose_only_what_the_middle_lacks(data: st.DataObject) -> None:
    """Going over a middle version equals going directly, but for attributes that the middle does not have."""
    source, middle, target = (data.draw(versions(number)) for number in ("1", "2", "3"))
    rows = data.draw(rows_of(source))
    for row in rows:
        published = Publication(source, row)
        twice = translate(translate(published, middle), target).values
        once = translate(published, target).values
        for item in target.attributes:
            assert twice[item.name] == (once[item.name] if item.uid in middle.uids else None)
    batch = _checked(source, rows)
    over = translate_batch(middle, target, translate_batch(source, middle, batch))
    assert over.to_pylist() == [
        dict(translate(translate(Publication(source, row), middle), target).values) for row in rows
    ]


@given(st.data())
def test_transit_says_neither_names_nor_version(data: st.DataObject) -> None:
    """Two versions with equal uids give equal transit events, whatever their names and numbers."""
    source = data.draw(versions("1"))
    renamed = EventType(
        name=TypeName(OWNER, "x.T", Version("9")),
        attributes=tuple(Attribute(name=f"n{n}", uid=a.uid, type=a.type) for n, a in enumerate(source.attributes)),
    )
    rows = data.draw(rows_of(source))
    other_rows = [dict(translate(Publication(source, row), renamed).values) for row in rows]
    for row, other in zip(rows, other_rows, strict=True):
        assert to_transit(Publication(source, row)) == to_transit(Publication(renamed, other))
    one = batch_to_transit(source, _checked(source, rows))
    two = batch_to_transit(renamed, _checked(renamed, other_rows))
    assert one.equals(two, check_metadata=True)


@given(st.data())
def test_subscriber_needs_no_version_but_its_own(data: st.DataObject) -> None:
    """From the transit form alone, single and batch, the subscriber's version sees the oracle's answer."""
    source, target = data.draw(versions("1")), data.draw(versions("2"))
    rows = data.draw(rows_of(source))
    transit = batch_to_transit(source, _checked(source, rows))
    expected = [_seen(target, _by_uid(source, row)) for row in rows]
    assert batch_from_transit(target, transit).to_pylist() == expected
    events = [to_transit(Publication(source, row)) for row in rows]
    assert [dict(from_transit(event, target).values) for event in events] == expected
