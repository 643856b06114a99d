"""`maia demo avs`: two cameras, three people, policies that change while it runs, and the picture of it in the docs."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from maia.testing import Command

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "demo-avs.png"
FULL, SMALL = [96, 128, 3], [48, 64, 1]
SEEN = {
    "guard at the door": [FULL] * 4,
    "guard at the yard": [FULL] * 4,
    "shop at the door": [SMALL] * 4,
    "shop at the yard": [SMALL] * 4,
    "guest at the door": [FULL, FULL, FULL, "XML_DENIED"],
    "guest at the yard": [FULL, FULL, FULL, "XML_DENIED"],
}


def pixels(path: Path) -> np.ndarray:
    """Read a PNG of one piece, in colours and without filters."""
    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    lines = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + length]), np.uint8)
    return lines.reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)


@pytest.mark.requirement("19.10")
@pytest.mark.requirement("19.16")
def test_each_person_sees_what_the_policies_of_the_moment_leave(tmp_path: Path) -> None:
    """One event a frame, one verification a person; who is denied is closed; the picture is the one of the docs."""
    sheet = tmp_path / "seen.png"
    told = Command(tmp_path / "nowhere").do("demo", "avs", "--sheet", str(sheet))
    assert {place: list(row.values()) for place, row in told["seen"].items()} == SEEN
    assert told["published"] == {"door": 4, "yard": 4}
    assert set(told["verifications"].values()) == {1}
    assert np.array_equal(pixels(sheet), pixels(PICTURE))
    assert not Path(told["home"]).exists()


def test_a_sheet_is_what_avs_draws(tmp_path: Path) -> None:
    """Other scenarios draw none."""
    assert Command(tmp_path).refused("demo", "trust", "--sheet", str(tmp_path / "x.png")) == (2, "USAGE")
