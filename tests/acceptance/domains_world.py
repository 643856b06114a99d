"""Homes of several brokers over one log: each a copy of the first one, with a broker of its own."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import maia
from maia.errors import MaiaError
from maia.testing import Command, publish_here, read_here

TYPE = "pito/Sighting"
ROW = {"plate": "AE05 XYZ", "place": "Victoria"}


def police(root: Path) -> Command:
    """Make PITO's type, plain so that no missing key hides what a right shows, and the Met that may read it."""
    met = Command(root / "met")
    met.do("domain", "init", str(met.home), "--name", "met", "--log", str(root / "log"))
    met.keys("pito", "met", "ccs", "camera", "smith", "jones")
    attributes = ("--attribute", "plate:string:1", "--attribute", "place:string:2")
    met.do("type", "define", f"{TYPE}@1", *attributes, "--encryption", "plain")
    for domain in ("met", "ccs"):
        met.grant("--from", "pito", "--to", domain, "--type", TYPE, "--action", "publish,subscribe", "--delegate")
    met.grant("--from", "met", "--to", "camera", "--type", TYPE, "--action", "publish")
    met.grant("--from", "met", "--to", "smith", "--type", TYPE, "--action", "subscribe")
    met.grant("--from", "met", "--to", "jones", "--type", TYPE, "--action", "subscribe", "--attribute", "plate")
    return met


def another(met: Command, name: str) -> Command:
    """Make a home with a broker of its own, all else as in the first, clients' keys and certificates included."""
    made = Command(met.home.with_name(name))
    shutil.copytree(met.home, made.home)
    for file in (made.home / "keys").glob("broker.*"):
        file.unlink()
    made.keys("broker")
    return made


def publish(home: Command, who: str = "camera") -> None:
    """Let a client publish one sighting through the broker of a home."""
    publish_here(maia.open(home.home).home, "Sighting", [ROW], as_=who, at=datetime.now(UTC))


def seen(home: Command, who: str = "smith") -> list[tuple[object, object]]:
    """List what a client sees through the broker of a home."""
    return [(row["plate"], row["place"]) for row in read_here(maia.open(home.home).home, "Sighting", as_=who)]


def refusal(home: Command, who: str = "smith", *, publishing: bool = False) -> str:
    """Give the code with which the broker of a home refuses a client."""
    try:
        publish(home, who) if publishing else seen(home, who)
    except MaiaError as error:
        return error.code
    return ""
