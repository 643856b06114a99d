"""Epochs: which key an event is sealed with, chosen by its stamp, and how long an old key still serves.

Rules kept here (rows 16.07, 16.08, choice C40):

- a key is current from its start to the start of the next; the key of an event is the one current at its stamp;
- after a key was replaced it opens for ``grace`` longer, by the time of arrival, and is erased then: nobody can date an
  event back onto an old key;
- a stamp ahead of the arrival by more than ``skew`` is refused, so a bad clock moves nothing.

All times are milliseconds since 1970 UTC.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NewType

from maia.errors import SealError, UsageError

EpochId = NewType("EpochId", int)
"""The start of an epoch; no two epochs of a key group start together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far clocks and routes may stray, in milliseconds."""

    grace: int = 30_000
    skew: int = 5_000

    def __post_init__(self) -> None:
        """Refuse negative times."""
        if min(self.grace, self.skew) < 0:
            raise UsageError("grace and skew are not negative")


def epoch_of(epochs: Sequence[EpochId], stamp: int) -> EpochId:
    """Return the epoch that was current at a stamp.

    Raises:
        SealError: The stamp lies before the first epoch.

    >>> epoch_of([EpochId(100), EpochId(200)], 199)
    100
    """
    index = bisect_right(epochs, stamp)
    if index == 0:
        raise SealError("no key for this stamp", code="NO_KEY")
    return epochs[index - 1]


def select_epoch(epochs: Sequence[EpochId], *, stamp: int, arrives: int, tolerance: Tolerance) -> EpochId:
    """Choose the epoch whose key opens an event, or refuse the event.

    Args:
        epochs: Starts of the known epochs, increasing.
        stamp: When the event was published, by its broker's clock.
        arrives: Now, by our clock.
        tolerance: Grace of old keys and skew of clocks.

    Raises:
        SealError: No key, a stamp from the future, or a key whose grace is over.

    >>> select_epoch([EpochId(100), EpochId(200)], stamp=199, arrives=225, tolerance=Tolerance(grace=30, skew=5))
    100
    >>> select_epoch([EpochId(100), EpochId(200)], stamp=199, arrives=240, tolerance=Tolerance(grace=30, skew=5))
    Traceback (most recent call last):
    ...
    maia.errors.SealError: [KEY_RETIRED] the key of this stamp is no longer kept
    """
    if any(later <= earlier for earlier, later in pairwise(epochs)):
        raise UsageError("epochs start one after the other")
    if stamp > arrives + tolerance.skew:
        raise SealError("a stamp from the future", code="STAMP_AHEAD")
    epoch = epoch_of(epochs, stamp)
    following = bisect_right(epochs, epoch)
    if following < len(epochs) and arrives > epochs[following] + tolerance.grace:
        raise SealError("the key of this stamp is no longer kept", code="KEY_RETIRED")
    return epoch
