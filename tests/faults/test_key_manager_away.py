"""Brokers whose key manager is gone: they go on with what they have, until the rules of keys and credentials end it.

Homes publish and deliver through the kernel, here; all time but a running manager's is the test's own.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scenarios"))

from key_network import LEAD, Network, build

from echo_service import free_port
from maia.authority import Action, Rhythm, network_right, type_right
from maia.clients import ClientLimits, KeyManagerClient, Rest, connect_key_manager
from maia.domain import SealingKeys, join_key_groups
from maia.domain.memberships import GroupKeys
from maia.errors import SealError, UnavailableError, VerificationError
from maia.home import Home
from maia.kernel import BROKERS, publish_batches
from maia.log import NoticeLog
from maia.principals import KeySigner, TestKind
from maia.testing import NETWORK_NAME, TYPE_NAME, StatementPublisher, follow, grant, naming, online, publish_plan
from service_process import LOOPBACK, Process, serving

HOUR = timedelta(hours=1)
PLATE = "AE05 XYZ"


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Give the network, beginning now, with its manager in process."""
    made = build(tmp_path, ago=timedelta(0))
    yield made
    made.close()


def add_essex(network: Network, **limits: Any) -> Home:
    """Let one more domain publish and read, on a right of PITO's that is limited so."""
    who = network.people.people
    essex, broker, camera = (KeySigner.generate() for _ in range(3))
    connect = network_right(who["PITO"].public_key, NETWORK_NAME, [Action.CONNECT])
    both = [Action.PUBLISH, Action.SUBSCRIBE]
    home = network.add("essex", broker, keys={"camera": camera})
    network.grant(
        naming(essex, BROKERS, broker),
        grant(who["PITO"], essex, connect, delegate=True),
        *(grant(essex, member, connect) for member in (broker, camera)),
        grant(who["PITO"], essex, type_right(who["PITO"].public_key, TYPE_NAME, actions=both), delegate=True, **limits),
        *(grant(essex, member, type_right(None, actions=both)) for member in (broker, camera)),
    )
    return home


def send(network: Network, home: Home, who: str, publication: str, keys: SealingKeys | None = None) -> None:
    """Publish one sighting from a home, now."""
    plan = publish_plan(home, TYPE_NAME, as_=who, version=None, publication=publication, at=network.now)
    held = SealingKeys(home) if keys is None else keys
    sealed = publish_batches(plan, 0, iter([network.rows([PLATE])]), home.broker, held, network.stamp)
    network.commit(
        publication, [item.parcel for item in sealed if item.parcel is not None],
        origin=home.broker.public_key.key_id, evidence=plan.sealing.evidence,
    )  # fmt: skip


def served_by(home: Home, address: str, network: Network) -> Home:
    """Let a home know a key manager by its address and key."""
    (home.path / "maia.toml").write_text(replace(home.config, key_manager=address).to_toml())
    home.add_public_key("key-manager", network.people.key("PITO"))
    return Home.open(home.path)


def join_served(network: Network, process: Process, *names: str) -> None:
    """Let homes join over HTTP, at the clock's time."""
    for name in names:
        home = network.homes[name] = served_by(network.homes[name], process.url, network)
        with connect_key_manager(home) as client:
            at = datetime.now(UTC)
            manager = network.people.key("PITO")
            assert len(join_key_groups(home, network.event_type, client.join, manager=manager, at=at)) == 4


def files(home: Home) -> dict[str, bytes]:
    """Read what a home knows of its keys."""
    return {name: (home.path / name).read_bytes() for name in ("groups", "keyring") if (home.path / name).exists()}


@pytest.mark.slow
@pytest.mark.fault("F13")
def test_brokers_of_a_killed_manager_seal_and_open_until_their_credential_ends(network: Network) -> None:
    """Essex's right ends after two hours: it publishes until then and not after that, and the CCS goes on.

    Both say that they go on for three hours without a word of the manager; before, they are blind after ten minutes.
    """
    network.close()
    essex = add_essex(network, valid=(None, network.now + 2 * HOUR))
    begun = network.now
    with serving("key-manager", network.homes["pito"].path, str(network.root / "keys.db")) as process:
        join_served(network, process, "ccs", "met", "essex")
        assert process.end(signal.SIGKILL) == -signal.SIGKILL
    network.now = begun + timedelta(minutes=30)
    with pytest.raises(UnavailableError) as blind:
        network.publish("nothing", [PLATE])
    assert blind.value.code == "KEYS_STALE"
    for name in ("ccs", "essex"):
        home = network.homes[name]
        (home.path / "maia.toml").write_text(replace(home.config, silence=3 * 3600).to_toml())
        (home.path / "clock").unlink(missing_ok=True)
        network.homes[name] = Home.open(home.path)
    essex = network.homes["essex"]
    sent = 0
    for minutes in (1, 30, 119):
        network.now = begun + timedelta(minutes=minutes)
        network.publish(f"ccs {minutes}", [PLATE])
        send(network, essex, "camera", f"essex {minutes}")
        sent += 1
        expected = [(PLATE, "Paddington")] * sent + [(PLATE, "Victoria")] * sent
        assert network.read("met", "Smith") == expected
        assert network.read("essex", "camera") == expected
    network.now = begun + 2 * HOUR + timedelta(seconds=1)
    with pytest.raises(VerificationError) as ended:
        send(network, essex, "camera", "too late")
    assert ended.value.code == "EXPIRED"
    with pytest.raises(VerificationError):
        network.read("essex", "camera")
    network.publish("ccs, later", [PLATE])
    # what it stamped while it had the right stays readable
    assert network.read("met", "Smith") == [(PLATE, "Paddington")] * sent + [(PLATE, "Victoria")] * (sent + 1)


