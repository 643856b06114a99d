"""What one decision may cost, counted once.

Rules kept here:

- there is one `Budget` for one decision, whatever its parts: reading names, searching, choosing members of thresholds,
  intersecting tags, checking signatures and explaining a denial all draw from it, so that limits do not multiply;
- steps are the bound that makes answers the same everywhere: each stands for a few microseconds of work, and evidence
  earns as many as its octets can need, so that large pools are searched and small ones cannot cost much;
- wall time is a second line of defence: the clock is handed in, nothing here reads one;
- who is heard among others has a share of its own (`Budget.share`): what takes more ends alone, not the decision;
- what runs out is a doubt, never a proven denial: ``LIMIT_EXCEEDED``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from maia.errors import UncheckedError

MonotonicClock = Callable[[], float]
"""Gives seconds that only grow; `time.monotonic` where a process decides."""

_LOOK_AT_CLOCK = 512


class Budget:
    """The steps, signatures and time that are left to one decision.

    >>> budget = Budget(steps=2, signatures=1)
    >>> budget.spend(2)
    >>> budget.spend()
    Traceback (most recent call last):
    maia.errors.UncheckedError: LIMIT_EXCEEDED: the decision takes more steps than allowed
    """

    __slots__ = ("_clock", "_deadline", "_floor", "_look", "_parent", "signatures", "steps", "used")

    def __init__(
        self,
        *,
        steps: int,
        signatures: int,
        clock: MonotonicClock | None = None,
        seconds: float | None = None,
    ) -> None:
        """Start to count.

        Args:
            steps: Steps that may be taken.
            signatures: Signatures that may be checked.
            clock: Tells the time that passes, where wall time counts.
            seconds: How much of it there is.
        """
        self.steps = steps
        self.signatures = signatures
        self.used = 0
        self._clock = clock
        self._deadline = None if clock is None or seconds is None else clock() + seconds
        self._floor = 0
        self._look = _LOOK_AT_CLOCK
        self._parent: Budget | None = None

    def spend(self, steps: int = 1) -> None:
        """Take steps, or give up.

        Raises:
            UncheckedError: ``LIMIT_EXCEEDED``.
        """
        self.used += steps
        self.steps -= steps
        if self.steps < self._floor:
            raise UncheckedError("the decision takes more steps than allowed", code="LIMIT_EXCEEDED")
        if self._parent is not None:
            self._parent.spend(steps)
            return
        self._look -= steps
        if self._look < 0:
            self._look = _LOOK_AT_CLOCK
            self._check_time()

    def check_signature(self) -> None:
        """Take the price of one signature, or give up.

        Raises:
            UncheckedError: ``LIMIT_EXCEEDED``.
        """
        if self._parent is not None:
            self._parent.check_signature()
            return
        self.signatures -= 1
        if self.signatures < 0:
            raise UncheckedError("the decision needs more signatures than allowed", code="LIMIT_EXCEEDED")
        self._check_time()

    def earn(self, steps: int) -> None:
        """Allow more steps, for what the verifier's own side adds to the question."""
        self.steps += steps

    @property
    def exhausted(self) -> bool:
        """Whether nothing can be done any more, by this share at least."""
        return self.steps <= self._floor

    @contextmanager
    def share(self, of: int) -> Iterator[None]:
        """Let what is done inside have one of so many shares of the steps that are left.

        >>> budget = Budget(steps=10, signatures=1)
        >>> try:
        ...     with budget.share(2):
        ...         budget.spend(6)
        ... except UncheckedError as error:
        ...     print(error.code, budget.exhausted)
        LIMIT_EXCEEDED False
        """
        before = self._floor
        self._floor = self.steps - max(0, self.steps - before) // of
        try:
            yield
        finally:
            self._floor = before

    def part(self, steps: int) -> Budget:
        """Give a part that may use up so many steps at most, and counts here as well."""
        part = Budget(steps=min(steps, self.steps), signatures=self.signatures)
        part._parent = self
        return part

    def _check_time(self) -> None:
        if self._deadline is not None and self._clock is not None and self._clock() > self._deadline:
            raise UncheckedError("the decision takes longer than allowed", code="LIMIT_EXCEEDED")
