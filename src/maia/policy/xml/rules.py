"""What an XML policy says, as values: rules on images, on access to streams, and on the installing of filters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import time
from enum import StrEnum

ANYONE = "*"
"""Stands for every user, camera, filter or channel; alone, never as a part of a name."""


class Effect(StrEnum):
    """Whether a rule gives or takes."""

    ALLOW = "allow"
    DENY = "deny"


class Region(StrEnum):
    """A part of a frame, in the coordinates of its source."""

    WHOLE = "whole"
    UPPER_HALF = "upper-half"
    LOWER_HALF = "lower-half"
    LEFT_HALF = "left-half"
    RIGHT_HALF = "right-half"


class ForcedKind(StrEnum):
    """What a handler that a policy forces does to a frame."""

    BLUR = "blur"
    GREYSCALE = "greyscale"
    HALF_SIZE = "half-size"
    MIRROR = "mirror"
    EDGES = "edges"
    FRAME_RATE = "frame-rate"


@dataclass(frozen=True, slots=True)
class ForcedHandler:
    """A handler that stands before a user's own ones, whatever these are.

    Attributes:
        kind: What it does.
        region: Where, for a blur.
        keep_one_in: Of how many frames one is kept, for a frame rate.
    """

    kind: ForcedKind
    region: Region | None = None
    keep_one_in: int | None = None

    def to_json(self) -> dict[str, object]:
        """Write it as an object: its name, and what it is told."""
        told: dict[str, object] = {"handler": self.kind.value}
        if self.region is not None:
            told["region"] = self.region.value
        if self.keep_one_in is not None:
            told["keep_one_in"] = self.keep_one_in
        return told

    def __str__(self) -> str:
        """Say it in a few words."""
        words = [self.kind.value]
        if self.region is not None:
            words.append(self.region.value)
        if self.keep_one_in is not None:
            words.append(f"one in {self.keep_one_in}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Between:
    """Hours of the day: ``start`` is inside, ``end`` is not.

    Hours that end before they start run over midnight; equal ends are the whole day.

    >>> night = Between(time(22), time(6))
    >>> [night.holds(time(hour, minute)) for hour, minute in ((21, 59), (22, 0), (0, 0), (5, 59), (6, 0))]
    [False, True, True, True, False]
    """

    start: time
    end: time

    def holds(self, at: time) -> bool:
        """Tell whether a time of the day lies in the hours."""
        if self.start < self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRule:
    """Frames of a camera reach a user only through these handlers."""

    camera: str
    user: str
    handlers: tuple[ForcedHandler, ...]
    line: int

    def concerns(self, names: Collection[str], camera: str) -> bool:
        """Tell whether it speaks of this client and this camera."""
        return is_named(self.user, names) and self.camera in (ANYONE, camera)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """A user may, or may not, see a camera, always or at any of some hours."""

    user: str
    camera: str
    effect: Effect
    between: tuple[Between, ...]
    line: int

    def concerns(self, names: Collection[str], camera: str | None, at: time) -> bool:
        """Tell whether it speaks of this client and this camera, at this time; ``None`` asks for some camera."""
        placed = camera is None or self.camera in (ANYONE, camera)
        held = not self.between or any(hours.holds(at) for hours in self.between)
        return placed and is_named(self.user, names) and held


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRule:
    """A user may, or may not, install a filter on a channel.

    Attributes:
        user: Whom it concerns.
        channel: Where.
        filters: Which filters it speaks of; ``*`` is any.
        effect: What it says of them.
        only: Whether it denies all others in place of saying something of these.
        line: Where it stands.
    """

    user: str
    channel: str
    filters: frozenset[str]
    effect: Effect
    only: bool
    line: int

    def denies(self, names: Collection[str], filter_: str, channel: str) -> bool:
        """Tell whether it forbids this client this filter on this channel."""
        if not is_named(self.user, names) or self.channel not in (ANYONE, channel):
            return False
        if self.only:
            return filter_ not in self.filters
        return self.effect is Effect.DENY and bool(self.filters & {ANYONE, filter_})


XmlRule = ImageRule | AccessRule | InstallRule


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlPolicy:
    """The rules of one text, in its order."""

    rules: tuple[XmlRule, ...]


def is_named(user: str, names: Collection[str]) -> bool:
    """Tell whether a rule's user is one of the names of a client, or anyone."""
    return user == ANYONE or user in names
