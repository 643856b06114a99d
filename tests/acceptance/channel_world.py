"""A home with cameras, for the tests of channels: who publishes, who operates, and who sees."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import maia
from maia.testing import Command, publish_here

POLICY = '<policies xmlns="urn:maia:policy:1">{}</policies>\n'
EVERYBODY = '<access user="*" camera="*" effect="allow"/>'
ATTRIBUTES = ("number:integer", "height:integer", "width:integer", "channels:integer", "pixels:binary")


class CameraWorld:
    """Cameras that publish into a log, an operator that opens their streams, and users."""

    def __init__(self, home: Path, *cameras: str, users: Sequence[str] = ()) -> None:
        """Make the home; every user may have every stream routed to it."""
        self.command = Command(home)
        self.home = home
        self.command.do("domain", "init", str(home), "--key")
        self.command.keys("met", "camera", "operator", *users)
        for name in cameras:
            words = [word for item in ATTRIBUTES for word in ("--attribute", item)]
            self.command.do("type", "define", f"met/{name}@1", *words)
            for who, action in (("broker", "publish"), ("camera", "publish"), ("operator", "subscribe")):
                self.grant(who, name, action)
            for who in users:
                self.grant(who, name, "route")

    def grant(self, who: str, camera: str, action: str, *more: str) -> str:
        """Give a right."""
        return self.command.grant("--from", "met", "--to", who, "--type", f"met/{camera}", "--action", action, *more)

    def policy(self, *rules: str, name: str = "avs") -> Path:
        """Replace a policy of the home."""
        path = self.home / "policy" / f"{name}.xml"
        path.parent.mkdir(exist_ok=True)
        made = path.with_suffix(".new")
        made.write_text(POLICY.format("".join(rules)), "utf-8")
        return made.replace(path)

    def publish(self, camera: str, *images: np.ndarray, first: int = 0, at: datetime | None = None) -> int:
        """Let the camera publish frames, in one commit; count the events."""
        return self.publish_rows(camera, *(self.row(first + place, image) for place, image in enumerate(images)), at=at)

    def publish_rows(self, camera: str, *rows: dict[str, object], at: datetime | None = None) -> int:
        """Let the camera publish rows, in one commit; count the events."""
        with maia.open(self.home) as domain:
            return publish_here(domain.home, f"met/{camera}", rows, as_="camera", at=at or datetime.now(UTC))

    def delivered(self, camera: str, *users: str, more: Sequence[str] = ()) -> tuple[dict[str, Any], Path]:
        """Hand the stream to users by the command; give what was told, and where the frames are."""
        out = self.home / "seen"
        words = [word for who in users for word in ("--as", who)]
        told = self.command.do("handler", "deliver", *self.deliver(camera), *words, *more, "--out", str(out))
        return told, out

    @staticmethod
    def row(number: int, image: np.ndarray) -> dict[str, object]:
        """Write an image as the row of an event."""
        height, width, channels = image.shape
        pixels = np.ascontiguousarray(image).tobytes()
        return {"number": number, "height": height, "width": width, "channels": channels, "pixels": pixels}

    @staticmethod
    def deliver(camera: str) -> tuple[str, ...]:
        """Give the words that name a stream and who opens it."""
        return ("--type", f"met/{camera}", "--through", "operator")


class Screens:
    """What sinks were handed, by client and number."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self.seen: dict[str, dict[int, np.ndarray]] = {}

    def __call__(self, sink: Any, frames: Sequence[Any]) -> None:
        """Take what a sink is handed."""
        for frame in frames:
            image = np.frombuffer(frame.pixels, np.uint8).reshape(frame.height, frame.width, frame.channels)
            self.seen.setdefault(sink.client.name, {})[frame.number] = image


class SetClock:
    """A clock of tomorrow that somebody sets."""

    def __init__(self, hour: int, minute: int) -> None:
        """Begin at a time of the day."""
        self.at = datetime.now(UTC)
        self.set(hour, minute)
        self.at += timedelta(days=1)

    def set(self, hour: int, minute: int) -> None:
        """Set it on the same day."""
        self.at = self.at.replace(hour=hour, minute=minute, second=0, microsecond=0)

    def __call__(self) -> datetime:
        """Tell the time."""
        return self.at
