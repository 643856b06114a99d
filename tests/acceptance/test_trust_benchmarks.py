"""The trust benchmark at small sizes: what it counts is exact, and what it times has the shape the thesis found.

Times themselves belong to ``docs/reference/benchmarks/trust.md``; here only counts and orders of magnitude are held.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def bench(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    """Load the benchmark."""
    pytest.importorskip("biscuit_auth", reason="the benchmark compares with biscuit-python")
    return benchmark("bench_trust")


@pytest.fixture(scope="module")
def results(bench: ModuleType) -> object:
    """Run everything once, small."""
    return bench.run(rounds=5, pool_size=60, lengths=(1, 3, 5))


@pytest.mark.requirement("21.01")
def test_the_table_of_reduction_and_signatures_is_reproduced(bench: ModuleType, results: object) -> None:
    """Table 4.7 is reproduced with Ed25519 and RSA columns: mean, σ and ratio of each; times are the benchmark's."""
    table = results.table
    assert set(table) == {
        "5-tuple reduction of the chain", "one request, link by link", "Ed25519, PyNaCl", "Ed25519, pyca",
        "RSA-2048, pyca", "RSA-3072, pyca",
    }  # fmt: skip
    assert all(len(times.rounds) == 5 and times.sigma >= 0 < times.mean for times in table.values())
    page = bench.page(results)
    assert all(f"| {name} |" in page for name in table)


@pytest.mark.requirement("21.03")
@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_verifications_grow_with_the_chain_unless_certificates_are_cached(bench: ModuleType, length: int) -> None:
    """Cache off: chain length + 1 verifications each time. On: one, the client's own key, after the first time."""
    chain = bench.make_chain(length)
    off, on = bench.Subscriptions(chain, "off"), bench.Subscriptions(chain, "certificates")
    counts = []
    for _ in range(3):
        assert off.handle()
        assert on.handle()
        counts.append((off.verifications, on.verifications))
    assert counts == [(length + 1, length + 1), (length + 1, 1), (length + 1, 1)]


@pytest.mark.requirement("21.03")
def test_the_figure_is_drawn_for_each_length_and_cache(bench: ModuleType, results: object, tmp_path: Path) -> None:
    """Figure 4.5: a row per length with the three caches and the plain baseline, and a plot of them."""
    assert list(results.lengths) == [1, 3, 5]
    for times in results.lengths.values():
        assert set(times) == {"off", "certificates", "decisions", "plain"}
    bench.plot(results.lengths, tmp_path / "trust.svg")
    assert "<svg" in (tmp_path / "trust.svg").read_text("utf-8")[:2000]
