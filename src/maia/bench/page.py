"""The page of the pipeline's benchmark: every number on it comes from the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from maia.bench.arms import PER_VALUE
from maia.bench.blocks import Weight
from maia.bench.labels import LABELS, LabelResults
from maia.bench.latency import STAGES, percentile
from maia.bench.sealing import SealingResults
from maia.bench.whole import PipelineResults

THESIS = {1: 0.46, 10: 0.117}
"""What the thesis kept of its plaintext throughput at attribute level, by number of attributes (Figure 7.8)."""

THESIS_CACHED = {1: 1 - 0.037, 25: 1 - 0.025}
"""What it kept with a plaintext cache (Figure 7.9)."""

_GROWTH = """\
Attribute mode, {attributes} attributes: {start:.2f} s and {slope:.2f} s for each million events, R² = {fit:.4f}.
Means of 2 rounds."""
_LATENCY = """\
A stream of {batches} micro-batches of {events:,} events with {attributes} attributes. The stages are timed on the same
parcels in the kernel, on one core. Flow labels are not part of this path."""
_MEMORY = """\
Highest resident size of publishing and reading in attribute mode, 10 attributes; each size in a process of its own. The
JVM takes what its settings let it have before it collects."""
_OCTETS = """\
One parcel of {events:,} events. Where the thesis could attach the OMAC of the nonce, Maia has the whole header as
associated data of each block: what it adds is a tag of 16 octets a block, and the last two columns show what binding
the header costs."""
_CACHE = """\
What a parcel costs the second of two brokers that may read the same, a subscription to everything included; the first
broker's sealing and opening are outside the timing. The ratio is to plain mode."""
_TYPES = """\
A definition's signature is verified once for each plan, in {verifying:.2f} ms; enforcing and sealing {events:,} events
in plain mode takes {publishing:.2f} ms, so that the signature is {share:.2%} of a publication of that size, and less of
a larger one."""

_SIGNED = """\
A key of a group gives reading and writing alike, so the origin signs each parcel of {events:,} events: whoever may only
read cannot make one. The share is of enforcing, sealing, verifying and opening."""
_ATTACHED = """\
The attributes of one event of the thesis, 30 octets under a key each, opened with EAX: the OMAC of the nonce computed,
or attached to the event, where it costs octets and the authenticity of the event. Nothing in Maia is sealed so; the
last column is AES-GCM, by which Maia seals, for the same octets."""
_CHECKED = """\
{checks:,} checks of {labels} different labels against one reader, as a read makes them when it is planned; processor
time of one thread, medians of {runs} rounds in which both ways take turns. *Single* labels have single flow tags
alone; of *mixed* ones every second tag is one of a family that a column carries. Every fourth label may not flow."""
_EMULATED = """\
One publication of {events:,} events, enforced and sealed: as one parcel, attribute by attribute, or as one parcel for
each group of readers. Every combination of rights may need a key group of its own when it is emulated."""


def lines(results: PipelineResults) -> list[str]:
    """Write the page, without a title; parts that were not measured are left out."""
    return [*throughput_lines(results), *_growth(results), *_latency(results), *_memory(results), *_blocks(results)]


def throughput_lines(results: PipelineResults) -> list[str]:
    """Write the table of all arms."""
    slow = min(results.runs, 2)
    text = (
        f"{results.events:,} events of 30-character strings, written and read. Means of {results.runs} rounds in which "
        f"the arms take turns (value by value: {slow}); {results.cores} cores, Python {results.python}. "
        "A ratio above 1 is faster than plain Parquet. With several subscriptions Maia's arms use the stage `deliver`, "
        "which writes no audit."
    )
    head = ("attributes", "subscriptions", "arm", "write s", "read s", "events/s", "to plain Parquet", "to per value",
            "thesis")  # fmt: skip
    rows = []
    for found in results.throughput:
        for many in found.subscriptions:
            for arm, laps in found.arms.items():
                write, total = fmean(laps.write), laps.total(many)
                faster = f"{found.ratio(arm, many, to=PER_VALUE):.1f}" if PER_VALUE in found.arms else ""
                thesis = f"{THESIS[found.attributes]:.3f}" if arm == "attribute" and found.attributes in THESIS else ""
                numbers = (f"{write:.2f}", f"{total - write:.2f}", f"{found.events / total:,.0f}")
                rows.append((found.attributes, many, arm, *numbers, f"{found.ratio(arm, many):.2f}", faster, thesis))
    return [text, "", *_table(head, rows)]


