"""What checks of labels cost, computed each time and remembered, by the number of flow tags.

    python benchmarks/bench_labels.py [--checks 1000000] [--growth 20000] [--output docs/reference/benchmarks]

Writes ``labels.md`` and ``labels.svg`` into the output folder. Times are processor time of the measuring thread; both
ways take turns, round after round, and ratios are medians of the ratios within a round, so a busy machine blurs the
times more than the ratios. `maia bench labels` measures the same.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression

from maia.bench import CheckedLabels, LabelResults, check_labels, label_lines

SIZES = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64)
AIM = 5


def page(million: LabelResults, growth: LabelResults) -> str:
    """Write the page."""
    lines = [
        "# Benchmark: labels",
        "",
        "Written by `benchmarks/bench_labels.py`; run it again to renew it. `maia bench labels` measures the same.",
        "",
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, shared with other work:",
        "the times move from run to run, the ratios less.",
        "",
        "## Labels of eight tags",
        "",
        f"The aim: remembered at least {AIM} times as fast as computed, with equal answers.",
        "",
        *label_lines(million),
        *(aim(item) for item in million.sizes),
        "",
        "A plan checks each attribute once, and attributes with equal labels share an answer (`FlowChecks`). No event",
        "is checked by itself, whatever its labels: carriers are conditions on columns. So labels cost a plan",
        "microseconds, and a row nothing but its carriers.",
        "",
        "## By the number of tags",
        "",
        "![Time of a check by flow tags](labels.svg)",
        "",
        *label_lines(growth),
        *(slopes(growth, kind) for kind in ("single", "mixed")),
    ]
    return "\n".join(lines) + "\n"


def aim(item: CheckedLabels) -> str:
    """Say whether the aim is met, and whether the answers are equal."""
    met = "met" if item.ratio >= AIM else "missed"
    same = "equal" if item.equal and item.allowed[0] == item.allowed[1] else "NOT EQUAL"
    return f"- {item.kind}, {item.tags} tags: {item.ratio:.2f} times, aim {met}; answers {same}."


def slopes(growth: LabelResults, kind: str) -> str:
    """Say how the time of a check grows with the tags."""
    sizes = [item for item in growth.sizes if item.kind == kind]
    tags = [item.tags for item in sizes]
    computed = linear_regression(tags, [item.without for item in sizes]).slope
    remembered = linear_regression(tags, [item.remembered for item in sizes]).slope
    return f"- {kind}: {computed * 1000:.1f} ns more for each tag computed, {remembered * 1000:.1f} ns remembered."


def plot(sizes: Sequence[CheckedLabels], path: Path) -> None:
    """Draw the time of a check by the number of tags."""
    import matplotlib as mpl  # noqa: PLC0415 - only the plot needs it

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "maia"
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for kind in ("mixed", "single"):
        mine = [item for item in sizes if item.kind == kind]
        tags = [item.tags for item in mine]
        axes.plot(tags, [item.without for item in mine], marker="o", label=f"{kind}, computed")
        axes.plot(tags, [item.remembered for item in mine], marker="o", label=f"{kind}, remembered")
    axes.set(yscale="log", xlabel="flow tags in a label", ylabel="microseconds a check")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Cost of checks of labels.")
    parser.add_argument("--checks", type=int, default=1_000_000, help="checks of labels of eight tags")
    parser.add_argument("--growth", type=int, default=20_000, help="checks of each other size")
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    arguments = parser.parse_args()
    million = check_labels(checks=arguments.checks, tags=(8,), runs=20)
    growth = check_labels(checks=arguments.growth, tags=SIZES, runs=5)
    text = page(million, growth)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "labels.md").write_text(text, encoding="utf-8")
    plot(growth.sizes, arguments.output / "labels.svg")
    print(text)


if __name__ == "__main__":
    main()
