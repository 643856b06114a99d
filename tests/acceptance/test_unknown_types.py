"""A sink that does not know a type obtains its definition from the sender, verified, and reads."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

import maia
from maia.errors import MaiaError
from maia.testing import TYPE_NAME, TYPE_VERSION, Command, numberplate_homes, publish_here, read_here


@pytest.mark.requirement("19.18")
def test_a_sink_that_does_not_know_a_type_obtains_it_and_decodes_the_first_event(tmp_path: Path) -> None:
    """The Met has no definition of what is published: it fetches and verifies the sender's, and reads."""
    homes = numberplate_homes(tmp_path)
    row = {"numberplate": "AE05 XYZ", "timestamp": datetime.now(UTC).replace(microsecond=0), "location": "Victoria"}
    with maia.open(homes.ccs) as sender:
        publish_here(sender.home, TYPE_NAME, [row], as_="CCTV", at=datetime.now(UTC))
    shutil.rmtree(homes.met / "types")
    met, name = Command(homes.met), f"PITO/{TYPE_NAME}@{TYPE_VERSION}"

    def first() -> dict[str, object]:
        with maia.open(homes.met) as domain:
            return read_here(domain.home, name, as_="Smith")[0]

    with pytest.raises(MaiaError) as caught:
        first()
    assert caught.value.code == "TYPE_NOT_FOUND"
    forged = tmp_path / "forged"
    shutil.copytree(homes.ccs / "types", forged)
    [path] = forged.rglob("*.type")
    path.write_bytes(path.read_bytes().replace(b"numberplate", b"numberplaze"))
    assert met.refused("type", "fetch", name, "--from", str(forged)) == (5, "TYPE_NOT_FOUND"), "none that verifies"
    with pytest.raises(MaiaError):
        first()
    assert met.do("type", "fetch", name, "--from", str(homes.ccs / "types"))["verified"]
    assert first()["numberplate"] == "AE05 XYZ"
