"""What a micro-batch of a reading stream costs: one plan, two looks at the log; an idle poll one look and no plan.

The reader is the one that Spark drives, in the network's time; nothing is counted that takes time, only what is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import BufferedReader
from pathlib import Path

import pytest
from key_network import Network, joined
from pyspark.sql.streaming.datasource import ReadAllAvailable

from maia.authority import Action, network_right, type_right
from maia.domain import Domain, read_parked, type_stretch
from maia.domain.fetched import Fetcher
from maia.domain.following import Follower
from maia.domain.plans import Planner
from maia.encryption import Keyring
from maia.errors import UnavailableError
from maia.home import Home
from maia.log import DirectoryStore, read_audit
from maia.principals import KeySigner
from maia.spark.options import SourceOptions
from maia.spark.reader import LogPartition, MaiaReader, MaiaStreamReader
from maia.testing import NETWORK_NAME, TYPE_NAME, grant

PLATES = ["AE05 XYZ", "BX51 ABC"]


class Stream:
    """Detective Smith's stream at the Met, driven as Spark drives it."""

    def __init__(self, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
        self.network = network
        self.home = network.homes["met"]
        self.counts: Counter[str] = Counter()
        self.offset: dict[str, str] = {}
        monkeypatch.setattr(Domain, "open", lambda path: Domain(Home.open(path), clock=lambda: network.now))
        for kind, name in ((Follower, "follow"), (Planner, "subscription"), (Fetcher, "challenge")):
            monkeypatch.setattr(kind, name, self._counted(getattr(kind, name), name))
        self.opened: list[str] = []
        self._watch(monkeypatch)
        self.who = "Smith"
        self.reader = self.open()

    def _counted(self, real: Callable[..., object], name: str) -> Callable[..., object]:
        def call(*positional: object, **named: object) -> object:
            self.counts[name] += 1
            return real(*positional, **named)

        return call

    def _watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Note which segments are opened, and how often the keyring is."""
        reading, ring = DirectoryStore.open, Home.keyring

        def opening(store: DirectoryStore, name: str, *, limit: int) -> BufferedReader:
            if name.endswith(".parquet"):
                self.opened.append(name)
            return reading(store, name, limit=limit)

        def opening_ring(home: Home) -> Keyring:
            self.opened.append("keyring")
            return ring(home)

        monkeypatch.setattr(DirectoryStore, "open", opening)
        monkeypatch.setattr(Home, "keyring", opening_ring)

    def open(self) -> MaiaStreamReader:
        """Begin anew, as after a restart."""
        asked = SourceOptions(home=str(self.home.path), type=TYPE_NAME, as_=self.who)
        return MaiaStreamReader(asked, ("location",))

    def offer(self) -> dict[str, str]:
        """Ask what there is, as Spark does whenever it polls."""
        return self.reader.latestOffset(self.offset, ReadAllAvailable())

    def begin(self, end: dict[str, str]) -> list[LogPartition]:
        """Begin the micro-batch that was offered."""
        found = [part for part in self.reader.partitions(self.offset, end) if isinstance(part, LogPartition)]
        self.offset = end
        return found

    def asked(self) -> dict[str, int]:
        """Tell what was asked since the last time."""
        found = dict(self.counts)
        self.counts.clear()
        return found

    def certificate(self) -> Path:
        """Find the certificate that gives Smith his right."""
        return self.home.certificates.add(self.network.people.certificates["Cap10"])

    def refused(self) -> list[str]:
        """Tell who was refused something."""
        return [row.subject for row in read_audit(self.home.path / "audit") if row.kind == "refuse"]

    def parked(self) -> list[str]:
        """Tell why the stream as a whole waits."""
        return [item.code for item in read_parked(self.home.path) if item.lane == "/"]


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Give a network whose brokers have joined."""
    with joined(tmp_path) as made:
        yield made


@pytest.fixture
def stream(network: Network, monkeypatch: pytest.MonkeyPatch) -> Stream:
    """Give a stream that has gone through a first micro-batch, so that it knows its origins."""
    made = Stream(network, monkeypatch)
    network.publish("first", PLATES)
    network.pass_time(1)
    assert len(made.begin(made.offer())) == 1
    made.asked()
    return made


def test_a_micro_batch_is_planned_once(network: Network, stream: Stream) -> None:
    """What is offered is what is begun: one plan, and whoever confirms rights is asked once."""
    network.publish("second", PLATES)
    network.pass_time(1)
    stream.asked()
    assert len(stream.begin(stream.offer())) == 1
    assert stream.asked() == {"follow": 2, "subscription": 1, "challenge": 1}


def test_an_idle_poll_plans_nothing_and_asks_nobody(stream: Stream) -> None:
    """It looks at the log, once."""
    for _ in range(3):
        assert stream.offer() == stream.offset
        assert stream.asked() == {"follow": 1}


def test_a_restarted_stream_plans_what_was_offered_before(network: Network, stream: Stream) -> None:
    """Spark repeats a micro-batch of which it does not know that it ended."""
    network.publish("second", PLATES)
    network.pass_time(1)
    end = stream.offer()
    stream.reader = stream.open()
    stream.asked()
    assert len(stream.begin(end)) == 1
    counts = stream.asked()
    assert counts["subscription"] == 1


def test_a_plan_that_waited_is_made_again(network: Network, stream: Stream) -> None:
    """Rights are those of the moment at which a micro-batch begins."""
    network.publish("second", PLATES)
    network.pass_time(1)
    end = stream.offer()
    network.pass_time(60)
    stream.asked()
    (part,) = stream.begin(end)
    assert stream.asked()["subscription"] == 1
    assert part.plan.term.made == network.now


def test_what_the_home_loses_between_offer_and_beginning_is_seen(network: Network, stream: Stream) -> None:
    """The plan of the offer does not outlive the evidence that it stands on."""
    network.publish("second", PLATES)
    network.pass_time(1)
    end = stream.offer()
    stream.certificate().unlink()
    with pytest.raises(UnavailableError) as told:
        stream.begin(end)
    assert told.value.code == "LANE_PARKED"


def test_a_doubt_parks_what_there_is_to_see_and_nothing_else(network: Network, stream: Stream) -> None:
    """A certificate is gone: an idle stream says nothing, one with something to offer waits, and goes on later."""
    path = stream.certificate()
    kept = path.read_bytes()
    path.unlink()
    assert stream.offer() == stream.offset
    assert stream.parked() == []
    network.publish("second", PLATES)
    network.pass_time(1)
    assert stream.offer() == stream.offset
    assert stream.parked() == ["CERTIFICATE_MISSING"]
    path.write_bytes(kept)
    assert len(stream.begin(stream.offer())) == 1
    assert stream.parked() == []


def test_a_denial_that_is_proven_is_told_when_the_micro_batch_begins(network: Network, stream: Stream) -> None:
    """A right has ended: the stream goes on, and what it does not see is in the audit, once."""
    met, jones = network.people.people["Met"], KeySigner.generate()
    owner, hour = network.people.key("PITO"), (network.now, network.now + timedelta(hours=1))
    stream.home.add_key("Jones", jones)
    network.grant(
        grant(met, jones, network_right(owner, NETWORK_NAME, [Action.CONNECT])),
        grant(met, jones, type_right(owner, TYPE_NAME, actions=[Action.SUBSCRIBE]), valid=hour),
    )
    stream.who, stream.offset = "Jones", {}
    stream.reader = stream.open()
    assert len(stream.begin(stream.offer())) == 1
    network.publish("second", PLATES)
    network.pass_time(7200)
    end = stream.offer()
    assert end != stream.offset
    assert stream.refused() == []
    assert stream.begin(end) == []
    assert stream.refused() == ["Jones"]


def test_segments_are_gone_through_once_before_they_are_offered_and_the_keyring_once(
    network: Network, stream: Stream
) -> None:
    """A home in key groups looks at the newest parcel of each segment while it compares its digest."""
    for number in range(5):
        network.publish(f"more {number}", PLATES)
        network.pass_time(1)
    domain = Domain.open(stream.home.path)
    name, at = domain.find_type(TYPE_NAME), domain.follow()
    type_stretch(domain, name, after=stream.offset, at=at)  # knows its origins from now on
    stream.opened.clear()
    found = type_stretch(domain, name, after=stream.offset, at=at)
    files = [file.path for commit in found.commits for file in commit.files]
    assert len(files) == 5
    assert sorted(stream.opened) == sorted(["keyring", *files])
    assert found.parked == ()
    stream.opened.clear()
    type_stretch(domain, name, after=found.upto, at=at)
    assert stream.opened == []


def test_a_batch_looks_once_and_plans_once(stream: Stream) -> None:
    """Whoever reads what there is now asks no more than a stream."""
    asked = SourceOptions(home=str(stream.home.path), type=TYPE_NAME, as_="Smith")
    assert len(MaiaReader(asked, ("location",)).partitions()) == 1
    found = stream.asked()
    assert found["subscription"] == found["challenge"] == 1
    assert found["follow"] <= 2  # a process that has just begun listens once more, to the lists of its origins
