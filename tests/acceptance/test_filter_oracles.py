"""What a broker learns by asking a served log with sealed filters: nothing that its own keys do not open."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from link_world import LinkWorld, LogProcess, log_of, make_world, records, segments, serving_log

import maia
from maia.clients import AddressPolicy, LogClient
from maia.encryption import EpochId, Keyring
from maia.testing import TYPE_NAME, Command

LOOPBACK = AddressPolicy(loopback=True)
NUMBERPLATE = b"3265"
BEFORE, AFTER = "LD06 ABC", "QX71 ZKJ"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LinkWorld:
    """Publish a plate, change all keys, and publish another plate: each in a commit of its own."""
    made = make_world(tmp_path_factory.mktemp("oracles"), events=0)
    made.publish_rows([BEFORE])
    home = maia.open(made.ccs).home
    ring, fresh = home.keyring(), EpochId(int(time.time() * 1000))
    for group in ring.groups():
        ring.add(group, fresh, secrets.token_bytes(32))
    home.save_keyring(ring)
    made.publish_rows([AFTER])
    return made


@pytest.fixture(scope="module")
def ccs(world: LinkWorld) -> Iterator[LogProcess]:
    """Serve the log of the publisher, which holds the keys of both epochs."""
    with serving_log(world.ccs) as service:
        yield service


def holding(world: LinkWorld, command: Command, *epochs: int) -> Command:
    """Let a home hold the plates' keys of some epochs, by their place, and no others."""
    ring, some = maia.open(world.ccs).home.keyring(), Keyring()
    for group in ring.groups():
        for place, epoch in enumerate(ring.epochs(group)):
            if place in epochs:
                some.add(group, epoch, ring.key(group, epoch) or b"")
    maia.open(command.home).home.save_keyring(some)
    return command


def sealed(command: Command, text: str) -> bytes:
    """Seal a filter with `maia filter seal`."""
    file = command.home.parent / "filter"
    command.do("filter", "seal", text, "--type", TYPE_NAME, "--out", str(file))
    return file.read_bytes()


def first_record(world: LinkWorld) -> str:
    """Name the record from which on is asked; its event lies under the old keys, and the next one's under the new."""
    return str(records(world.ccs)[0].relative_to(log_of(world.ccs)))


def told(world: LinkWorld, service: LogProcess, command: Command, *filters: bytes) -> list[bool]:
    """Ask about the lane; tell of each segment, in the order of time, whether it is said to be unwanted."""
    home = maia.open(command.home).home
    if not (command.home / "keys" / "CB.pub").exists():
        command.do("key", "import", "CB", str(world.ccs / "keys" / "CB.pub"))
    if not command.do("link", "status")["links"]:
        command.do("link", "add", "ccs", service.url, "--key", "CB")
        command.do("link", "pull", "ccs")  # so it is let in
    with LogClient(service.url, signer=home.broker, server_key=world.broker.public_key, policy=LOOPBACK) as client:
        unwanted = set(client.unwanted(first_record(world), filters)[0])
    paths = sorted(segments(world.ccs), key=lambda path: path.stat().st_mtime_ns)
    return [str(path.relative_to(log_of(world.ccs))) in unwanted for path in paths]


@pytest.mark.requirement("15.10", "22.14")
@pytest.mark.parametrize(
    ("held", "answers"),
    [
        pytest.param((0,), [True, False], id="put out of the group: nothing is told of what came after"),
        pytest.param((1,), [False, True], id="came later: nothing is told of what was before"),
        pytest.param((0, 1), [True, True], id="holds both: both are told"),
    ],
)
def test_a_filter_speaks_of_what_was_sealed_under_the_key_that_sealed_it(
    world: LinkWorld, ccs: LogProcess, tmp_path: Path, held: tuple[int, ...], answers: list[bool]
) -> None:
    """Else whoever was put out of a key group would read on: letter by letter, by asking whether a prefix matches."""
    met = holding(world, world.reader(tmp_path), *held)
    assert told(world, ccs, met, sealed(met, "numberplate = 'nobody'")) == answers
    matching = {(0,): BEFORE, (1,): AFTER}.get(held)
    if matching is not None:
        assert told(world, ccs, met, sealed(met, f"numberplate prefix '{matching[:2]}'")) == [False, False]


@pytest.mark.requirement("15.10", "22.14")
def test_whoever_may_not_subscribe_to_the_type_is_told_nothing_of_it(
    world: LinkWorld, ccs: LogProcess, tmp_path: Path
) -> None:
    """Kent may connect, and has keys that it should not have: its filters are read, and not answered."""
    kent = Command(world.relay(tmp_path, NUMBERPLATE))
    assert told(world, ccs, kent, sealed(kent, "numberplate = 'nobody'")) == [False, False]


@pytest.mark.requirement("15.10", "22.14")
def test_no_answer_tells_which_keys_a_broker_holds(world: LinkWorld, ccs: LogProcess, tmp_path: Path) -> None:
    """A block that nobody made who holds the key, in an epoch that is held and in one that is not: one answer."""
    met = holding(world, world.reader(tmp_path), 0, 1)
    good = sealed(met, "numberplate = 'nobody'")
    ring = maia.open(world.ccs).home.keyring()
    (group,) = (group for group in ring.groups() if group.label == NUMBERPLATE)
    forged = good[:-40] + bytes(38) + good[-2:]
    epoch = b"%d" % max(ring.epochs(group))
    strange = forged.replace(epoch, b"%d" % (int(epoch) + 1))
    assert strange != forged
    assert told(world, ccs, met, good) == [True, True]
    # The block of the older epoch is good in both, and is answered.
    assert told(world, ccs, met, forged) == told(world, ccs, met, strange) == [True, False]
    (tmp_path / "forged").write_bytes(forged)
    ran = Command(world.ccs)("filter", "weigh", str(tmp_path / "forged"), "--json")
    assert (ran.code, ran.data["filters"][0]["state"]) == (4, "forged")  # told at home, where the keys are
