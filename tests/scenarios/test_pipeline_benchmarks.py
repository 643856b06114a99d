"""The pipeline benchmark at small sizes: what it counts is exact, and its ratios come from what it measured.

Times themselves belong to ``docs/reference/benchmarks/pipeline.md``.
"""

from __future__ import annotations

import gc
import importlib
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from maia.bench import (
    ARMS,
    PARQUET,
    PER_VALUE,
    STAGES,
    Arm,
    Growth,
    Hop,
    Laps,
    Latency,
    Memory,
    PipelineResults,
    Throughput,
    Types,
    Weight,
    batch_of,
    hop,
    lines,
    measure,
    plan_of,
    stream,
    types,
    weigh,
)
from maia.bench.blocks import COMMITMENT, LENGTH, TAG, Bench
from maia.encryption import open_parcel, verify_parcel
from maia.events import EncryptionMode
from maia.testing import publish_plan

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
EVENTS = 400
MODES = (EncryptionMode.PLAIN, EncryptionMode.EVENT, EncryptionMode.ATTRIBUTE)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Give a session for the whole file."""
    from maia.spark import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its launcher's pipes open
        made = session(spark_master="local[2]", spark_local_dir=str(tmp_path_factory.mktemp("spark-local")))
        yield made
        made.stop()
        gc.collect()


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """Load the script that writes the page and draws the figures."""
    pytest.importorskip("matplotlib", reason="the script draws figures")
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("bench_pipeline")
    finally:
        sys.path.remove(str(FOLDER))


def made_up() -> PipelineResults:
    """Give results whose ratios are known."""
    took = {PARQUET: 1.0, "plain": 1.0, "attribute": 2.0, "event": 4.0, PER_VALUE: 20.0}
    arms = {arm: Laps([seconds] * 2, {1: [seconds] * 2}) for arm, seconds in took.items()}
    weight = Weight("attribute", 1, 10, 1, 500, 300, 0.001, 0.001, 0.001)
    hops = tuple(Hop(mode.value, 1, 0.002, 0.001, 0) for mode in MODES)
    latency = Latency(10, 1, (10.0, 20.0), dict.fromkeys(STAGES, (1.0, 2.0)))
    memory = tuple(Memory(10 * times, 90.0, 100.0, 500.0) for times in (1, 2, 4))
    return PipelineResults(
        10, 2, 2, "3.11", (Throughput(10, 1, (1,), arms),), Growth(1, {10: 1.1, 20: 2.1, 40: 4.1}), latency, memory,
        (weight,), hops, Types(10, 0.01, 0.0001),
    )  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("attributes", [1, 3])
def test_every_arm_shows_the_same_events(spark: object, tmp_path: Path, attributes: int) -> None:
    """Plain Parquet, Maia's three modes and encryption by value give each subscription exactly the same rows."""
    from maia.bench import frame_of

    rows = frame_of(EVENTS, attributes)
    shown = {}
    for name in ARMS:
        arm = Arm(name, rows, tmp_path)
        arm.write()
        shown[name] = {many: sorted(tuple(row) for row in arm.show(many).collect()) for many in (1, 100)}
    rows.unpersist()
    assert [len(shown[PARQUET][many]) for many in (1, 100)] == [EVENTS, EVENTS]
    assert {row[0] for row in shown[PARQUET][100]} == {f"s{group:02d}" for group in range(100)}
    assert all(len(value) == 30 for row in shown[PARQUET][1] for value in row)
    for name in ARMS[1:]:
        assert shown[name] == shown[PARQUET], name


@pytest.mark.spark
def test_ratios_are_means_of_the_rounds_that_count(spark: object, tmp_path: Path) -> None:
    """A run has as many times as rounds, warming up left out; ratios are quotients of their means, and on the page."""
    found = measure(EVENTS, 1, folder=tmp_path, runs=2, subscriptions=(1,), slow_runs=1)
    assert {name: len(laps.write) for name, laps in found.arms.items()} == {
        PARQUET: 2, "plain": 2, "attribute": 2, "event": 2, PER_VALUE: 1,
    }  # fmt: skip
    ours, plain = found.arms["attribute"], found.arms[PARQUET]
    mean = (sum(ours.write) + sum(ours.reads[1])) / 2
    assert ours.total(1) == pytest.approx(mean)
    assert found.ratio("attribute") == pytest.approx(plain.total(1) / mean)
    page = lines(PipelineResults(EVENTS, 2, 2, "3.11", (found,)))
    assert any("| attribute |" in line and f"| {found.ratio('attribute'):.2f} |" in line for line in page)


