"""Scenarios played in a process of their own, for machines; and the pictures that the documentation has of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def play(scenario: str, *options: str) -> dict[str, Any]:
    """Play a scenario with `maia demo SCENARIO --json`, which leaves nothing behind."""
    program = "from maia.cli import main; main()"
    command = [sys.executable, "-c", program, "-q", "demo", scenario, "--json", *options]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=580)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    assert not Path(found["home"]).exists()
    return found


def check_picture(pictures: ModuleType, scenario: str, facts: dict[str, Any]) -> None:
    """The picture in the documentation is what `scripts/pictures.py` draws of what was just printed."""
    committed = (IMAGES / f"demo-{scenario}.svg").read_text("utf-8")
    assert committed == pictures.draw(scenario, facts["views"]), "run `python scripts/pictures.py`"
