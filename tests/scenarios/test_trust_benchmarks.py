"""The trust benchmark at small sizes: what it counts is exact, and what it times has the shape the thesis found.

Times themselves belong to ``docs/reference/benchmarks/trust.md``; here only counts and orders of magnitude are held.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    """Load the benchmark, whose subjects stand in a file beside it."""
    pytest.importorskip("biscuit_auth", reason="the benchmark compares with biscuit-python")
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("bench_trust")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def results(bench: ModuleType) -> object:
    """Run everything once, small."""
    return bench.run(rounds=5, pool_size=60, lengths=(1, 3, 5), type_rounds=1)


def test_a_cached_decision_verifies_nothing_and_is_compared_with_a_plain_lookup(
    bench: ModuleType, results: object
) -> None:
    """With the decision cache on, a signed type costs no signature; its ratio to a plain lookup stands on the page."""
    subscription = bench.Subscriptions(bench.make_chain(5), "decisions")
    assert subscription.handle()
    assert subscription.verifications == 5
    for _ in range(3):
        assert subscription.handle()
        assert subscription.verifications == 0
    assert "× a plain lookup" in bench.page(results)


def test_a_large_pool_verifies_only_what_a_root_leads_to(bench: ModuleType) -> None:
    """A yes checks the signatures of its chain; a stranger's no looks for the nearest reason, and leaves the rest."""
    chain = bench.make_chain(5)
    pool = bench.make_pool(300, chain)
    verifier = bench.Verifier()
    assert verifier.decide(chain.request, principal=chain.principal.public_key, evidence=pool, at=bench.NOW)
    assert verifier.signatures.verifications == 5
    assert not verifier.decide(chain.request, principal=bench.key("stranger").public_key, evidence=pool, at=bench.NOW)
    assert verifier.signatures.verifications <= 100
