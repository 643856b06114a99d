"""What protection costs on Spark: the same rows through plain Parquet, through Maia, and sealed value by value.

    python benchmarks/bench_pipeline.py [--events 100000] [--attributes 1,10,25] [--subscriptions 1,100] [--runs 5]
                                        [--batches 30] [--output docs/reference/benchmarks]

The measuring is `maia.bench`, which `maia bench pipeline` uses too; this script runs all of it and writes
the page and its figures. The numbers of the thesis stand beside ours where it has some.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

from maia.bench import PER_VALUE, THESIS, THESIS_CACHED, PipelineResults, full, lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "maia"
FIGURES = {
    "pipeline.svg": "Throughput as a share of plain Parquet, as in Figure 7.8 of the thesis",
    "pipeline-cache.svg": "Throughput with a plaintext cache as a share of plain mode, as in Figure 7.9 of the thesis",
}


def page(results: PipelineResults) -> str:
    """Write the page with its title and figures."""
    shown = [f"![{text}]({name})" for name, text in FIGURES.items()]
    head = ["# Pipeline", "", "Made by `python benchmarks/bench_pipeline.py`.", "", "\n\n".join(shown), ""]
    return "\n".join([*head, *lines(results)]).rstrip() + "\n"


def throughput_figure(results: PipelineResults) -> Figure:
    """Draw all arms against plain Parquet, with the points of the thesis."""
    sizes = [found.attributes for found in results.throughput]
    curves = {
        arm: [found.ratio(arm) for found in results.throughput] for arm in ("plain", "event", "attribute", PER_VALUE)
    }
    return _draw(sizes, curves, THESIS, "throughput / plain Parquet", "attributes of 30 characters")


def cache_figure(results: PipelineResults) -> Figure:
    """Draw the sealed modes with a plaintext cache against plain mode, with the points of the thesis."""
    plain = {item.attributes: item.opened for item in results.hops if item.mode == "plain"}
    curves = {
        f"{mode}, cached": [plain[item.attributes] / item.cached for item in results.hops if item.mode == mode]
        for mode in ("event", "attribute")
    }
    return _draw(list(plain), curves, THESIS_CACHED, "throughput / plain mode", "attributes of 30 characters")


def _draw(
    sizes: list[int], curves: dict[str, list[float]], thesis: dict[int, float], upwards: str, along: str
) -> Figure:
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the choice of what draws

    figure, axes = plt.subplots(figsize=(6, 3.5))
    for name, ratios in curves.items():
        axes.plot(sizes, ratios, marker="o", label=name)
    axes.plot(list(thesis), list(thesis.values()), marker="x", linestyle="--", label="thesis, attribute level")
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set_xlabel(along)
    axes.set_ylabel(upwards)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    figure.tight_layout()
    return figure


def save(figure: Figure, path: Path) -> None:
    """Save a drawing that says nothing but what it shows."""
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    drawn = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"\s*<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL), encoding="utf-8")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--attributes", type=_numbers, default=(1, 10, 25))
    parser.add_argument("--subscriptions", type=_numbers, default=(1, 100))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    asked = parser.parse_args()
    start = time.monotonic()
    results = full(
        events=asked.events, attributes=asked.attributes, subscriptions=asked.subscriptions, runs=asked.runs,
        batches=asked.batches, say=lambda text: print(f"{time.monotonic() - start:5.0f} s  {text}", file=sys.stderr),
    )  # fmt: skip
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "pipeline.md").write_text(page(results), encoding="utf-8")
    for draw, name in zip((throughput_figure, cache_figure), FIGURES, strict=True):
        save(draw(results), asked.output / name)
    print(page(results))


if __name__ == "__main__":
    main()
