"""Segments are written, kept and swept in the log alone, whatever others put in the way of their owner."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from network import Network, publish_here, sightings

from maia.domain import Domain
from maia.encryption import Parcel
from maia.errors import EncodingError
from maia.log import LogDirectory, sweep
from maia.log.segment_writer import PartitionWriter

ROW: dict[str, object] = {"type_id": b"t", "origin": b"o", "stamp": 1, "events": 1, "evidence": b"e"}


def lane_folder(network: Network) -> Path:
    """Publish once, so that there is a lane; give its folder."""
    publish_here(network, "first", [sightings(["P0"])])
    [folder] = network.log.path.glob("type=*/origin=*")
    return folder


def put_file(path: Path, _outside: Path) -> None:
    """Put a file where a folder belongs."""
    path.write_bytes(b"")


def put_link(path: Path, outside: Path) -> None:
    """Put a link where a folder belongs."""
    path.symlink_to(outside)


@pytest.mark.threat("T27")
@pytest.mark.parametrize("put", [put_file, put_link])
def test_what_stands_in_the_place_of_a_day_keeps_nobody_from_publishing(
    network: Network, tmp_path: Path, put: Callable[[Path, Path], None]
) -> None:
    """The segment lies in the log, can be read there, and nothing was written elsewhere."""
    folder, outside = lane_folder(network), tmp_path / "outside"
    outside.mkdir()
    for days in range(-1, 2):
        day = folder / f"date={(datetime.now(UTC) + timedelta(days=days)).date().isoformat()}"
        if day.exists():
            day.rename(folder / f".{day.name}")
        put(day, outside)
    publish_here(network, "second", [sightings(["P1", "P2"])])
    log = LogDirectory(network.log.path)
    second = list(log.commits())[-1]
    assert [logged.events for file in second.files for logged in log.parcels(second.lane, file)] == [2]
    assert list(outside.iterdir()) == []


@pytest.mark.threat("T27")
def test_sweeping_removes_nothing_outside_of_the_log(network: Network, tmp_path: Path) -> None:
    """A folder of a lane that is a link to somewhere else is not looked into."""
    folder, outside = lane_folder(network), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"mine")
    (folder / "date=2026-01-01").symlink_to(outside)
    domain = Domain.open(network.ccs)
    assert sweep(domain.log, domain.lanes, keep_newer_than=datetime.now(UTC) + timedelta(days=400)) == []
    assert (outside / "precious.parquet").read_bytes() == b"mine"


@pytest.mark.threat("T27")
def test_a_segment_that_is_exchanged_while_it_is_written_is_not_the_one_that_is_committed(
    tmp_path: Path, sealed: Parcel
) -> None:
    """Writing goes on in the file that was made, and its digest is that of what was written."""
    log, outside = LogDirectory(tmp_path / "log"), tmp_path / "outside"
    outside.write_bytes(b"mine")
    name = "type=ab/origin=cd/date=2026-01-01/x.parquet"
    with PartitionWriter(log.store, name) as writer:
        writer.add(sealed)
        (log.path / name).unlink()
        (log.path / name).symlink_to(outside)
        writer.add(sealed)
        file = writer.close()
    assert file is not None
    assert outside.read_bytes() == b"mine"
    (log.path / name).unlink()
    (log.path / name).write_bytes(bytes(file.size))
    with pytest.raises(EncodingError, match="LOG_FILE_DAMAGED"):
        log.lane(f"{'ab' * 32}/{'cd' * 32}").check(file)


@pytest.fixture
def sealed(network: Network) -> Parcel:
    """Give a parcel."""
    publish_here(network, "one", [sightings(["P0"])])
    commit = next(network.log.commits())
    [parcel] = [logged.parse() for file in commit.files for logged in network.log.parcels(commit.lane, file)]
    return parcel
