"""Checks of many labels against one target, which remember what they found.

Rules kept here:

- a check is linear in the flow tags of the label; those of the target are sorted by family once;
- what was found for a label holds for every equal label: a target never changes, nor does a label. Whoever checks
  against another target, or after a policy was read again, begins anew;
- nothing is remembered outside the object, and no more than it was told to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from maia.labels.label import Label
from maia.labels.symbolic import SymbolicLabel
from maia.labels.tag import values_by_family

MAX_REMEMBERED = 4096


class FlowChecks:
    """What of labels may flow to one target: this is what reads decide by.

    Attributes:
        target: To where data would flow.
        open_part: Gives the label of the cells that may flow to the target; nothing when no cell with a label may. The
            static part decides for all rows; carriers are left with the values that may flow, row by row.

    >>> checks = FlowChecks(Label(secrecy=frozenset({"a", "b"})))
    >>> one, other = SymbolicLabel(secrecy=frozenset({"a"})), SymbolicLabel(secrecy=frozenset({"c"}))
    >>> checks.open_part(one) == one, checks.open_part(other), checks.open_part(one) == one, checks.computed
    (True, None, True, 2)
    """

    def __init__(self, target: Label, *, remember: int = MAX_REMEMBERED) -> None:
        """Begin without memory.

        Args:
            target: To where data would flow.
            remember: Of how many labels the answers are kept; with 0 each is computed again.
        """
        self.target = target
        self._check = _Check(target)
        self.open_part: Callable[[SymbolicLabel], SymbolicLabel | None] = self._check
        if remember:
            self.open_part = _Answers(self._check, remember).__getitem__

    @property
    def computed(self) -> int:
        """How many checks were computed, and not remembered."""
        return self._check.computed


class _Check:
    """One check, computed."""

    def __init__(self, target: Label) -> None:
        self.computed = 0
        self._target = target
        self._families: Mapping[str, frozenset[str] | None] = values_by_family(target.secrecy)

    def __call__(self, label: SymbolicLabel) -> SymbolicLabel | None:
        self.computed += 1
        bounded = label.bounded_by(self._families)
        closed = any(item.values is not None and not item.values for item in bounded.carriers)
        return None if closed or not bounded.flows_to(self._target) else bounded


class _Answers(dict[SymbolicLabel, SymbolicLabel | None]):
    """Answers by label; one that is missing is computed, and kept while there is room."""

    def __init__(self, check: _Check, room: int) -> None:
        super().__init__()
        self._check, self._room = check, room

    def __missing__(self, label: SymbolicLabel) -> SymbolicLabel | None:
        found = self._check(label)
        if len(self) < self._room:
            self[label] = found
        return found
