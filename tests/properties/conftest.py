"""Lets the property tests of this folder share their generators (``strategies_*.py``)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