@pytest.mark.parametrize("attributes", [1, 10, 25])
def test_encryptions_are_counted_by_column_and_not_by_event(tmp_path: Path, attributes: int) -> None:
    """One encryption an attribute, or one in all at event level, however many events: that is where the gain lies."""
    for events in (10, 1000):
        blocks = {mode.value: weigh(tmp_path / f"{events}-{mode}", attributes, mode, events=events, runs=1).blocks
                  for mode in MODES}  # fmt: skip
        assert blocks == {"plain": attributes, "event": 1, "attribute": attributes}


@pytest.mark.parametrize("attributes", [1, 25])
def test_with_a_plaintext_cache_the_second_broker_decrypts_nothing(tmp_path: Path, attributes: int) -> None:
    """With the cache both sealed modes do what plain mode does: no decryption; the gap on the page is of two means."""
    hops = {mode.value: hop(tmp_path, attributes, mode, events=100, runs=2) for mode in MODES}
    assert {mode: found.decryptions for mode, found in hops.items()} == {"plain": 0, "event": 0, "attribute": 0}
    assert all(found.cached > 0 < found.opened for found in hops.values())
    page = "\n".join(lines(made_up()))
    assert "| 1 | attribute | 1.00 | 2.00 | 0 | 0.500 | 0.963 |" in page


def test_a_signed_type_is_verified_for_each_plan_and_never_for_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealing more events under a signed type verifies no more signatures; the share is of two measured means."""
    from maia.principals import signing

    bench = Bench(tmp_path / "bench", 3, EncryptionMode.PLAIN)
    counted = []
    real = signing.crypto_sign_open
    monkeypatch.setattr(signing, "crypto_sign_open", lambda *given: (counted.append(given), real(*given))[1])
    for events in (10, 1000):
        bench.seal(batch_of(events, 3))
    assert not counted
    publish_plan(bench.home, "bench.Event", as_="writer", version=None, publication="again", at=datetime.now(UTC))
    assert counted  # the plan is what verifies
    found = types(tmp_path / "types", attributes=3, events=100, runs=2)
    assert found.share == pytest.approx(found.verifying / found.publishing)


def test_authentication_adds_sixteen_octets_a_block(tmp_path: Path) -> None:
    """At attribute level with 25 attributes a parcel is longer than its plain form by tag and commitment of each block.

    The header takes the place of the OMAC input: it is associated data, travels once, and adds nothing to a block.
    """
    plain, sealed = (
        weigh(tmp_path / mode.value, 25, mode, events=500, runs=1)
        for mode in (EncryptionMode.PLAIN, EncryptionMode.ATTRIBUTE)
    )
    assert sealed.tags == 25 * TAG == 25 * 16
    assert sealed.plaintext == plain.plaintext
    header = len("9:attribute") - len("5:plain")
    epoch = len("13:1780272000000") - len("1:0")  # plain mode has no epoch
    assert sealed.octets - plain.octets == 25 * (TAG + COMMITMENT) + header + epoch
    assert sealed.with_header > 0 < sealed.without_header


def test_at_one_attribute_event_level_costs_what_attribute_level_costs(tmp_path: Path) -> None:
    """Own marshalling: both levels have one block then, with one tag; event level adds the uid and two lengths."""
    event, attribute = (
        weigh(tmp_path / mode.value, 1, mode, events=500, runs=1)
        for mode in (EncryptionMode.EVENT, EncryptionMode.ATTRIBUTE)
    )
    assert (event.blocks, event.tags) == (attribute.blocks, attribute.tags) == (1, 16)
    assert event.plaintext - attribute.plaintext == 2 + len("0") + LENGTH


def test_the_header_is_bound_to_every_block_and_stored_once(tmp_path: Path) -> None:
    """Associated data: the header stands in the parcel once, and blocks open under it, in a few octets an event."""
    bench = Bench(tmp_path, 25, EncryptionMode.ATTRIBUTE)
    parcel = bench.seal(batch_of(500, 25))
    assert parcel.to_bytes().count(parcel.header.encoded()) == 1
    assert len(open_parcel(verify_parcel(parcel), bench.key_of(parcel))) == 25


@pytest.mark.spark
def test_every_stage_of_every_micro_batch_is_timed(spark: object, tmp_path: Path) -> None:
    """Rights, opening, matching and screening are timed for each micro-batch of a real stream, one commit each."""
    said: list[str] = []
    found = stream(tmp_path, batches=3, events=50, attributes=2, say=said.append)
    assert set(found.stages) == set(STAGES)
    assert {len(times) for times in (found.batches, found.added, *found.stages.values())} == {3}
    assert all(sum(found.stages[stage][at] for stage in STAGES) == pytest.approx(found.added[at]) for at in range(3))
    assert said


def test_a_line_is_fitted_through_the_sizes() -> None:
    """The fit gives back the line that the times lie on, and says how well they do."""
    start, slope, fit = Growth(1, {size: 0.5 + size * 2e-6 for size in (50, 100, 200, 400)}).fit()
    assert (start, slope, fit) == pytest.approx((0.5, 2.0, 1.0))
    assert Growth(1, {1: 1.0, 2: 5.0, 3: 1.0}).fit()[2] == pytest.approx(0.0)


def test_the_page_says_what_was_measured_and_nothing_else() -> None:
    """Parts that were not measured are absent; ratios, the thesis' points and memory stand where they were."""
    results = made_up()
    page = "\n".join(lines(results))
    assert "| 1 | 1 | attribute | 2.00 | 2.00 | 2 | 0.50 | 10.0 | 0.460 |" in page
    assert "| 40 | 90 | 100 | 500 |" in page
    assert "| all of enforcement | 6.00 | 7.96 | 40.0% |" in page
    bare = "\n".join(lines(PipelineResults(10, 2, 2, "3.11", results.throughput)))
    assert "##" not in bare
    assert results.to_json()["line"]["r_squared"] == pytest.approx(1.0)


