"""What checks of labels cost: computed each time, and remembered; on one core, without Spark.

Labels of so many flow tags are checked against one reader, as every read does when it is planned. Two kinds: *single*,
of single tags alone, and *mixed*, of which every second tag is one of a family that a column carries. A part of the
labels has a tag that the reader lacks, so that both answers occur (rows 17.12 and 21.14).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from statistics import median

from maia.labels import Carrier, FlowChecks, Label, SymbolicLabel, tag_of

KINDS = ("single", "mixed")
LABELS = 64
"""So many different labels are checked in turn."""
_VALUES = ("1", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLabels:
    """What checks of labels of one size and kind cost.

    Attributes:
        tags: How many flow tags a label has.
        kind: ``single`` or ``mixed``.
        checks: How many checks a run has.
        allowed: How many of them let something flow, without memory and with.
        computed: How many were computed, without memory and with.
        equal: Whether each single answer is the same.
        without: Microseconds a check without memory, the median of the rounds.
        remembered: Microseconds a check with it.
        ratio: The median of how much faster memory was within a round.
    """

    tags: int
    kind: str
    checks: int
    allowed: tuple[int, int]
    computed: tuple[int, int]
    equal: bool
    without: float
    remembered: float
    ratio: float


@dataclass(frozen=True, slots=True)
class LabelResults:
    """All that was measured."""

    checks: int
    runs: int
    sizes: tuple[CheckedLabels, ...]

    def to_json(self) -> dict[str, object]:
        """Return everything as plain values."""
        return asdict(self)


def check_labels(*, checks: int, tags: Sequence[int], runs: int) -> LabelResults:
    """Measure labels of each size and kind; the checks are spread over the rounds."""
    sizes = (_checked(many, kind, checks=checks, runs=runs) for many in tags for kind in KINDS)
    return LabelResults(checks, runs, tuple(sizes))


def make_labels(tags: int, kind: str) -> tuple[tuple[SymbolicLabel, ...], Label]:
    """Make different labels of so many tags, and the reader's; every fourth of them may not flow to it."""
    carried = tags // 2 if kind == "mixed" else 0
    families = [f"clinical-{number}" for number in range(carried)]
    carriers = frozenset(Carrier(family=name, column=name) for name in families)
    shared = [f"https://nhs.example/t/{number}" for number in range(tags - carried - 1)]
    own = [f"https://nhs.example/t/own-{number}" for number in range(LABELS)]
    made = tuple(SymbolicLabel(secrecy=frozenset((*shared, name)), integrity=frozenset(), carriers=carriers)
                 for name in own)  # fmt: skip
    held = (tag_of(name, value) for name in families for value in _VALUES)
    return made, Label(secrecy=frozenset((*shared, *held, *(name for at, name in enumerate(own) if at % 4))))


def _checked(tags: int, kind: str, *, checks: int, runs: int) -> CheckedLabels:
    labels, reader = make_labels(tags, kind)
    plain, kept = FlowChecks(reader, remember=0), FlowChecks(reader)
    equal = all(plain.open_part(item) == kept.open_part(item) == kept.open_part(item) for item in labels)
    before = plain.computed
    laps: list[tuple[float, float]] = []
    allowed = [0, 0]
    done = 0
    gc.collect()
    for number in range(runs):
        many = checks * (number + 1) // runs - done
        lap = []
        for at, subject in enumerate((plain, kept)):
            took, found = _lap(subject, labels, many)
            allowed[at] += found
            lap.append(took)
        laps.append((lap[0], lap[1]))
        done += many
    return CheckedLabels(
        tags=tags, kind=kind, checks=checks, allowed=(allowed[0], allowed[1]),
        computed=(plain.computed - before, kept.computed), equal=equal,
        without=median(lap[0] for lap in laps), remembered=median(lap[1] for lap in laps),
        ratio=median(lap[0] / lap[1] for lap in laps),
    )  # fmt: skip


def _lap(subject: FlowChecks, labels: Sequence[SymbolicLabel], checks: int) -> tuple[float, int]:
    """Check labels in turn; give the microseconds a check, of processor time, and how many let something flow."""
    asked, check, found = list(islice(cycle(labels), checks)), subject.open_part, 0
    start = time.thread_time_ns()
    for label in asked:
        if check(label) is not None:
            found += 1
    return (time.thread_time_ns() - start) / checks / 1000, found
