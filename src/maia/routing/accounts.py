"""What a broker has accounted for of a lane, so that nothing is lost and nothing is delivered twice.

An offer says what happened after one number and up to another. Stretches that join are one; a hole between them is
asked for at the lane's own broker.
"""

from __future__ import annotations

from bisect import bisect_right, insort

MAX_AHEAD = 1024
"""How many stretches may lie behind a hole; more is not taken, and asked for later."""


class Account:
    """The numbers of one lane that this broker has seen or knows to be none of its business.

    >>> account = Account()
    >>> account.take(0, 3), account.take(5, 6)
    (True, True)
    >>> 6 in account, account.hole
    (True, (3, 5))
    """

    __slots__ = ("_ahead", "asked_at", "done", "tries")

    def __init__(self) -> None:
        """Account for nothing."""
        self.done = 0
        self._ahead: list[tuple[int, int]] = []
        self.asked_at: float | None = None
        self.tries = 0

    def __contains__(self, number: int) -> bool:
        if number <= self.done:
            return True
        place = bisect_right(self._ahead, (number - 1, 1 << 62)) - 1
        return place >= 0 and self._ahead[place][0] < number <= self._ahead[place][1]

    def take(self, after: int, number: int) -> bool:
        """Account for a stretch; false when too many lie behind holes already."""
        if number <= self.done:
            return True
        if after > self.done and len(self._ahead) >= MAX_AHEAD:
            return False
        if after <= self.done:
            self.done = number
        elif after < number or not self._ahead or self._ahead[-1][1] < number:
            # An empty stretch at the end tells that the lane is at least so far.
            insort(self._ahead, (after, number))
        self._join()
        return True

    @property
    def hole(self) -> tuple[int, int] | None:
        """The first stretch that is missing."""
        return (self.done, self._ahead[0][0]) if self._ahead else None

    @property
    def stretches(self) -> int:
        """How many stretches lie behind holes."""
        return len(self._ahead)

    def _join(self) -> None:
        joined: list[tuple[int, int]] = []
        for after, number in self._ahead:
            if after <= self.done:
                self.done = max(self.done, number)
            elif joined and after <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(joined[-1][1], number)
            else:
                joined.append((after, number))
        self._ahead = joined
