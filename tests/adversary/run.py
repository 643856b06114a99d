"""Play many attacks: ``python tests/adversary/run.py --sequences 1000000 --jobs 2``.

Each job plays a share of the seeds in a process of its own. A violation is made small and printed with its seed and its
moves, and ends the run with exit code 1; ``--seed N --sequences 1`` plays that one again.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from attack import Play, attempt, shrink
from moves import draw
from stage import Fixed

SHARE = 1_000
"""How many sequences a job plays at most in the world that it builds."""


@dataclass
class Report:
    """What came of some sequences.

    Attributes:
        played: How many.
        moves: How often each kind of move was made.
        violations: What was found, each as it is told to people.
    """

    played: int = 0
    moves: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Take another report in."""
        self.played += other.played
        self.moves += other.moves
        self.violations += other.violations


def play(seeds: range, *, stop: bool = True) -> Report:
    """Play the sequences of some seeds in this process."""
    report, fixed = Report(), Fixed.make()
    logging.disable(logging.CRITICAL)  # what an attack makes the product say in its log is not looked at here
    try:
        for seed in seeds:
            sequence = draw(seed)
            report.played += 1
            report.moves.update(type(move).__name__ for move in sequence.moves)
            found = attempt(fixed, sequence)
            if found is not None:
                small = shrink(sequence, lambda less: attempt(fixed, less) is not None)
                report.violations.append(f"{attempt(fixed, small)}\n{small}")
                if stop:
                    break
    finally:
        logging.disable(logging.NOTSET)
        fixed.close()
    return report


def play_in_jobs(first: int, sequences: int, jobs: int) -> Iterator[Report]:
    """Play sequences in several processes, a share at a time."""
    share, end = max(1, min(SHARE, -(-sequences // jobs))), first + sequences
    shares = [range(start, min(start + share, end)) for start in range(first, end, share)]
    if jobs == 1:
        yield from map(play, shares)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(play, shares)


def main() -> int:
    """Run, tell how it goes, and say what was found."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sequences", type=int, default=20_000)
    asked.add_argument("--seed", type=int, default=0, help="the first seed")
    asked.add_argument("--jobs", type=int, default=2)
    given = asked.parse_args()
    total, begun = Report(), time.monotonic()
    for report in play_in_jobs(given.seed, given.sequences, given.jobs):
        total.add(report)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{total.played:,} sequences, {len(total.violations)} violations")
    spent = time.monotonic() - begun
    sys.stdout.write(
        f"{total.played:,} sequences, {total.moves.total():,} moves in {spent:,.0f} s: "
        f"{len(total.violations)} violations\n"
    )
    for name, count in total.moves.most_common():
        sys.stdout.write(f"  {name:<10}{count:>12,}\n")
    for violation in total.violations:
        sys.stdout.write(f"\n{violation}\n")
    return 1 if total.violations else 0


__all__ = ["Play", "Report", "play", "play_in_jobs"]

if __name__ == "__main__":
    sys.exit(main())
