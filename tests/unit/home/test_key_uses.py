"""Uses of keys, counted over tasks and restarts: a key that reached its cap seals no more, whoever asks."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "faults"))

from network import CCS_SUBSCRIPTIONS, Network, build, delivered, publish_here, sightings

import maia.domain.sealing_keys as sealing
from maia.domain import Domain, delivery_job
from maia.encryption import EpochId
from maia.errors import EncodingError, SealError
from maia.home import Home, key_uses
from maia.home.files import write_file
from maia.home.key_uses import KeyUses
from maia.kernel import milliseconds


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give two homes over one empty log."""
    return build(tmp_path / "net")


def tasks(home: Home, count: int, *, cap: int, each: int = 1) -> int:
    """Seal as so many tasks would, each with a provider of its own; tell how many parcels went out."""
    done = 0
    for _ in range(count):
        keys = sealing.SealingKeys(home, cap=cap)
        for _ in range(each):
            stamp = home.next_stamp()
            for group in keys.groups():
                if group.label != b"*":
                    keys.sealing_epoch(group, stamp)
            done += 1
    return done


@pytest.mark.threat("T46")
def test_uses_add_up_over_tasks_and_end_at_the_cap(network: Network) -> None:
    """Twenty tasks with providers of their own share one count; at the cap the key must be refreshed."""
    home = Home.open(network.ccs)
    assert tasks(home, 20, cap=20) == 20
    with pytest.raises(SealError) as refused:
        tasks(home, 1, cap=20)
    assert refused.value.code == "KEY_EXHAUSTED"
    counted = KeyUses(home.path / "key-uses", 20).counted()
    assert {count for (group, _), count in counted.items() if group.label != b"*"} == {20}
    ring = home.keyring()
    for group in ring.groups():
        ring.add(group, EpochId(milliseconds(datetime.now(UTC) + timedelta(milliseconds=1))), os.urandom(32))
    home.save_keyring(ring)
    while milliseconds(datetime.now(UTC)) <= max(ring.epochs(ring.groups()[0])):
        pass
    assert tasks(home, 5, cap=20) == 5


@pytest.mark.threat("T46")
def test_uses_are_never_counted_too_low_and_written_seldom(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand parcels of one task: some dozen writes, and a count between the truth and twice that."""
    home = Home.open(network.ccs)
    keys, uses = home.keyring(), KeyUses(home.path / "key-uses", 1 << 30)
    writes: list[Path] = []
    monkeypatch.setattr(key_uses, "write_file", lambda *a, **k: writes.append(a[0]) or write_file(*a, **k))
    groups = [group for group in keys.groups() if group.label != b"*"]
    for stamp in range(1000):
        for group in groups:
            uses.take(keys, group, keys.epochs(group)[0], stamp=milliseconds(datetime.now(UTC)) + stamp)
    counts = [count for (group, _), count in uses.counted().items() if group.label != b"*"]
    assert all(1000 <= count <= 2000 for count in counts)
    assert len(writes) <= 12


@pytest.mark.threat("T46")
def test_publishing_stops_at_the_cap_and_loses_nothing(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cap of three: the fourth publication is refused and not acknowledged; after a refresh it goes out, once."""
    real = sealing.SealingKeys.__init__
    monkeypatch.setattr(sealing.SealingKeys, "__init__", lambda self, home: real(self, home, cap=3))
    for number in range(3):
        publish_here(network, f"p{number}", [sightings([f"P{number}"])])
    with pytest.raises(SealError, match="KEY_EXHAUSTED"):
        publish_here(network, "p3", [sightings(["P3"])])
    assert len(list(network.log.commits())) == 3
    home = Home.open(network.ccs)
    ring = home.keyring()
    for group in ring.groups():
        ring.add(group, EpochId(home.next_stamp()), os.urandom(32))
    home.save_keyring(ring)
    publish_here(network, "p3", [sightings(["P3"])])
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    job.run_here()
    assert [row["numberplate"] for row in delivered(job, "billing")] == ["P0", "P1", "P2", "P3"]


def test_damaged_counts_stop_sealing(tmp_path: Path) -> None:
    """What cannot be read is not taken for nought."""
    path = tmp_path / "key-uses"
    for data in (b"", b"(8:key-uses1:x)", b"(8:key-uses1:1(1:a1:b1:x1:1))", b"(8:key-uses1:11:a)"):
        path.write_bytes(data)
        with pytest.raises(EncodingError):
            KeyUses(path, 10).counted()
    path.unlink()
    assert KeyUses(path, 10).counted() == {}