def sealing_lines(results: SealingResults) -> list[str]:
    """Write what the ways of sealing cost."""
    signed = [
        (item.attributes, _ms(item.sealing), _ms(item.signing), _ms(item.opening), _ms(item.verifying),
         f"{item.share:.1%}")
        for item in results.signed
    ]  # fmt: skip
    attached = [
        (item.attributes, _us(item.computed), _us(item.attached), item.octets, _us(item.gcm))
        for item in results.attached
    ]
    emulated = [
        (item.attributes, item.groups, item.parcels, f"{item.octets:,}", f"{item.own_octets:,}", _ms(item.sealing),
         _ms(item.own_sealing), f"{item.key_groups:,}", item.own_key_groups)
        for item in results.emulated
    ]  # fmt: skip
    return [
        *_weights(results.weights),
        *_section("Signatures", _SIGNED.format(events=results.events), _table(
            ("attributes", "sealing ms", "of it signing", "opening ms", "of it verifying", "share"), signed)),
        *_section("The cipher of the thesis", _ATTACHED, _table(
            ("attributes", "computed µs", "attached µs", "octets added to each", "AES-GCM µs"), attached)),
        *_section("Emulation", _EMULATED.format(events=results.events), _table(
            ("attributes", "groups", "parcels", "octets", "octets of one", "sealing ms", "of one", "key groups",
             "key groups of one"), emulated)),
    ]  # fmt: skip


def label_lines(results: LabelResults) -> list[str]:
    """Write what checks of labels cost, computed each time and remembered."""
    text = _CHECKED.format(checks=results.checks, labels=LABELS, runs=results.runs)
    rows = [
        (item.tags, item.kind, f"{item.without:.2f}", f"{item.remembered:.2f}", f"{item.ratio:.2f}",
         f"{item.allowed[0]:,}", f"{item.allowed[1]:,}", f"{item.computed[0]:,}", item.computed[1])
        for item in results.sizes
    ]  # fmt: skip
    head = ("tags", "kind", "computed µs", "remembered µs", "times faster", "allowed", "allowed, remembered",
            "computations", "with memory")  # fmt: skip
    return [text, "", *_table(head, rows)]


def _growth(results: PipelineResults) -> list[str]:
    found = results.growth
    if found is None:
        return []
    start, slope, fit = found.fit()
    text = _GROWTH.format(attributes=found.attributes, start=start, slope=slope, fit=fit)
    rows = [(f"{size:,}", f"{took:.2f}") for size, took in found.seconds.items()]
    return _section("Growth", text, _table(("events", "seconds"), rows))


def _latency(results: PipelineResults) -> list[str]:
    found = results.latency
    if found is None:
        return []
    half = percentile(found.batches, 50)
    named = {"micro-batch": found.batches, "all of enforcement": found.added}
    named |= {stage: found.stages[stage] for stage in STAGES}
    rows = [
        (name, f"{percentile(times, 50):.2f}", f"{percentile(times, 99):.2f}", f"{percentile(times, 50) / half:.1%}")
        for name, times in named.items()
    ]
    text = _LATENCY.format(batches=len(found.batches), events=found.events, attributes=found.attributes)
    return _section("Latency", text, _table(("stage", "p50 ms", "p99 ms", "share of the micro-batch"), rows))


def _memory(results: PipelineResults) -> list[str]:
    if not results.memory:
        return []
    rows = [
        (f"{item.events:,}", f"{item.driver:.0f}", f"{item.workers:.0f}", f"{item.jvm:.0f}") for item in results.memory
    ]
    return _section("Memory", _MEMORY, _table(("events", "driver MiB", "largest Python worker MiB", "JVM MiB"), rows))


def _blocks(results: PipelineResults) -> list[str]:
    if not results.weights or results.signed_types is None:
        return []
    plain = {item.attributes: item.opened for item in results.hops if item.mode == "plain"}
    hops = [
        (item.attributes, item.mode, _ms(item.opened), _ms(item.cached), item.decryptions,
         f"{plain[item.attributes] / item.cached:.3f}",
         f"{THESIS_CACHED[item.attributes]:.3f}" if item.attributes in THESIS_CACHED else "")
        for item in results.hops
    ]  # fmt: skip
    signed = results.signed_types
    cache = _table(
        ("attributes", "mode", "opening again ms", "with the cache ms", "decryptions", "ratio to plain", "thesis"), hops
    )
    types = _TYPES.format(
        verifying=signed.verifying * 1000, events=signed.events, publishing=signed.publishing * 1000, share=signed.share
    )
    return [
        *_weights(results.weights),
        *_section("Plaintext cache", _CACHE, cache),
        *_section("Signed types", types, []),
    ]


def _weights(found: Sequence[Weight]) -> list[str]:
    rows = [
        (item.attributes, item.mode, item.blocks, f"{item.octets:,}", f"{item.octets - item.plaintext:,}", item.tags,
         _ms(item.opening), _ms(item.without_header), _ms(item.with_header))
        for item in found
    ]  # fmt: skip
    table = _table(
        ("attributes", "mode", "blocks", "octets", "beyond the columns", "of these tags", "opening ms",
         "decrypting without header ms", "with header ms"), rows,
    )  # fmt: skip
    return _section("Octets and decryptions", _OCTETS.format(events=found[0].events), table)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def _section(title: str, text: str, table: list[str]) -> list[str]:
    return [f"## {title}", "", text, "", *table]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    body = [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *body, ""]
