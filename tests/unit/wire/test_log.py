"""What a served log says: names that lead nowhere else, and answers with one reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import MaiaError, MalformedError, NotFoundError
from maia.wire import (
    ABSENT,
    LOG_RECORDS,
    UNFIT,
    folder_shape,
    is_log_object,
    read_part,
    read_records,
    split_record,
    write_part,
    write_records,
)

LANE = f"type={'ab' * 32}/origin={'cd' * 32}"
NOTICE = f"_lanes/rekey/{'ab' * 32}/origin={'cd' * 32}"
NAMES = {
    f"{LANE}/head": True,
    f"{LANE}/000000000007.record": True,
    f"{LANE}/date=2026-06-01/ab-12.parquet": True,
    f"{LANE}/date=2026-06-01/ab-12.segments": True,
    f"{NOTICE}/head": True,
    f"{NOTICE}/000000000007.record": True,
    f"_evidence/{'ab' * 32}": True,
    f"{LANE}/names": False,
    f"{LANE}/../head": False,
    f"{LANE}/7.record": False,
    f"{LANE}/head\n": False,
    f"/{LANE}/head": False,
    "../maia.toml": False,
    "_evidence/..": False,
    "": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_objects(name: str) -> None:
    """Objects of lanes and evidence have names, and nothing else."""
    assert is_log_object(name) is NAMES[name]


def test_folders_have_shapes() -> None:
    """Lanes are found in three kinds of folders."""
    for folder, name in (("", f"type={'ab' * 32}"), ("_lanes/rekey", "ab" * 32), (LANE[:69], f"origin={'cd' * 32}")):
        shape = folder_shape(folder)
        assert shape is not None
        assert shape.fullmatch(name)
        assert not shape.fullmatch(f"{name}/..")
    assert [folder_shape(folder) for folder in ("_lanes", "_evidence", "..", LANE)] == [None] * 4


def test_answers_are_read_as_they_were_written() -> None:
    """Parts with the size of the whole, records in order, and what is not there."""
    assert read_part(write_part(10, b"abc")) == (10, b"abc")
    assert read_records(write_records([b"a", b"b"])) == (b"a", b"b")
    assert split_record(f"{LANE}/000000000007.record") == (LANE, 7)
    assert split_record(f"{LANE}/head") is None
    for read in (read_part, read_records):
        with pytest.raises(NotFoundError, match="NO_OBJECT"):
            read(ABSENT)
        with pytest.raises(MalformedError, match="OBJECT_UNFIT"):
            read(UNFIT)
    with pytest.raises(MalformedError, match="LOG_ANSWER"):
        read_records(write_records([b"x"] * (LOG_RECORDS + 1)))


@given(st.binary(max_size=100))
def test_any_octets_are_an_answer_or_refused(data: bytes) -> None:
    """Nothing but Maia's errors."""
    for read in (read_part, read_records):
        try:
            read(data)
        except MaiaError:
            continue
