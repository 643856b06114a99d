"""Epochs: which key an event is sealed with, chosen by its stamp, and how long an old key still serves.

Rules kept here (rows 16.07, 16.08, choice C40):

- a key is current from its start to the start of the next; the key of an event is the one current at its stamp;
- after a key was replaced it opens for ``grace`` longer, by the time of arrival, and is erased then: nobody can date an
  event back onto an old key;
- a publisher that is kept from hearing of a new key seals with the old one while its manager's last word holds
  (``deaf``): what is stamped within that time after the replacement may have the old key, and what is later has not;
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
    """How far clocks, routes and news may stray, in milliseconds.

    Attributes:
        grace: How much later than the last event of its time a parcel may arrive.
        skew: By how much clocks may differ.
        deaf: For how long after a key was replaced a publisher may not know it.
    """

    grace: int = 30_000
    skew: int = 5_000
    deaf: int = 0

    def __post_init__(self) -> None:
        """Refuse negative times."""
        if min(self.grace, self.skew, self.deaf) < 0:
            raise UsageError("grace, skew and deafness are not negative")


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


def replaced_epochs(
    epochs: Sequence[EpochId], *, stamp: int, arrives: int, tolerance: Tolerance
) -> tuple[EpochId, ...]:
    """List the epochs that were over at a stamp and whose end its publisher may not have heard of, newest first.

    >>> deaf = Tolerance(grace=30, deaf=60)
    >>> replaced_epochs([EpochId(100), EpochId(200), EpochId(300)], stamp=310, arrives=320, tolerance=deaf)
    (200,)
    >>> replaced_epochs([EpochId(100), EpochId(200), EpochId(300)], stamp=361, arrives=362, tolerance=deaf)
    ()
    """
    found: list[EpochId] = []
    for position in range(bisect_right(epochs, stamp) - 2, -1, -1):
        ended = epochs[position + 1]
        if stamp > ended + tolerance.deaf or arrives > ended + tolerance.deaf + tolerance.grace:
            break
        found.append(epochs[position])
    return tuple(found)
