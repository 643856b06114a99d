"""A file that `maia subscribe --follow --out` fills holds every micro-batch once."""

from __future__ import annotations

from pathlib import Path

import pytest

from maia.errors import EncodingError
from maia.spark import OnceFile


def test_each_batch_stands_there_once_whatever_is_repeated_or_torn(tmp_path: Path) -> None:
    """A batch that was written is not written again; half a batch is cut off; what was there before stays."""
    path, place = tmp_path / "out", tmp_path / "place"
    path.write_text("before\n")
    file = OnceFile(path, place)
    assert file.append(iter([b"a\n", b"b\n"]), 0) == 2
    assert file.append(iter([b"a\n", b"b\n"]), 0) == 0
    file.close()
    with path.open("a") as torn:
        torn.write("c")  # killed before the batch was whole
    file = OnceFile(path, place)
    assert file.append(iter([b"c\n"]), 1) == 1
    file.close()
    assert path.read_text() == "before\na\nb\nc\n"


def test_a_place_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Nothing is repaired by guessing."""
    (tmp_path / "maia-place.json").write_text("?")
    with pytest.raises(EncodingError, match="CHECKPOINT_DAMAGED"):
        OnceFile(tmp_path / "out", tmp_path)
