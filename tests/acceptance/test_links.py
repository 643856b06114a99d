"""Links: domains that share no log; one carries for others, and may tamper, drop, fork, roll back and inject."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from link_world import (
    EVENTS,
    FORKED,
    PLACE,
    PLATE,
    LinkWorld,
    LogProcess,
    Stop,
    kill,
    log_of,
    make_world,
    pull,
    pulling,
    records,
    segments,
    serving_log,
    smith_reads,
)
from processes import environment, free_port

import maia
from maia.authority import Action, network_right
from maia.clients import AddressPolicy, LogClient
from maia.errors import DeniedError, MalformedError
from maia.principals import KeySigner, TestKind
from maia.testing import NETWORK_NAME, Command, grant, listing, online
from maia.wire import encode_octets

LOOPBACK = AddressPolicy(loopback=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LinkWorld:
    """Build the three domains; the congestion charge service has published."""
    return make_world(tmp_path_factory.mktemp("links"))


@pytest.fixture(scope="module")
def ccs(world: LinkWorld) -> Iterator[LogProcess]:
    """Serve the log of the congestion charge service."""
    with serving_log(world.ccs) as service:
        yield service


@pytest.fixture(scope="module")
def carried(world: LinkWorld, ccs: LogProcess) -> Path:
    """Let Kent copy all of it; give Kent's log."""
    Command(world.kent).do("link", "add", "ccs", ccs.url, "--key", "CB")
    pull(world.kent, "ccs")
    return log_of(world.kent)


@pytest.fixture(scope="module")
def between() -> Iterator[Stop]:
    """Stand before Kent's service, and hold the sixth request for a segment for ever."""
    made = Stop(b"GET /v1/log/objects?name=type", 6)
    yield made
    made.close()


@pytest.fixture(scope="module")
def kent(world: LinkWorld, carried: Path, between: Stop) -> Iterator[LogProcess]:
    """Serve the log of Kent."""
    with serving_log(world.kent, between.name) as service:
        between.far = service.port
        yield service


@pytest.fixture
def log_of_kent(carried: Path, tmp_path: Path) -> Iterator[Path]:
    """Give Kent's log for a test to spoil, and mend it afterwards."""
    shutil.copytree(carried, tmp_path / "whole")
    yield carried
    shutil.rmtree(carried)
    shutil.copytree(tmp_path / "whole", carried)


@pytest.fixture
def met(world: LinkWorld, kent: LogProcess, tmp_path: Path) -> Command:
    """Give a home of the Met that has a link to Kent and has seen nothing yet."""
    command = world.reader(tmp_path)
    command.do("link", "add", "kent", kent.url, "--key", "KB")
    return command


def parked(command: Command) -> list[str]:
    """Pull once and tell which codes lanes are parked with; `maia status` has to name them as well."""
    ran = command("link", "pull", "kent", "--json")
    codes = [item["code"] for item in ran.data["parked"]]
    assert ran.code == (4 if codes else 0), ran.out
    told = [item["code"] for item in command.do("status")["log"]["parked"] if item["reader"] == "link kent"]
    assert told == codes
    return codes


# ---------------------------------------------------------------- the way


def test_rows_travel_over_two_links_and_the_domain_between_holds_no_plaintext(
    world: LinkWorld, carried: Path, met: Command
) -> None:
    """Every event once, from a log to a log to a log, each of another domain; who carries them can read nothing."""
    done = pull(met.home, "kent")
    assert (done["events"], done["parked"], met.do("link", "pull", "kent")["records"]) == (EVENTS, [], 0)
    rows = smith_reads(met.home)
    assert [row["numberplate"] for row in rows] == [PLATE] * EVENTS
    assert len({row["timestamp"] for row in rows} | {None}) > 1
    for path in carried.rglob("*"):
        if path.is_file():
            assert not any(word.encode() in path.read_bytes() for word in (PLATE, PLACE)), path
    names = {path.relative_to(log_of(world.ccs)) for path in segments(world.ccs) + records(world.ccs)}
    for home in (world.kent, met.home):
        log = log_of(home)
        assert {path.relative_to(log) for path in segments(home) + records(home)} == names
        assert all((log / name).read_bytes() == (log_of(world.ccs) / name).read_bytes() for name in names)