@pytest.mark.fault("F13")
def test_what_a_manager_announced_before_it_went_is_kept_to_without_it(network: Network) -> None:
    """An epoch that was announced begins, and shuts out whom it was made to shut out: the log says it all."""
    for name in ("ccs", "met"):
        network.join(name)
    network.pass_time(10)
    network.publish("before", [PLATE])
    network.manager.revoke([network.people.certificates["Cap12"].certificate_id], at=network.now)
    network.close()
    network.publish("announced, not begun", [PLATE], follow=("ccs", "met"))
    network.now += LEAD + timedelta(seconds=1)
    network.publish("begun", [PLATE], follow=("ccs", "met"))
    assert network.read("ccs", "BO") == [(PLATE, None)] * 3
    assert network.outcomes("met", "Smith") == [None, None, "NO_KEY"]


@pytest.mark.fault("F13")
def test_a_key_that_nobody_refreshes_seals_up_to_its_cap(network: Network) -> None:
    """No manager, no new key: sealing ends with a typed error over all tasks; what is sealed can still be read."""
    for name in ("ccs", "met"):
        network.join(name)
    network.pass_time(10)
    network.close()
    ccs = network.homes["ccs"]
    for number in range(4):
        send(network, ccs, "CCTV", f"part {number}", SealingKeys(ccs, clock=lambda: network.now, cap=4))
    with pytest.raises(SealError) as spent:
        send(network, ccs, "CCTV", "one too many", SealingKeys(ccs, clock=lambda: network.now, cap=4))
    assert spent.value.code == "KEY_EXHAUSTED"
    assert network.read("met", "Smith") == [(PLATE, "Victoria")] * 4
    network.reopen()
    network.refresh_all()
    network.pass_time(10)
    send(network, ccs, "CCTV", "with a new key", SealingKeys(ccs, clock=lambda: network.now, cap=4))
    assert network.read("met", "Smith") == [(PLATE, "Victoria")] * 5


def silent() -> Iterator[int]:
    """Listen, and say nothing; at most one connection came, as the client's rest has it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
        listener.setblocking(False)
        accepted, _ = listener.accept()
        accepted.close()
        with pytest.raises(BlockingIOError):
            listener.accept()


def absent() -> Iterator[int]:
    """Listen not at all."""
    yield free_port()


@pytest.mark.fault("F13")
@pytest.mark.parametrize(("peer", "code"), [(absent, "PEER_UNAVAILABLE"), (silent, "PEER_TIMEOUT")])
def test_joining_without_a_manager_ends_within_the_limits_and_changes_nothing(
    network: Network, peer: Callable[[], Iterator[int]], code: str
) -> None:
    """Gone or mute: one typed error, then a rest instead of a storm; a member stays one, and goes on."""
    for name in ("ccs", "met"):
        network.join(name)
    network.pass_time(10)
    network.close()
    met, manager = network.homes["met"], network.people.key("PITO")
    before, codes = files(met), []
    listening = peer()
    client = KeyManagerClient(
        f"http://127.0.0.1:{next(listening)}", signer=met.broker, server_key=manager, policy=LOOPBACK,
        limits=ClientLimits(seconds=0.2), rest=Rest(monotonic=lambda: 1000.0),
    )  # fmt: skip
    with client:
        for _ in range(100):
            with pytest.raises(UnavailableError) as refusal:
                join_key_groups(met, network.event_type, client.join, manager=manager, at=network.now)
            codes.append(refusal.value.code)
    assert next(listening, None) is None
    assert codes == [code] + ["PEER_RESTS"] * 99
    assert files(met) == before
    network.publish("as ever", [PLATE])
    assert network.read("met", "Smith") == [(PLATE, "Victoria")]


@pytest.mark.fault("F13")
def test_without_manager_and_statements_access_ends_with_the_last_list(network: Network) -> None:
    """Both are gone at once: Essex, whose right needs a list, stops at its end and not before; the others go on."""
    lister = KeySigner.generate()
    essex = add_essex(network, tests=[online(TestKind.CRL, lister)])
    publisher = StatementPublisher(
        notices=NoticeLog(network.log.path, own=network.root / "lister"),
        signer=lister,
        rhythm=Rhythm(period=timedelta(minutes=1)),
    )
    made = publisher.publish({}, at=network.now)
    assert made is not None
    ends = made.body.ends
    network.look(network.homes)
    for name in ("ccs", "met", "essex"):
        network.join(name)
    network.pass_time(10)
    network.close()
    ring = essex.keyring()
    held = {group: ring.epochs(group) for group in GroupKeys(essex).groups() if ring.epochs(group)}
    assert held

    network.now = ends - timedelta(seconds=1)
    network.publish("ccs 1", [PLATE])
    send(network, essex, "camera", "essex 1")
    both = [(PLATE, "Paddington"), (PLATE, "Victoria")]
    assert network.read("met", "Smith") == network.read("essex", "camera") == both

    network.now = ends
    for access in (
        lambda: send(network, essex, "camera", "essex 2"),
        lambda: network.read("essex", "camera"),
    ):
        with pytest.raises(VerificationError) as silence:
            access()
        assert silence.value.code == "NO_STATEMENT"
    network.publish("ccs 2", [PLATE])
    assert network.outcomes("met", "Smith") == [None] * 3  # what was stamped before is judged by the lists of then
    ring = essex.keyring()
    assert {group: ring.epochs(group) for group in held} == held, "it still holds its keys"

    network.now += timedelta(minutes=3)
    publisher.publish({}, at=network.now)
    follow(essex, at=network.now)
    send(network, essex, "camera", "essex 3")
    assert network.outcomes("met", "Smith") == [None] * 4
