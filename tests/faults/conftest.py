"""Lets the tests of this folder share `network` and `killing`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from network import Network, build


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give two homes over one empty log."""
    return build(tmp_path / "net")
