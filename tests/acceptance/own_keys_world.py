"""A home that owns a type and manages its keys itself, in a time that passes only when it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import maia
from maia.encryption import Parcel
from maia.testing import Command, follow, publish_here, read_here, sealed_here

TYPE = "domain/Sighting"


class OwnKeys:
    """PITO, its camera and its reader. The world begins some hours ago; what is read is read now."""

    def __init__(self, path: Path, *settings: str, ago_hours: int = 6) -> None:
        """Make the home, with lines of its own in maia.toml."""
        self.now = datetime.now(UTC) - timedelta(hours=ago_hours)
        self._begun = (self.now - timedelta(minutes=1)).isoformat()
        self.command = Command(path)
        self.command.do("domain", "init", str(path), "--name", "pito", "--key")
        file = path / "maia.toml"
        kept = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("grace")]
        file.write_text("\n".join([kept[0], *settings, *kept[1:]]) + "\n", "utf-8")
        self.command.keys("camera", "reader")
        self.command.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
        self.command.do("type", "define", f"{TYPE}@1", "--attribute", "plate:string:1")
        for who, actions in (("broker", "publish,subscribe"), ("camera", "publish"), ("reader", "subscribe")):
            self.command.grant("--from", "domain", "--to", who, "--type", TYPE, *self.right(actions))

    @property
    def home(self) -> Any:
        """The home as it is now."""
        return maia.open(self.command.home).home

    def right(self, actions: str) -> tuple[str, ...]:
        """Give the options of a right that holds since the world began."""
        return ("--action", actions, "--irrevocable", "--not-before", self._begun)

    def publish(self, *plates: str, stamped: datetime | None = None) -> None:
        """Let the camera publish one parcel now, or stamped with another time."""
        rows = [{"plate": plate} for plate in plates]
        publish_here(self.home, "Sighting", rows, as_="camera", at=self.now, stamped=stamped)

    def wait(self, **span: float) -> None:
        """Let time pass for the home and its key manager."""
        self.now += timedelta(**span)
        follow(self.home, at=self.now)

    def refresh(self) -> None:
        """Let the owner change the key."""
        self.command.do("keys", "refresh", "Sighting/plate")

    def read(self) -> list[Any]:
        """Read as the reader, now."""
        return [row["plate"] for row in read_here(self.home, "Sighting", as_="reader")]

    def epochs(self) -> list[dict[str, Any]]:
        """List the epochs of the key, with their causes."""
        found: list[dict[str, Any]] = self.command.do("keys", "history", "Sighting/plate")["epochs"]
        return found

    def refused(self) -> set[str]:
        """Give the codes of what the reader was refused."""
        return {row["reason"] for row in self.command.do("audit", "--kind", "refuse")["rows"]}

    def parcels(self) -> list[Parcel]:
        """Give the parcels of the log, by their stamps."""
        return sealed_here(self.home)
