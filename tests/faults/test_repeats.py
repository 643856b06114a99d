"""What the log repeats is delivered once, to the outbox and to readers of `format("maia")`; a lie keeps nothing out."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from network import CCS_SUBSCRIPTIONS, Network, delivered, publish_here, sightings

from maia.domain import Domain, delivery_job
from maia.errors import MaiaError
from maia.log import EVENT, STAMP, Commit, Repeats, expire
from maia.spark.log_stream import offset_of
from maia.spark.options import SourceOptions
from maia.spark.reader import MaiaReader, MaiaStreamReader
from maia.testing import TYPE_NAME

COLUMNS = ("numberplate", "timestamp", "location", EVENT, STAMP)


class Follower:
    """Reads `readStream.format("maia")` as Spark does, one micro-batch a call, in this process."""

    def __init__(self, network: Network) -> None:
        asked = {"home": str(network.ccs), "type": TYPE_NAME, "as": "BO", "withEventId": "true"}
        self.asked = SourceOptions.of(asked)
        self.log = network.log
        self.at = -1
        self.rows: list[dict[str, object]] = []

    def follow(self) -> list[object]:
        """Read what is new; give the plates."""
        end = self.log.latest()
        reader = MaiaStreamReader(self.asked, COLUMNS)
        parts = reader.partitions(offset_of(self.log, self.at), offset_of(self.log, end))
        found = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        self.at = end
        self.rows += found
        return [row["numberplate"] for row in found]

    def read_all(self) -> list[object]:
        """Read the whole log, as `read.format("maia")` does."""
        reader = MaiaReader(self.asked, COLUMNS)
        return [row["numberplate"] for p in reader.partitions() for b in reader.read(p) for row in b.to_pylist()]


def replay(network: Network, commit: Commit, name: str) -> None:
    """Commit the files of a commit again under another name."""
    network.log.commit(name, commit.type_id, commit.files, origin=commit.origin, evidence=commit.evidence)


def claim(network: Network, commit: Commit, of: Commit, name: str) -> None:
    """Commit the files of one commit as if they held the events of another."""
    files = tuple(
        replace(file, bases=other.bases) for file, other in zip(commit.files, of.files, strict=True)
    )  # fmt: skip
    network.log.commit(name, commit.type_id, files, origin=commit.origin, evidence=commit.evidence)


def refusals(network: Network) -> Counter[str]:
    """Count what the readers were refused, by code."""
    rows = pq.read_table(network.ccs / "audit").to_pylist()
    return Counter(row["code"] for row in rows if row["kind"] == "refuse")


@pytest.mark.threat("T48")
def test_stream_drops_a_parcel_that_is_replayed_in_the_log(network: Network) -> None:
    """At once, in a later micro-batch and after a restart: the reader sees each event once, and the audit says so."""
    publish_here(network, "a", [sightings(["P1", "P2"])])
    [first] = network.log.commits()
    replay(network, first, "at once")
    reader = Follower(network)
    assert reader.follow() == ["P1", "P2"]
    replay(network, first, "later")
    publish_here(network, "b", [sightings(["P3"])])
    assert reader.follow() == ["P3"]
    replay(network, first, "after a restart")
    assert reader.follow() == []
    assert reader.read_all() == ["P1", "P2", "P3"]
    assert len({row["_event"] for row in reader.rows}) == 3
    assert set(refusals(network)) == {"DUPLICATE_EVENTS"}


@pytest.mark.threat("T48")
def test_false_claims_keep_no_event_out(network: Network) -> None:
    """Commits that name events which their parcels do not hold, before and after: the true parcel is delivered."""
    for name in ("a", "b"):
        publish_here(network, name, [sightings([f"P {name}"])])
    first, second = network.log.commits()
    later = network.root / "later"
    (network.log.path / "_commits" / "000000000001.json").rename(later)
    claim(network, first, second, "claim")
    network.log.commit("b", second.type_id, second.files, origin=second.origin, evidence=second.evidence)
    claim(network, first, second, "claim again")
    replay(network, second, "replay")
    reader = Follower(network)
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    job.run_here()
    assert reader.read_all() == reader.follow() == ["P a", "P b"]
    assert [row["numberplate"] for row in delivered(job, "billing")] == ["P a", "P b"]
    codes = Counter(letter.code for letter in job.outbox.dead_letters())
    assert codes == {"EVENTS_MISNAMED": 1, "DUPLICATE_EVENTS": 2}


def age(commit: Commit) -> datetime:
    """Give an instant after a commit and before the next one."""
    return datetime.fromtimestamp(max(file.last_stamp for file in commit.files) / 1000, UTC) + timedelta(milliseconds=1)


@pytest.mark.threat("T48")
def test_replay_of_what_has_expired_is_refused(network: Network) -> None:
    """It is older than everything the log held when it expired: readers refuse it by name and go on."""
    for name in ("a", "b", "c"):
        publish_here(network, name, [sightings([f"P {name}"])])
    reader = Follower(network)
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    assert reader.follow() == ["P a", "P b", "P c"]
    job.run_here()
    first, second, third = network.log.commits()
    copies = {file.path: (network.log.path / file.path).read_bytes() for c in (first, second) for file in c.files}
    expire(network.log, before=age(second), now=datetime.now(UTC))
    for path, data in copies.items():  # somebody kept the files
        (network.log.path / path).write_bytes(data)
    assert second.files[0].last_stamp < Repeats(network.log).horizon <= third.files[0].first_stamp
    replay(network, first, "replay")
    publish_here(network, "d", [sightings(["P d"])])
    assert reader.follow() == ["P d"]
    job.run_here()
    assert [row["numberplate"] for row in delivered(job, "billing")] == ["P a", "P b", "P c", "P d"]
    assert [letter.code for letter in job.outbox.dead_letters()] == ["STAMP_BEHIND"]
    assert set(refusals(network)) == {"STAMP_BEHIND"}
    assert len(job.repeats._known.keys) <= 4


@pytest.mark.threat("T48")
def test_expired_parcel_is_known_while_older_ones_are_still_there(network: Network) -> None:
    """A long publication keeps the horizon back; what expired meanwhile is then known by its name."""
    publish_here(network, "long", [sightings(["L1"])])
    publish_here(network, "a", [sightings(["P a"])])
    long, first = network.log.commits()
    commits = network.log.path / "_commits"
    for path in commits.iterdir():
        path.unlink()
    for commit, name in ((first, "a"), (long, "long")):  # begun before the other, committed after it
        network.log.commit(name, commit.type_id, commit.files, origin=commit.origin, evidence=commit.evidence)
    reader = Follower(network)
    assert reader.follow() == ["P a", "L1"]
    [file] = first.files
    data = (network.log.path / file.path).read_bytes()
    publish_here(network, "young", [sightings(["Y"])])
    assert Repeats(network.log).horizon == 0
    made = expire_first(network, first)
    assert made.upto == 0
    (network.log.path / file.path).write_bytes(data)
    assert Repeats(network.log).horizon == long.files[0].first_stamp < file.first_stamp
    replay(network, first, "replay")
    assert reader.follow() == ["Y"]
    assert set(refusals(network)) == {"DUPLICATE_EVENTS"}
    # What comes after is younger than all of it, and new.
    publish_here(network, "after", [sightings(["Z"])])
    assert reader.follow() == ["Z"]


def expire_first(network: Network, first: Commit) -> object:
    """Let the first commit expire although the second holds an older parcel."""
    from maia.log.directory import LogDirectory

    real = LogDirectory.instant

    def instant(self: LogDirectory, commit: Commit, *, now: datetime) -> datetime:
        return real(self, commit, now=now) + (timedelta(hours=1) if commit.sequence else timedelta())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogDirectory, "instant", instant)
        return expire(network.log, before=age(first), now=datetime.now(UTC) + timedelta(days=1))


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_of_the_log_deliver_each_event_once(network: Network, seed: int) -> None:
    """Publications, replays and lies in any order, read by a job and a stream at any moment: every plate once."""
    chosen = random.Random(seed)
    reader = Follower(network)
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    made: list[Commit] = []
    plates: list[str] = []
    for number in range(14):
        act = chosen.choice(("publish", "publish", "replay", "claim", "read", "deliver"))
        if act == "publish" or not made:
            plates += [f"P{number}-{row}" for row in range(chosen.randrange(1, 4))]
            publish_here(network, f"p{number}", [sightings(p for p in plates if p.startswith(f"P{number}-"))])
            made += [commit for commit in network.log.commits() if commit.publication == f"p{number}"]
        elif act == "replay":
            replay(network, chosen.choice(made), f"replay {number}")
        elif act == "claim":
            claim(network, chosen.choice(made), chosen.choice(made), f"claim {number}")
        elif act == "read":
            reader.follow()
        else:
            job.run_here(max_commits=chosen.randrange(1, 4))
    reader.follow()
    job.run_here()
    assert [row["numberplate"] for row in reader.rows] == plates
    assert [row["numberplate"] for row in delivered(job, "billing")] == plates
    assert reader.read_all() == plates


def test_log_that_was_put_back_is_read_anew(network: Network, tmp_path: Path) -> None:
    """What this process knew of a longer log under the same path is forgotten."""
    publish_here(network, "a", [sightings(["P1"])])
    shutil.copytree(network.log.path, tmp_path / "saved")
    publish_here(network, "b", [sightings(["P2"])])
    assert Follower(network).read_all() == ["P1", "P2"]
    shutil.rmtree(network.log.path)
    shutil.copytree(tmp_path / "saved", network.log.path)
    assert Follower(network).read_all() == ["P1"]


def test_damage_of_what_was_claimed_before_stops_the_reader(network: Network) -> None:
    """Whether a parcel is a repetition cannot be told from a damaged file; nothing is guessed."""
    publish_here(network, "a", [sightings(["P1"])])
    [first] = network.log.commits()
    reader = Follower(network)
    reader.follow()
    path = network.log.path / first.files[0].path
    copy = path.with_name(f"copy-{path.name}")
    copy.write_bytes(path.read_bytes())
    files = (replace(first.files[0], path=copy.relative_to(network.log.path).as_posix()),)
    network.log.commit("replay", first.type_id, files, origin=first.origin, evidence=first.evidence)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MaiaError, match="LOG_FILE_DAMAGED"):
        reader.follow()
