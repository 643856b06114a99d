"""Types that go direct: from the domain that publishes to one that may read, over a link, and through nobody else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from link_world import PLATE, LinkWorld, LogProcess, log_of, make_world, pull, serving_log, smith_reads

import maia
from maia.clients import AddressPolicy, LogClient
from maia.errors import DeniedError, EncodingError
from maia.events import Options, Release
from maia.testing import Command

EVENTS = 2
LOOPBACK = AddressPolicy(loopback=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LinkWorld:
    """Build three domains; the type goes direct, and the congestion charge service has published events of it."""
    return make_world(tmp_path_factory.mktemp("direct"), options=Options(release=Release.DIRECT), events=EVENTS)


@pytest.fixture(scope="module")
def ccs(world: LinkWorld) -> Iterator[LogProcess]:
    """Serve the log of the congestion charge service."""
    with serving_log(world.ccs) as service:
        yield service


@pytest.fixture(scope="module")
def met(world: LinkWorld, ccs: LogProcess, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Let the Met copy straight from there."""
    command = world.reader(tmp_path_factory.mktemp("met"))
    command.do("key", "import", "CB", str(world.ccs / "keys" / "CB.pub"))
    command.do("link", "add", "ccs", ccs.url, "--key", "CB")
    assert pull(command.home, "ccs")["events"] == EVENTS
    return command


def traces(home: Path) -> list[Path]:
    """Find whatever lies in a log under the id of a type."""
    return sorted(log_of(home).glob("type=*/**/*"))


@pytest.mark.requirement("8.11")
def test_events_go_from_their_domain_to_the_one_that_reads_and_through_no_third(
    world: LinkWorld, ccs: LogProcess, met: Command, tmp_path: Path
) -> None:
    """The Met has them; Kent, which may connect and has no right to the type, gets nothing, not even sealed."""
    assert [row["numberplate"] for row in smith_reads(met.home)] == [PLATE] * EVENTS
    kent = Command(world.kent)
    kent.do("link", "add", "ccs", ccs.url, "--key", "CB")
    done = pull(kent.home, "ccs")
    assert (done["events"], done["parked"]) == (0, [])
    assert traces(kent.home) == []
    # By its name no object is given either: a neighbour may have heard of it.
    names = [str(path.relative_to(log_of(world.ccs))) for path in traces(world.ccs) if path.is_file()]
    assert {name.rpartition(".")[2] for name in names} >= {"record", "parquet"}
    broker = maia.open(world.kent).home.broker
    with LogClient(ccs.url, signer=broker, server_key=world.broker.public_key, policy=LOOPBACK) as client:
        for name in names:
            with pytest.raises(EncodingError, match="DENIED"):
                client.get(name, limit=1 << 20)
        folder = names[0].partition("/")[0]
        assert client.list_folders("", "", limit=10) == client.list_folders(folder, "", limit=10) == []
        for path, query in (
            ("/v1/log/records", {"name": next(name for name in names if name.endswith(".record"))}),
            ("/v1/log/objects", {"name": names[-1], "start": 0, "length": 1}),
        ):
            with pytest.raises(DeniedError):
                client.call("GET", path, query=query)
    # The Met serves its own log in turn, also to those who may read the type: it does not pass a copy on.
    with serving_log(met.home) as service:
        for name, home in (("kent", world.kent), ("second", world.reader(tmp_path).home)):
            command = Command(home)
            if home == world.kent:
                command.do("key", "import", "MB", str(world.met / "keys" / "MB.pub"))
            command.do("link", "add", "met", service.url, "--key", "MB")
            assert pull(home, "met")["events"] == 0, name
            assert traces(home) == []


@pytest.mark.requirement("8.11")
def test_what_a_third_domain_carries_all_the_same_is_not_taken_from_it(world: LinkWorld, tmp_path: Path) -> None:
    """Kent stole the files and serves them, not knowing that they go direct: the Met does not copy, and says why."""
    shutil.copytree(world.kent, tmp_path / "kent")
    shutil.copytree(log_of(world.ccs), log_of(tmp_path / "kent"), dirs_exist_ok=True)
    reader = world.reader(tmp_path / "reader")
    with serving_log(tmp_path / "kent") as kent:
        reader.do("link", "add", "kent", kent.url, "--key", "KB")
        ran = reader("link", "pull", "kent", "--json")
    assert (ran.code, ran.data["events"]) == (4, 0)
    assert [item["code"] for item in ran.data["parked"]] == ["DIRECT_ONLY"]
    assert traces(reader.home) == []
    # Files that nobody proves a key for are no direct way either.
    reader.do("link", "add", "files", str(log_of(world.ccs)))
    ran = reader("link", "pull", "files", "--json")
    assert (ran.code, ran.data["events"]) == (4, 0)
    assert [item["code"] for item in ran.data["parked"]] == ["DIRECT_ONLY"]


@pytest.mark.requirement("8.11")
def test_a_right_to_read_is_no_use_without_a_right_to_connect_that_the_home_knows(
    world: LinkWorld, tmp_path: Path
) -> None:
    """The Met may read the type, and shows what lets it connect; a home that does not know of it gives it nothing."""
    shutil.copytree(world.ccs, tmp_path / "ccs")
    identity = world.homes.network.certificates["Cap2"].certificate_id.hex()
    [kept] = [path for path in (tmp_path / "ccs" / "certificates").iterdir() if path.name.startswith(identity[:16])]
    for known in (True, False):
        if not known:
            kept.unlink()
        reader = world.reader(tmp_path / f"reader-{known}")
        reader.do("key", "import", "CB", str(world.ccs / "keys" / "CB.pub"))
        with serving_log(tmp_path / "ccs") as service:
            reader.do("link", "add", "ccs", service.url, "--key", "CB")
            assert pull(reader.home, "ccs")["events"] == (EVENTS if known else 0)
        assert bool(traces(reader.home)) is known
