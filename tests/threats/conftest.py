"""What the tests of threats need: worlds that the acceptance tests build."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "acceptance"))