def test_a_link_that_is_killed_goes_on_and_copies_nothing_twice(met: Command, kent: LogProcess, between: Stop) -> None:
    """SIGKILL while a segment is on its way: what is there is whole, and the rest comes once."""
    met.do("link", "remove", "kent")
    met.do("link", "add", "kent", f"http://{between.name}", "--key", "KB")
    process = pulling(met.home, "kent")
    between.held.wait()
    kill(process)
    had = len(records(met.home))
    assert 0 < had < EVENTS
    assert len(smith_reads(met.home)) == had
    met.do("link", "remove", "kent")
    met.do("link", "add", "kent", kent.url, "--key", "KB")
    assert met.do("link", "pull", "kent")["events"] == EVENTS - had
    assert len(smith_reads(met.home)) == EVENTS


# ---------------------------------------------------------------- who carries is not believed


@dataclass(frozen=True)
class Deed:
    """What Kent does to what it carries, and what is said then."""

    do: Callable[[Path, Path], None]
    code: str
    before: int
    """How many events the Met has all the same."""


def _tamper(log: Path, _past: Path) -> None:
    segment = _segment_of(log, 5)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)


def _drop_commit(log: Path, _past: Path) -> None:
    _records(log)[5].unlink()


def _drop_segment(log: Path, _past: Path) -> None:
    _segment_of(log, 5).unlink()


def _inject(log: Path, _past: Path) -> None:
    record = _records(log)[5]
    data = bytearray(record.read_bytes())
    data[-10] ^= 1  # in the signature
    record.write_bytes(data)


def _replay(log: Path, _past: Path) -> None:
    found = _records(log)
    found[5].write_bytes(found[4].read_bytes())


def _fork(log: Path, past: Path) -> None:
    for record in _records(past)[FORKED : FORKED + 2]:
        segment = _segment_of(past, int(record.stem))
        for file in (record, segment):
            target = log / file.relative_to(past)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)


def _records(log: Path) -> list[Path]:
    return sorted(log.glob("type=*/origin=*/*.record"))


def _segment_of(log: Path, number: int) -> Path:
    raw = _records(log)[number].read_bytes()
    return next(path for path in log.glob("type=*/origin=*/date=*/*") if path.name.encode() in raw)


DEEDS = {
    "tampers with a segment": Deed(_tamper, "LOG_FILE_DAMAGED", 5),
    "drops a segment": Deed(_drop_segment, "LOG_FILE_MISSING", 5),
    "drops a commit": Deed(_drop_commit, "LANE_GAP", 5),
    "injects a commit of its own": Deed(_inject, "LANE_GAP", 5),
    "serves an old commit again": Deed(_replay, "LANE_GAP", 5),
    "shows a fork of its origin's": Deed(_fork, "LANE_FORKED", 7),
}


@pytest.mark.requirement("22.16")
@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS.keys())
def test_what_the_one_between_does_is_found_and_stops_nothing_else(
    world: LinkWorld, log_of_kent: Path, met: Command, deed: Deed
) -> None:
    """The lane waits where it is sure, by name; when Kent serves what it was given, all of it comes, once."""
    whole = {path: path.read_bytes() for path in log_of_kent.rglob("*") if path.is_file()}
    deed.do(log_of_kent, log_of(world.past))
    assert parked(met) == [deed.code]
    (state,) = met("link", "status", "kent", "--json").data["links"]
    assert [item["code"] for item in state["parked"]] == [deed.code]
    if deed.code != "LANE_FORKED":
        assert len(records(met.home)) == deed.before
        for path, data in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        assert parked(met) == []
        assert [row["numberplate"] for row in smith_reads(met.home)] == [PLATE] * EVENTS
    assert met("audit", "--kind", "alarm", "--json").out.count(deed.code) >= 1


