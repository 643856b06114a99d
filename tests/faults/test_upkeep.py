"""Compaction and retention: readers get the same parcels whatever is rewritten, and are told about what has expired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from network import CCS_SUBSCRIPTIONS, Network, build, delivered, publish_here, sightings

from maia.domain import Domain, delivery_job, read_parked
from maia.encryption import Parcel, parse_parcel
from maia.errors import EncodingError, MaiaError, NotFoundError, UnavailableError, UsageError
from maia.log import Commit, LogDirectory, OwnLanes, compact, directory_store, expire, sweep
from maia.log import upkeep as upkeep_module
from maia.log.lane_writer import LaneWriter
from maia.principals import KeySigner

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=400)
SMALL = 1 << 20


def parcels(log: LogDirectory, commit: Commit) -> list[Parcel]:
    """Read all parcels of a commit, each in one piece."""
    found = (logged for file in commit.files for logged in log.parcels(commit.lane, file))
    return [parse_parcel(logged.parse().to_bytes()) for logged in found]


def everything(log: LogDirectory) -> list[tuple[str, list[Parcel]]]:
    """Read the whole log: each commit's digest and rows."""
    return [(commit.digest, parcels(log, commit)) for commit in log.commits()]


def data_files(log: LogDirectory) -> set[str]:
    """List the files of parcels."""
    return {path.relative_to(log.path).as_posix() for path in log.path.glob("type=*/origin=*/date=*/*")}


def fill(network: Network, count: int, first: int = 0) -> None:
    """Publish so many small commits."""
    for number in range(first, first + count):
        publish_here(network, f"p{number}", [sightings([f"P{number}-{row}" for row in range(3)])])


def tidy(network: Network, **options: Any) -> Any:
    """Compact the lanes of the congestion charge service."""
    domain = Domain.open(network.ccs)
    return compact(domain.log, domain.lanes, at=datetime.now(UTC), **options)


def let_go(network: Network, *, before: datetime, **options: Any) -> Any:
    """Let its lanes expire."""
    domain = Domain.open(network.ccs)
    return expire(domain.log, domain.lanes, before=before, at=datetime.now(UTC), **options)


def clean(network: Network, **options: Any) -> list[str]:
    """Sweep its lanes."""
    domain = Domain.open(network.ccs)
    return sweep(domain.log, domain.lanes, **options)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_compaction_leaves_parcels_and_commits_as_they_are(network: Network) -> None:
    """Many small files become one; every parcel is the same, byte for byte, and every commit has its digest."""
    fill(network, 6)
    before = everything(network.log)
    done = tidy(network, target=SMALL)
    assert (done.before, done.after) == (6, 1)
    assert len(data_files(network.log)) == 1
    assert everything(LogDirectory(network.log.path)) == before
    assert tidy(network, target=SMALL).before == 0


def test_a_compacted_file_is_its_segments_one_behind_the_other(network: Network) -> None:
    """So what a commit says of a segment, its length and its digest, stays true of it."""
    fill(network, 4)
    before = [(network.log.path / file.path).read_bytes() for item in network.log.commits() for file in item.files]
    tidy(network, target=SMALL)
    [path] = data_files(network.log)
    assert (network.log.path / path).read_bytes() == b"".join(before)


def test_compacted_files_are_compacted_again_with_new_ones(network: Network) -> None:
    """A small rewritten file is put together with what came later."""
    fill(network, 3)
    tidy(network, target=SMALL)
    fill(network, 2, first=3)
    before = everything(network.log)
    assert (tidy(network, target=SMALL).before, len(data_files(network.log))) == (3, 1)
    assert everything(network.log) == before


def test_files_that_are_large_enough_stay(network: Network) -> None:
    """A file of at least half the target is left alone, and nothing grows beyond the target."""
    fill(network, 4)
    sizes = [file.size for commit in network.log.commits() for file in commit.files]
    assert tidy(network, target=min(sizes) * 2).before == 0
    size = max(sizes)
    assert tidy(network, target=int(size * 2.5)).after == 2


def test_dry_run_of_compaction_changes_nothing(network: Network) -> None:
    """It only counts."""
    fill(network, 3)
    before = data_files(network.log)
    assert tidy(network, target=SMALL, dry_run=True).before == 3
    assert data_files(network.log) == before


def test_a_target_of_nothing_is_refused(network: Network) -> None:
    """There is no file of no size."""
    with pytest.raises(UsageError, match="LOG_UPKEEP_SIZE"):
        tidy(network, target=0)


def test_a_job_that_resumes_after_compaction_delivers_each_event_once(network: Network) -> None:
    """The outbox knows the log again, and goes on where it was."""
    fill(network, 3)
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    job.run_here()
    fill(network, 3, first=3)
    tidy(network, target=SMALL)
    delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS).run_here()
    found = [row["numberplate"] for row in delivered(job, "billing")]
    assert sorted(found) == sorted(f"P{number}-{row}" for number in range(6) for row in range(3))


STEPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "before the new file is synced": lambda patch: patch.setattr(directory_store._NewFile, "finish", _kill),
    "before the new file is recorded": lambda patch: patch.setattr(LaneWriter, "append", _kill),
    "before the old files are removed": lambda patch: patch.setattr(upkeep_module, "_remove", _kill),
}


def _kill(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_compaction_killed_at_any_step_loses_and_doubles_nothing(
    network: Network, monkeypatch: pytest.MonkeyPatch, step: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """After the kill, after a sweep, and after the next compaction the log reads the same."""
    fill(network, 4)
    before = everything(network.log)
    with monkeypatch.context() as patch:
        step(patch)
        with pytest.raises(Killed):
            tidy(network, target=SMALL)
    assert everything(network.log) == before
    clean(network, keep_newer_than=LATER)
    assert everything(network.log) == before
    tidy(network, target=SMALL)
    clean(network, keep_newer_than=LATER)
    assert everything(network.log) == before
    assert len(data_files(network.log)) == 1


def test_a_move_that_lost_its_new_file_keeps_the_old_ones(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweep removes a moved file only when the file that it was moved to is there."""
    fill(network, 3)
    before = everything(network.log)
    with monkeypatch.context() as patch:
        STEPS["before the old files are removed"](patch)
        with pytest.raises(Killed):
            tidy(network, target=SMALL)
    [new] = [path for path in data_files(network.log) if "compact-" in path]
    (network.log.path / new).unlink()
    clean(network, keep_newer_than=LATER)
    assert everything(network.log) == before


def test_compaction_refuses_a_damaged_file_and_leaves_it(network: Network) -> None:
    """What was not found whole is not copied."""
    fill(network, 3)
    victim = network.log.path / next(iter(network.log.commits())).files[0].path
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    before = data_files(network.log)
    with pytest.raises(EncodingError, match="LOG_FILE_DAMAGED"):
        tidy(network, target=SMALL)
    assert data_files(network.log) == before


@pytest.mark.fault("F08")
def test_damage_to_a_compacted_file_is_found(network: Network) -> None:
    """A flipped bit anywhere either leaves all rows as they are or stops the reader with a named error."""
    fill(network, 2)
    tidy(network, target=SMALL)
    before = everything(network.log)
    [name] = data_files(network.log)
    path = network.log.path / name
    whole = path.read_bytes()
    refused = 0
    for position in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            assert everything(network.log) == before
        except MaiaError as error:
            assert error.code == "LOG_FILE_DAMAGED"  # noqa: PT017 - either outcome is right
            refused += 1
    assert refused > 10
    path.unlink()
    with pytest.raises(UnavailableError, match="LOG_FILE_MISSING"):
        everything(network.log)


# -- retention


def age(network: Network, upto: int) -> datetime:
    """Give an instant between a commit and the next one."""
    commits = list(network.log.commits())
    [this] = [item for item in commits if item.sequence == upto]
    return datetime.fromtimestamp(max(file.last_stamp for file in this.files) / 1000, UTC) + timedelta(milliseconds=1)


def test_expiry_removes_the_beginning_and_says_so(network: Network) -> None:
    """The files are gone, the rest reads as before, and whoever asks for the beginning is told."""
    fill(network, 5)
    before = everything(network.log)
    first, second = ({commit.lane: commit.place} for commit in list(network.log.commits())[:2])
    done = let_go(network, before=age(network, 1))
    assert (list(done.upto.values()), done.commits, done.events, done.files) == ([1], 2, 6, 2)
    assert everything(network.log) == before[2:]
    assert len(data_files(network.log)) == 3
    with pytest.raises(NotFoundError, match="LOG_EXPIRED"):
        list(network.log.commits(after=first))
    assert [commit.sequence for commit in network.log.commits(after=second)] == [2, 3, 4]


def test_a_reader_that_planned_before_is_told_that_its_file_has_expired(network: Network) -> None:
    """It gets the name of what happened, not a missing file and not nothing."""
    fill(network, 3)
    old = list(network.log.commits())
    let_go(network, before=age(network, 0))
    with pytest.raises(UnavailableError, match="LOG_FILE_MISSING"):
        parcels(network.log, old[0])
    assert parcels(network.log, old[1])


def test_a_job_that_lags_behind_is_refused_and_a_new_one_starts_behind_the_gap(
    network: Network, tmp_path: Path
) -> None:
    """An outbox that still needs expired commits stops; a new outbox starts at the first that is left."""
    fill(network, 2)
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    job.run_here()
    fill(network, 3, first=2)
    let_go(network, before=age(network, 2))
    assert job.run_here() == 0
    assert [item.code for item in read_parked(network.ccs)] == ["LOG_EXPIRED"]
    fresh = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS, outbox=tmp_path / "fresh")
    assert fresh.run_here() == 2
    found = sorted(str(row["numberplate"]) for row in delivered(fresh, "billing"))
    assert found == [f"P{number}-{row}" for number in (3, 4) for row in range(3)]


def test_a_job_that_read_all_that_expired_goes_on(network: Network) -> None:
    """Expiry up to where the outbox is disturbs nobody."""
    fill(network, 2)
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    job.run_here()
    let_go(network, before=age(network, 1))
    fill(network, 1, first=2)
    assert job.run_here() == 1
    assert len(list(delivered(job, "billing"))) == 9


def test_a_publication_that_has_expired_still_counts_once(network: Network) -> None:
    """Publishing it again changes nothing: commits are remembered longer than their events."""
    fill(network, 2)
    let_go(network, before=LATER)
    fill(network, 2)
    assert everything(network.log) == []


def test_expiry_of_compacted_files_waits_for_their_last_commit(network: Network) -> None:
    """A rewritten file is removed when everything in it has expired."""
    fill(network, 4)
    before = everything(network.log)
    tidy(network, target=SMALL)
    cut = age(network, 1)
    assert let_go(network, before=cut).files == 0
    assert everything(network.log) == before[2:]
    assert let_go(network, before=LATER).files == 1
    assert data_files(network.log) == set()


@pytest.mark.parametrize("compacted", [False, True], ids=["plain files", "compacted files"])
def test_expiry_killed_before_removal_is_finished_by_sweep(
    network: Network, monkeypatch: pytest.MonkeyPatch, compacted: bool
) -> None:
    """Once recorded it counts; what was left lying is removed later."""
    fill(network, 3)
    if compacted:
        tidy(network, target=SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(upkeep_module, "_remove", _kill)
        with pytest.raises(Killed):
            let_go(network, before=LATER)
    assert everything(network.log) == []
    assert data_files(network.log)
    assert clean(network, keep_newer_than=LATER, dry_run=True)
    assert data_files(network.log)
    clean(network, keep_newer_than=LATER)
    assert data_files(network.log) == set()


def test_dry_run_of_expiry_and_nothing_old_change_nothing(network: Network) -> None:
    """Only the count is given."""
    fill(network, 2)
    before = everything(network.log)
    assert let_go(network, before=LATER, dry_run=True).commits == 2
    assert let_go(network, before=NOW - timedelta(days=1)).commits == 0
    assert everything(network.log) == before


# -- any order of work


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """Give a network whose first commit has a file to copy parcels from."""
    network = build(tmp_path_factory.mktemp("upkeep") / "net")
    publish_here(network, "template", [sightings(["AE05 XYZ"])])
    return network


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 3)),
        st.tuples(st.just("compact"), st.sampled_from([1 << 13, 1 << 15, 1 << 20])),
        st.tuples(st.just("expire"), st.integers(0, 12)),
        st.tuples(st.just("sweep"), st.just(0)),
    ),
    max_size=14,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(operations=OPERATIONS)
def test_whatever_upkeep_runs_readers_see_a_suffix_of_what_was_published(
    template: Network, tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int]]
) -> None:
    """A plain list of commits is the oracle: what has not expired reads exactly as published."""
    [source] = template.log.commits()
    [parcel] = parcels(template.log, source)
    log = LogDirectory(tmp_path_factory.mktemp("log"))
    own = OwnLanes(log, tmp_path_factory.mktemp("own"), KeySigner(bytes(32)))
    origin = KeySigner(bytes(32)).public_key.key_id
    published: list[list[Parcel]] = []
    expired = 0
    for name, number in operations:
        if name == "publish":
            files, rows = [], []
            for part in range(number):
                writer = log.writer(f"p{len(published)}", parcel.header.type_id, part, origin, at=NOW)
                made = replace(parcel, header=replace(parcel.header, epoch=0, stamp=1 + 1000 * len(published) + part))
                writer.add(made)
                rows.append(made)
                file = writer.close()
                assert file is not None
                files.append(file)
            at = datetime.fromtimestamp(len(published), UTC)
            own.commit(f"p{len(published)}", source.type_id, tuple(files), evidence="00" * 32, at=at)
            published.append(rows)
        elif name == "compact":
            compact(log, own, at=datetime.fromtimestamp(0, UTC), target=number)
        elif name == "expire":
            cut = datetime.fromtimestamp(number, UTC)
            expired = max(expired, min(number, len(published)))
            expire(log, own, before=cut, at=datetime.fromtimestamp(0, UTC))
        else:
            sweep(log, own, keep_newer_than=LATER)
    assert [parcels(log, commit) for commit in log.commits()] == published[expired:]
    sweep(log, own, keep_newer_than=LATER)
    assert [parcels(log, commit) for commit in log.commits()] == published[expired:]