def test_figures_carry_no_notes_on_their_making(script: ModuleType, tmp_path: Path) -> None:
    """Drawings hold neither a date nor a program, and show the points of the thesis."""
    results = made_up()
    for draw in (script.throughput_figure, script.cache_figure):
        script.save(draw(results), tmp_path / "drawn.svg")
        drawn = (tmp_path / "drawn.svg").read_text()
        assert "<metadata" not in drawn
        assert "<svg" in drawn
    assert script.page(results).startswith("# Pipeline\n")


def test_one_subscription_gets_all_and_a_hundred_share(tmp_path: Path) -> None:
    """The plan of a hundred gives each event to one of them, as the plan of one gives all to it."""
    bench = Bench(tmp_path, 2, EncryptionMode.ATTRIBUTE)
    parcel = bench.seal(batch_of(EVENTS, 2))
    bench.deliveries(parcel)
    opened = open_parcel(verify_parcel(parcel), bench.key_of(parcel))
    import pyarrow as pa

    batch = pa.RecordBatch.from_arrays(list(opened.values()), names=[uid.decode() for uid in opened])
    for many in (1, 100):
        deliveries = plan_of(bench.domain, many).compiled().deliver(batch)
        assert [len(item.rows) for item in deliveries] == [EVENTS // many] * many


@pytest.mark.parametrize(
    ("sizes", "cores", "tasks"),
    [
        pytest.param([1 << 20] * 2, 2, [1, 1], id="two small files and two cores: a task each"),
        pytest.param(
            [1000] * 64, 2, [15, 15, 15, 15, 4], id="many small files share tasks, within what a task may hold"
        ),
        pytest.param([256 << 20, 1000], 1, [1, 1], id="a large file has a task of its own"),
        pytest.param([], 2, [], id="nothing to read"),
    ],
)
def test_neighbouring_small_files_of_the_log_share_a_task(sizes: list[int], cores: int, tasks: list[int]) -> None:
    """Files keep their order, each is read once, and no task is much larger than a large file."""
    from maia.domain import LogPart, share_out
    from maia.log import LogFile

    parts = [LogPart("", LogFile(str(at), size, "", 1, 1, 0, 0, ("",))) for at, size in enumerate(sizes)]
    groups = share_out(parts, cores=cores)
    assert [part for group in groups for part in group] == parts
    assert [len(group) for group in groups] == tasks