@pytest.mark.requirement("22.16")
def test_a_fork_and_a_rollback_are_kept_as_evidence(world: LinkWorld, log_of_kent: Path, met: Command) -> None:
    """Whoever was served one thing and then another has both, signed by their origin; who hides a log is named."""
    assert parked(met) == []
    whole = {path: path.read_bytes() for path in log_of_kent.rglob("*") if path.is_file()}
    last = _records(log_of_kent)[-1]
    last.unlink()
    assert parked(met) == ["LANE_ROLLED_BACK"]
    other = _records(log_of(world.past))[-1]
    shutil.copy(other, last)
    assert parked(met) == ["LANE_FORKED"]
    (state,) = met("link", "status", "kent", "--json").data["links"]
    (forked,) = [Path(folder) for folder in state["contrary"] if "lane_forked" in folder]
    assert {path.read_bytes() for path in forked.iterdir()} == {whole[last], other.read_bytes()}
    shutil.rmtree(log_of_kent)
    log_of_kent.mkdir()
    assert parked(met) == ["LANE_ROLLED_BACK"]
    assert len(smith_reads(met.home)) == EVENTS  # what was copied stays


@pytest.mark.requirement("22.16")
def test_who_serves_an_old_head_is_named(world: LinkWorld, log_of_kent: Path, met: Command) -> None:
    """A log of yesterday has all its signatures, and says that nothing came since."""
    (head,) = log_of_kent.glob("type=*/origin=*/head")
    old = head.read_bytes()
    Command(world.ccs).do("log", "reassert")
    shutil.copy(next(log_of(world.ccs).glob("type=*/origin=*/head")), head)
    assert head.read_bytes() != old
    assert parked(met) == []
    head.write_bytes(old)
    assert parked(met) == ["LANE_ROLLED_BACK"]
    (state,) = met("link", "status", "kent", "--json").data["links"]
    (folder,) = state["contrary"]
    assert {path.read_bytes() for path in Path(folder).iterdir()} >= {old}


# ---------------------------------------------------------------- who may copy


@pytest.mark.requirement("22.12")
def test_a_stranger_is_refused_whatever_it_shows(world: LinkWorld, ccs: LogProcess, tmp_path: Path) -> None:
    """The right to connect is asked for, of the key that was proven: Kent's certificates are of no use to others."""
    stranger = Command(tmp_path / "stranger")
    stranger.do("domain", "init", str(stranger.home), "--network", f"PITO/{NETWORK_NAME}")
    home = maia.open(stranger.home).home
    home.add_public_key("PITO", world.homes.network.key("PITO"))
    home.add_public_key("CB", world.broker.public_key)
    stranger.do("link", "add", "ccs", ccs.url, "--key", "CB")
    assert stranger.refused("link", "pull", "ccs")[0] == 3
    stolen = [certificate.raw for certificate in world.capabilities.values()]
    with LogClient(ccs.url, signer=home.broker, server_key=world.broker.public_key, policy=LOOPBACK) as client:
        with pytest.raises(DeniedError):
            client.call("POST", "/v1/log/introduction", body=_shown(stolen))
        with pytest.raises(DeniedError):
            client.list_folders("", "", limit=10)
        for name in ("_evidence/" + "0" * 64, f"type={'0' * 64}/origin={'0' * 64}/{0:012d}.record"):
            with pytest.raises(DeniedError):
                client.get(name, limit=10)
    assert records(home.path) == []


@pytest.mark.requirement("22.16")
def test_a_neighbour_that_was_revoked_copies_no_more(world: LinkWorld, ccs: LogProcess, tmp_path: Path) -> None:
    """Who was found out loses its right to connect, and with it the log, also in the middle of a session."""
    pito, essex = world.homes.network.people["PITO"], KeySigner.generate()
    right = network_right(pito.public_key, NETWORK_NAME, [Action.CONNECT])
    shown = grant(pito, essex, right, tests=(online(TestKind.CRL, pito),))
    good = listing(TestKind.CRL, pito, sequence=3)
    with LogClient(ccs.url, signer=essex, server_key=world.broker.public_key, policy=LOOPBACK) as client:
        client.call("POST", "/v1/log/introduction", body=_shown([shown.raw], [good.raw]))
        assert client.list_folders("", "", limit=10)
        (tmp_path / "revoked.crl").write_bytes(listing(TestKind.CRL, pito, [shown], sequence=4).raw)
        Command(world.ccs).do("statement", "add", str(tmp_path / "revoked.crl"))
        with pytest.raises(DeniedError):
            _ask_on(client)
        with pytest.raises(DeniedError):
            client.call("POST", "/v1/log/introduction", body=_shown([shown.raw], [good.raw]))


