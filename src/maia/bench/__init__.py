"""Measurements that ship with Maia: what protection costs, against the same rows without it, on one's own machine."""

from maia.bench.arms import ARMS, PARQUET, PER_VALUE, Arm, Laps, Throughput, measure
from maia.bench.blocks import Hop, Types, Weight, hop, types, weigh
from maia.bench.eax import Eax
from maia.bench.homes import batch_of, frame_of, make_domain, plan_of, rows_of
from maia.bench.labels import CheckedLabels, LabelResults, check_labels
from maia.bench.latency import STAGES, Latency, percentile, stream, take_apart
from maia.bench.memory import Memory, peak
from maia.bench.page import THESIS, THESIS_CACHED, label_lines, lines
from maia.bench.whole import Growth, PipelineResults, full, quick

__all__ = [
    "ARMS",
    "PARQUET",
    "PER_VALUE",
    "STAGES",
    "THESIS",
    "THESIS_CACHED",
    "Arm",
    "CheckedLabels",
    "Eax",
    "Growth",
    "Hop",
    "LabelResults",
    "Laps",
    "Latency",
    "Memory",
    "PipelineResults",
    "Throughput",
    "Types",
    "Weight",
    "batch_of",
    "check_labels",
    "frame_of",
    "full",
    "hop",
    "label_lines",
    "lines",
    "make_domain",
    "measure",
    "peak",
    "percentile",
    "plan_of",
    "quick",
    "rows_of",
    "stream",
    "take_apart",
    "types",
    "weigh",
]
