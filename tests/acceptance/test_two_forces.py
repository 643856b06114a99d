"""Two police forces with homes of their own: one follows a car before the other knows that it was stolen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from peer_world import home_of

import maia
from maia.errors import MaiaError
from maia.testing import Command

GIVE = "detective |- subscribe Stolen(plate, place)"
CAR, OTHER = "AE05 XYZ", "BX51 ABC"


@pytest.fixture
def forces(tmp_path: Path) -> tuple[Command, Command]:
    """Let force P2, which reports stolen cars, admit the detectives of force P1: two homes that share a log."""
    second = home_of(tmp_path / "p2", "P2", "--log", str(tmp_path / "log"))
    fields = ("plate:string:1", "place:string:2", "witness:string:3")
    second.do("type", "define", "domain/Stolen@1", *(flag for text in fields for flag in ("--attribute", text)))
    second.keys("officer")
    second.grant("--from", "domain", "--to", "officer", "--type", "domain/Stolen", "--action", "publish")
    first = home_of(tmp_path / "p1", "P1")
    first.keys("detective", "constable")
    files = [tmp_path / "peer.maia", tmp_path / "answer.maia"]
    files[0].write_text(str(second.do("domain", "invite-peer", "--for", "P1", "--give", GIVE)["invitation"]), "utf-8")
    said = first.do("domain", "connect", str(files[0]), "--reader", "detective", "--yes")
    files[1].write_text(str(said["answer"]), "utf-8")
    second.do("domain", "connect", str(files[1]), "--yes")
    return first, second


@pytest.mark.requirement("24.19")
def test_a_detective_is_told_once_of_the_car_and_not_of_the_witness(
    spark: Any, forces: tuple[Command, Command], tmp_path: Path
) -> None:
    """He asks before anybody saw the car; another force reports it later: one notification, the witness null."""
    first, second = forces
    told: list[dict[str, Any]] = []
    reader = maia.open(first.home).client("detective")
    stream = reader.subscribe("Stolen", where=f"plate = '{CAR}'").writeStream
    stream = stream.foreachBatch(lambda batch, _: told.extend(row.asDict() for row in batch.collect()))
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        assert told == []
        rows = {"plate": [CAR, OTHER], "place": ["Kent", "Kent"], "witness": ["Mrs Brown", "Mr Green"]}
        maia.open(second.home).client("officer").publish(pa.table(rows), "Stolen")
        query.processAllAvailable()
        query.processAllAvailable()
    finally:
        query.stop()
    assert told == [{"plate": CAR, "place": "Kent", "witness": None}]
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        reader.read("Stolen", where="witness = 'Mrs Brown'")
    with pytest.raises(MaiaError, match="NO_EVIDENCE"):
        maia.open(first.home).client("constable").read("Stolen")