def test_nothing_but_lanes_is_served(world: LinkWorld, ccs: LogProcess) -> None:
    """A neighbour that may connect reads records, heads, segments and evidence; nothing else has a name."""
    (log_of(world.ccs) / "private").write_text("secret")
    signer = world.homes.network.people["MB"]
    with LogClient(ccs.url, signer=signer, server_key=world.broker.public_key, policy=LOOPBACK) as client:
        assert client.list_folders("", "", limit=10)
        for name in ("private", "../keys/CB.key", "type=../../keys/CB.key", "_evidence/..", ""):
            with pytest.raises(MalformedError, match="LOG_NAME"):
                client.open(name, limit=1 << 20)
        for folder in ("..", "_lanes", "_evidence", "../keys"):
            with pytest.raises(MalformedError, match="LOG_NAME"):
                client.list_folders(folder, "", limit=10)


def test_a_neighbour_that_is_another_or_out_of_the_network_is_not_copied(
    world: LinkWorld, ccs: LogProcess, met: Command
) -> None:
    """Who serves proves its key and its right to connect; without either nothing is asked of it."""
    met.do("link", "add", "wrong", ccs.url, "--key", "KB")
    assert met.refused("link", "pull", "wrong")[0] == 4
    world.revoke(met.home)
    assert met.refused("link", "pull", "kent") == (4, "REVOKED")
    assert records(met.home) == []
    (state,) = met.do("link", "status", "kent")["links"]
    assert state["last"]["error"] == "REVOKED"


def test_a_home_without_a_network_serves_its_log_to_nobody(tmp_path: Path) -> None:
    """There is no right to ask for, and a log is not for everybody."""
    alone = Command(tmp_path / "alone")
    alone.do("domain", "init", str(alone.home))
    ran = alone("serve", "log")
    assert ran.code == 5
    assert "NO_NETWORK" in ran.err


# ---------------------------------------------------------------- other ways


def test_any_web_server_and_any_store_can_stand_in_between(world: LinkWorld, tmp_path: Path) -> None:
    """The files of a log behind a plain web server, and a directory, are as good: their origins signed them."""
    log, port = log_of(world.ccs), free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(log)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    try:
        for name, address in (("web", f"http://127.0.0.1:{port}"), ("directory", str(log))):
            met = world.reader(tmp_path / name)
            met.do("link", "add", "there", address)
            while (ran := met("link", "pull", "there", "--json")).code != 0:
                assert ran.data["error"] in ("PEER_UNAVAILABLE", "PEER_TIMEOUT"), ran.out
            assert ran.data["events"] == EVENTS
            assert len(smith_reads(met.home)) == EVENTS
    finally:
        server.kill()
        server.wait()


def test_what_its_origin_compacted_or_let_expire_is_copied_as_it_stands(world: LinkWorld, tmp_path: Path) -> None:
    """Segments that were moved come under their own names; what has expired is counted, and what is left is read."""
    shutil.copytree(world.ccs, tmp_path / "ccs")
    ccs = Command(tmp_path / "ccs")
    ccs.do("log", "compact")
    for path in segments(ccs.home):
        if path.suffix == ".parquet":
            path.unlink()
    met = world.reader(tmp_path)
    met.do("link", "add", "ccs", str(tmp_path / "ccs" / "log"))
    done = met.do("link", "pull", "ccs")
    assert (done["events"], done["expired"]) == (EVENTS, 0)
    assert len(smith_reads(met.home)) == EVENTS


def _ask_on(client: LogClient) -> None:
    """Ask again and again, and at last give up: what was judged a moment before counts for a second."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        client.list_folders("", "", limit=10)


def _shown(certificates: list[bytes], statements: Sequence[bytes] = ()) -> dict[str, object]:
    return {
        "certificates": [encode_octets(raw) for raw in certificates],
        "statements": [encode_octets(raw) for raw in statements],
    }
