"""What trust costs: reduction against signatures, chain length against caches, and a token format beside it.

    python benchmarks/bench_trust.py [--rounds 60] [--pool 10000] [--output docs/reference/benchmarks]

Writes ``trust.md`` and ``trust.svg`` into the output folder: Table 4.7 and Figure 4.5 of the thesis for today's
signatures, and the aims of the trust core. Times are processor time of the measuring thread; all subjects of a table
take turns, round after round, and ratios are medians of the ratios within a round, so a busy machine blurs the times
more than the ratios.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from trust_subjects import (
    NOW,
    Chain,
    Subject,
    Subscriptions,
    biscuit,
    decisions,
    key,
    make_chain,
    make_pool,
    reductions,
    signatures,
)

from maia.authority import CertificatePool, Verifier
from maia.bench import Types
from maia.bench import types as signed_types

CACHES = {
    "off": "no cache",
    "certificates": "certificate cache",
    "read": "certificate cache, certificates read",
    "decisions": "decision cache",
}
LENGTHS = range(1, 11)
TYPE_ROUNDS = 40
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Times:
    """The microseconds per call of one subject, one figure a round."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def sigma(self) -> float:
        """The standard deviation over the rounds."""
        return statistics.stdev(self.rounds) if len(self.rounds) > 1 else 0.0

    @property
    def mean(self) -> float:
        """The mean of the rounds."""
        return statistics.fmean(self.rounds)

    def over(self, other: Times) -> float:
        """The median of the ratios to another subject within the same rounds."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.rounds, other.rounds, strict=True))


def measure(subjects: Mapping[Key, Subject], *, rounds: int, calls: int = 10) -> dict[Key, Times]:
    """Let the subjects take turns; the first round warms up and does not count."""
    found: dict[Key, list[float]] = {name: [] for name in subjects}
    gc.collect()
    for number in range(rounds + 1):
        for name, subject in subjects.items():
            start = time.thread_time_ns()
            for _ in range(calls):
                subject()
            if number:
                found[name].append((time.thread_time_ns() - start) / calls / 1000)
    return {name: Times(tuple(values)) for name, values in found.items()}


def measure_lengths(lengths: Iterable[int], *, rounds: int) -> dict[int, dict[str, Times]]:
    """Handle subscriptions with chains of each length, with each cache, and a plain lookup beside them."""
    subjects: dict[tuple[int, str], Subject] = {}
    for length in lengths:
        chain = make_chain(length)
        table = {chain.principal.public_key.key_id: True}
        subjects |= {(length, cache): Subscriptions(chain, cache).handle for cache in CACHES}
        subjects[length, "plain"] = lambda table=table, who=chain.principal.public_key.key_id: table[who]  # type: ignore[misc]
    found: dict[int, dict[str, Times]] = {}
    for (length, name), times in measure(subjects, rounds=rounds, calls=5).items():
        found.setdefault(length, {})[name] = times
    return found


def measure_pool(pool: CertificatePool, chain: Chain, *, rounds: int) -> dict[str, Times]:
    """Decide in a large loaded pool with a fresh verifier each time: a yes, and a no with its explanation."""
    stranger = key("stranger").public_key

    def allowed() -> None:
        assert Verifier().decide(chain.request, principal=chain.principal.public_key, evidence=pool, at=NOW)

    def denied() -> None:
        assert not Verifier().decide(chain.request, principal=stranger, evidence=pool, at=NOW)

    return measure({"allowed": allowed, "denied": denied}, rounds=rounds, calls=1)


# ---------------------------------------------------------------- the page


@dataclass(frozen=True)
class Results:
    """Everything that was measured."""

    table: dict[str, Times]
    lengths: dict[int, dict[str, Times]]
    chain: dict[str, Times]
    pool: dict[str, Times]
    pool_size: int
    rounds: int
    types: Types


def page(results: Results) -> str:
    """Write the page."""
    lines = [
        "# Benchmark: trust",
        "",
        "Written by `benchmarks/bench_trust.py`; run it again to renew it.",
        "",
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, shared with other work.",
        "Processor time in microseconds. In each round all subjects of a table take turns; ratios are medians of the",
        f"ratios within a round; {results.rounds} rounds.",
        "",
        *reduction_table(results),
        *length_table(results),
        *types_text(results.types),
        *aims_table(results),
    ]
    return "\n".join(lines) + "\n"


def reduction_table(results: Results) -> list[str]:
    """Table 4.7: reduction of a chain of five against one signature verification."""
    base = results.table["5-tuple reduction of the chain"]
    return [
        "## Reduction against signatures (Table 4.7 of the thesis)",
        "",
        "A chain of five certificates. The thesis had 5.533 µs (σ 0.18513) for the reduction and 291.926 µs",
        "(σ 2.60839) for one RSA-1024 verification, a ratio of 52.8. Today's signatures verify much faster, and a",
        "reduction in Python of tags with attribute sets costs more than the thesis's, so the ratio is smaller; what",
        "stays true is that a decision without signatures costs a fraction of one with them.",
        "",
        "| what | median | mean | σ | one signature over the reduction |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {times.median:.1f} | {times.mean:.1f} | {times.sigma:.1f} | "
            f"{'' if 'RSA' not in name and 'Ed' not in name else f'{times.over(base):.1f}'} |"
            for name, times in results.table.items()
        ),
        "",
    ]


def length_table(results: Results) -> list[str]:
    """Figure 4.5: handling a subscription by the length of its chain."""
    return [
        "## Chain length and caches (Figure 4.5 and Table 4.8 of the thesis)",
        "",
        "Handling one subscription from bytes. Without a cache every signature of the chain is verified, and one more",
        "for the client's own key; with the certificate cache that one is left; the decision cache (the thesis's type",
        "cache) verifies none. What still grows with the chain under the certificate cache is reading it, and, where",
        "the certificates were read before, going through its links: signatures do not. *Plain* is a lookup in a",
        "dictionary, which decides nothing; the thesis's plain subscription took 7.422 µs (σ 1.78347).",
        "",
        "![Time to handle a subscription by chain length](trust.svg)",
        "",
        f"| certificates | {' | '.join(f'{label} | σ' for label in CACHES.values())} | plain | σ |",
        f"|---:|{'---:|---:|' * (len(CACHES) + 1)}",
        *(
            f"| {length} | "
            + " | ".join(f"{times[cache].median:.1f} | {times[cache].sigma:.1f}" for cache in CACHES)
            + f" | {times['plain'].median:.2f} | {times['plain'].sigma:.2f} |"
            for length, times in results.lengths.items()
        ),
        "",
    ]


def types_text(types: Types) -> list[str]:
    """Section 4.5: publications under a signed type against the same under one that is taken as it is."""
    return [
        "## Signed types (section 4.5 of the thesis)",
        "",
        f"A definition is verified when a plan is made, in {types.verifying * 1000:.2f} ms, and never for an event;",
        f"enforcing and packing {types.events:,} events of ten attributes takes {types.publishing * 1000:.2f} ms.",
        "Two plans, one whose definition is verified and one whose definition is taken as it is, take turns for",
        f"{types.publications} such publications each, and {TYPE_ROUNDS} times: throughput with the signed type is",
        f"{types.throughput:.2%} of that without, in processor time of the faster half of them.",
        "On a busy machine that figure moves by some two per cent either way from run to run.",
        "",
    ]


def aims_table(results: Results) -> list[str]:
    """The aims, each with what was measured."""
    chain, raw, pool = results.chain, results.chain["raw"], results.pool
    token, decided = chain["Biscuit, parse and verify"], chain["Biscuit, parse, verify and decide"]
    cold, loaded, warm = chain["cold from bytes"], chain["cold from a loaded pool"], chain["warm"]
    plain = chain["plain lookup"]
    rows = [
        ("five raw Ed25519 verifications", raw, "", ""),
        ("cold decision, chain of 5, certificates read", loaded, "≤ 1.3 × raw", f"{loaded.over(raw):.2f} × raw"),
        ("cold decision, chain of 5, from bytes", cold, "", f"{cold.over(raw):.2f} × raw"),
        ("Biscuit of 5 blocks, parse and verify", token, "", f"ours is {cold.over(token):.2f} × that"),
        (
            "Biscuit of 5 blocks, parse, verify and decide",
            decided,
            "ours not slower",
            f"ours is {cold.over(decided):.2f} × that",
        ),
        ("warm decision", warm, "≤ 20 µs", f"{warm.over(plain):.0f} × a plain lookup"),
        ("plain lookup", plain, "", ""),
        (
            f"yes among {results.pool_size:,} certificates",
            pool["allowed"],
            "≤ 50 ms",
            f"{pool['allowed'].median / 1000:.1f} ms",
        ),
        (f"no among {results.pool_size:,}, explained", pool["denied"], "", f"{pool['denied'].median / 1000:.1f} ms"),
    ]
    return [
        "## Aims",
        "",
        "| what | median | σ | aim | measured |",
        "|---|---:|---:|---|---|",
        *(
            f"| {name} | {times.median:,.2f} | {times.sigma:,.2f} | {aim} | {found} |"
            for name, times, aim, found in rows
        ),
        "",
        "The pool was read before; its signatures were not verified. A yes verifies the signatures of its proof only;",
        "an explained no verifies what could have led to the principal, so that it names no forged link.",
        "",
        "Where an aim is missed, five raw verifications by libsodium alone cost most of what Biscuit's Rust library",
        "needs for parsing, verifying and deciding; reading certificates in Python is what is left to gain.",
        "A broker reads a certificate once and keeps it in a pool; from there on the line of certificates read counts.",
    ]


def plot(lengths: dict[int, dict[str, Times]], path: Path) -> None:
    """Draw Figure 4.5."""
    import matplotlib as mpl  # noqa: PLC0415 - only the plot needs it

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "maia"
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for cache, label in {**CACHES, "plain": "plain lookup"}.items():
        axes.errorbar(
            list(lengths),
            [times[cache].median for times in lengths.values()],
            yerr=[times[cache].sigma for times in lengths.values()] if cache != "plain" else None,
            marker="o",
            capsize=2,
            label=label,
        )
    axes.set(yscale="log", xlabel="certificates in the chain", ylabel="microseconds per subscription")
    axes.set_xticks(list(lengths))
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def run(*, rounds: int, pool_size: int, lengths: Iterable[int] = LENGTHS, type_rounds: int | None = None) -> Results:
    """Measure everything."""
    five = make_chain(5)
    pool = make_pool(pool_size, five)
    return Results(
        table=measure({**reductions(five), **signatures(five)}, rounds=rounds),
        lengths=measure_lengths(lengths, rounds=rounds),
        chain=measure({**decisions(five), **biscuit(5)}, rounds=rounds),
        pool=measure_pool(pool, five, rounds=max(3, rounds // 10)),
        pool_size=pool_size,
        rounds=rounds,
        types=measure_types(TYPE_ROUNDS if type_rounds is None else type_rounds),
    )


def measure_types(rounds: int) -> Types:
    """Publish under a signed type and under one that is taken as it is, in a home that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return signed_types(Path(folder), runs=rounds)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Cost of trust.")
    parser.add_argument("--rounds", type=int, default=60, help="rounds of each table")
    parser.add_argument("--pool", type=int, default=10_000, help="certificates in the large pool")
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    arguments = parser.parse_args()
    results = run(rounds=arguments.rounds, pool_size=arguments.pool)
    text = page(results)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "trust.md").write_text(text, encoding="utf-8")
    plot(results.lengths, arguments.output / "trust.svg")
    print(text)


if __name__ == "__main__":
    main()
