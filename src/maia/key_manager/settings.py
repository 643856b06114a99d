"""How a key manager works: its periods and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from maia.encryption import DEFAULT_CAP
from maia.errors import UsageError
from maia.log import OWN_RHYTHM


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    """How a key manager works.

    Attributes:
        period: How long a key may be current; ``None`` for ever.
        lead: How long before its start an epoch is announced.
        window: How old, or how far ahead, a broker's request may be.
        cap: How many blocks all brokers together seal in one epoch.
        max_use_rate: How many blocks a second one broker can have sealed; a report of more is not believed.
        max_members: The most brokers in one group.
        history: How long records of epochs and changes are kept.
        rhythm: Within which time the newest record of each group is said again in the log; brokers that hear nothing
            for longer, and their own grace, seal nothing.
    """

    period: timedelta | None = timedelta(days=1)
    lead: timedelta = timedelta(seconds=5)
    window: timedelta = timedelta(seconds=60)
    cap: int = DEFAULT_CAP
    max_use_rate: int = 1_000_000
    max_members: int = 16_384
    history: timedelta = timedelta(days=400)
    rhythm: timedelta = OWN_RHYTHM

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        if (self.period is not None and self.period <= timedelta(0)) or self.lead < timedelta(0):
            raise UsageError("a refresh period is positive and a lead is not negative", code="REFRESH_PERIOD")
        if self.period is not None and self.lead >= self.period:
            raise UsageError("an epoch is announced within the one before", code="REFRESH_PERIOD")
        if min(self.cap, self.max_members, self.max_use_rate) < 1 or min(
            self.window, self.history, self.rhythm
        ) <= timedelta(0):
            raise UsageError("limits of a key manager are positive", code="KEY_SETTINGS")


DEFAULT_SETTINGS = KeySettings()
SERVED_RHYTHM = timedelta(seconds=60)
"""The rhythm of a key manager that runs as a service."""
