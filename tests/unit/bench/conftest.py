"""Lets the tests of this folder share `sealing_world` with the acceptance tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "acceptance"))
