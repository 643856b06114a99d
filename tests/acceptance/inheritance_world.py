"""A parent owned by pito, a child owned by met, and clients with rights on the one, the other, or both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maia.testing import Command

PARENT, CHILD = "TestType1", "Pursuit"
UNIT = "7"  # the uid of what the child adds
ROW = {"plate": "AE05 XYZ", "place": "Euston", "unit": "Sierra 1"}
SEEN = {"plate": "AE05 XYZ", "place": "Euston"}
RIGHTS = (
    ("broker", (PARENT, CHILD), "publish"), ("broker", (PARENT, CHILD), "subscribe"),
    ("camera", (PARENT, CHILD), "publish"), ("patrol", (CHILD,), "publish"), ("reader", (PARENT, CHILD), "subscribe"),
    ("parents", (PARENT,), "subscribe"), ("children", (CHILD,), "subscribe"),
)  # fmt: skip


def make_world(folder: Path, *, mode: str = "attribute") -> Command:
    """Make a home with both types, and give the rights."""
    made = Command(folder)
    made.do("domain", "init", str(made.home))
    made.keys("pito", "met", "camera", "patrol", "reader", "parents", "children")
    attributes = ("--attribute", "plate:string:1", "--attribute", "place:string:2")
    made.do("type", "define", f"pito/{PARENT}@1", "--encryption", mode, *attributes)
    made.grant("--from", "pito", "--to", "met", "--type", "pito/Test*", "--action", "extend")
    made.do("type", "define", f"met/{CHILD}@1", "--extends", f"pito/{PARENT}@1", "--attribute", f"unit:string:{UNIT}")
    for who, kinds, action in RIGHTS:
        for kind in kinds:
            give(made, who, kind, action)
    return made


def give(home: Command, who: str, kind: str, action: str, *more: str) -> str:
    """Let the owner of a type give a right on all its versions."""
    owner = "pito" if kind == PARENT else "met"
    return home.grant("--from", owner, "--to", who, "--type", f"{owner}/{kind}", "--action", action, *more)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows, whatever they hold."""
    return sorted(rows, key=lambda row: str(sorted(row.items(), key=str)))
