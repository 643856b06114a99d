"""The key manager as a real process: `maia serve key-manager`, asked over HTTP, killed, restarted and taken over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from key_network import Network, build

import service_process
from maia.clients import KeyManagerClient
from maia.domain import join_key_groups
from maia.encryption import (
    GroupRequest,
    JoinGroups,
    KeyGroupId,
    LeaveGroups,
    join_public_key,
    new_join_key,
    parse_rekey,
    sign_group_request,
    verify_rekey,
)
from maia.errors import DeniedError, MalformedError, UnavailableError
from maia.kernel import milliseconds
from maia.principals import KeySigner, PublicKey
from maia.testing import follow
from service_process import LOOPBACK, Process, restless

pytestmark = pytest.mark.slow


@contextmanager
def serving(network: Network, database: str, *, ready: bool = True) -> Iterator[Process]:
    """Run PITO's key manager."""
    with service_process.serving("key-manager", network.homes["pito"].path, database, ready=ready) as process:
        yield process


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Give the network without a manager in process."""
    made = build(tmp_path)
    made.close()
    yield made
    made.close()


def client(process: Process, network: Network, signer: KeySigner) -> KeyManagerClient:
    """Give somebody's client."""
    return KeyManagerClient(
        process.url,
        signer=signer,
        server_key=network.people.key("PITO"),
        policy=LOOPBACK,
        rest=restless(),
    )


def manager_key(network: Network) -> PublicKey:
    """Give the manager's key."""
    return network.people.key("PITO")


def join(process: Process, network: Network, name: str) -> tuple[KeyGroupId, ...]:
    """Let a home's broker join over HTTP."""
    home = network.homes[name]
    with client(process, network, home.broker) as asked:
        return join_key_groups(home, network.event_type, asked.join, manager=manager_key(network), at=datetime.now(UTC))


def request_of(network: Network, broker: KeySigner, what: JoinGroups | LeaveGroups) -> bytes:
    """Sign a broker's request."""
    return sign_group_request(
        GroupRequest(
            manager=manager_key(network).key_id,
            type_id=network.event_type.type_id,
            stamp=milliseconds(datetime.now(UTC)),
            what=what,
        ),
        broker,
    )


def test_a_broker_joins_follows_and_leaves_over_http(network: Network, database_url: str) -> None:
    """Admitted on its chain, it follows its groups in the log and over HTTP, and leaves; an operator looks on."""
    met = network.homes["met"]
    with serving(network, database_url) as process:
        groups = join(process, network, "met")
        assert {group.label for group in groups} == {group.label for group in join(process, network, "ccs")}
        followed = follow(met, at=datetime.now(UTC))
        assert followed is not None
        with client(process, network, met.broker) as broker:
            rekeys = broker.rekeys(groups[0])
            assert [verify_rekey(parse_rekey(item.body), manager_key(network)).rekey.number for item in rekeys] == list(
                range(1, len(rekeys) + 1)
            )
            assert broker.rekeys(groups[0], after=rekeys[-1].number) == ()
            assert set(broker.leave(request_of(network, met.broker, LeaveGroups(labels=())))) == set(groups)
        with client(process, network, network.people.people["PITO"]) as operator:
            status = {item.group: item for item in operator.status()}
            assert set(groups) <= set(status)
            number = operator.refresh(groups[0])
            assert number > status[groups[0]].number
        assert process.end(signal.SIGTERM) == 0


@pytest.mark.threat("T3")
@pytest.mark.threat("T57")
def test_nobody_asks_for_somebody_else_or_learns_what_there_is(network: Network, tmp_path: Path) -> None:
    """Another's request, a group of others, no group at all, an operator's question: one and the same answer."""
    met, eve = network.homes["met"], KeySigner.generate()
    with serving(network, str(tmp_path / "store.db")) as process:
        group = join(process, network, "met")[0]
        stolen = request_of(network, met.broker, JoinGroups(key=join_public_key(new_join_key())))
        own = request_of(network, eve, JoinGroups(key=join_public_key(new_join_key())))
        evidence = [raw for _, raw in met.certificates]
        with client(process, network, eve) as stranger:
            for ask in (
                lambda: stranger.join(stolen, evidence),
                lambda: stranger.join(own, evidence),
                lambda: stranger.rekeys(group),
                lambda: stranger.rekeys(KeyGroupId(group.type_id, b"none")),
                lambda: stranger.refresh(group),
                lambda: stranger.refresh(KeyGroupId(group.type_id, b"none")),
                stranger.status,
            ):
                with pytest.raises(DeniedError) as refusal:
                    ask()
                assert (refusal.value.code, refusal.value.message) == (
                    "DENIED",
                    "you have no right to this, or there is no such thing",
                )
            with pytest.raises(MalformedError):
                stranger.join(b"garbage", [])


def test_a_killed_manager_goes_on_where_it_was(network: Network, database_url: str) -> None:
    """Kill -9 and restart: epochs go on, none comes twice, members stay members."""
    with serving(network, database_url) as process:
        groups = join(process, network, "met")
        with client(process, network, network.people.people["PITO"]) as operator:
            before = {item.group: item for item in operator.status()}
        assert process.end(signal.SIGKILL) == -signal.SIGKILL
    with serving(network, database_url) as process:
        with client(process, network, network.people.people["PITO"]) as operator:
            after = {item.group: item for item in operator.status()}
            assert {g: (s.number, s.members) for g, s in after.items()} == {
                g: (s.number, s.members) for g, s in before.items()
            }
            assert operator.refresh(groups[0]) == before[groups[0]].number + 1
        with client(process, network, network.homes["met"].broker) as broker:
            numbers = [
                verify_rekey(parse_rekey(item.body), manager_key(network)).rekey.number
                for item in broker.rekeys(groups[0])
            ]
        assert numbers == list(range(1, before[groups[0]].number + 2))


@pytest.mark.postgres
def test_a_standby_takes_over(network: Network, postgres: str) -> None:
    """Two processes on one PostgreSQL: one leads, the other stands by, and leads when the first is killed."""
    with serving(network, postgres) as leader:
        groups = join(leader, network, "met")
        with serving(network, postgres, ready=False) as second:
            assert second.state("/readyz") == 503
            with pytest.raises(UnavailableError) as refusal:
                join(second, network, "ccs")
            assert refusal.value.code == "NOT_LEADER"
            leader.end(signal.SIGKILL)
            second.wait_for("/readyz", 200)
            assert {group.label for group in join(second, network, "ccs")} == {group.label for group in groups}
            with client(second, network, network.people.people["PITO"]) as operator:
                members = {item.group: item.members for item in operator.status()}
            assert all(members[group] == 2 for group in groups)


def test_a_service_that_cannot_start_says_why(network: Network, tmp_path: Path) -> None:
    """No key to manage with, or another machine's address without TLS: an error, not a traceback."""
    pito = str(network.homes["pito"].path)
    command = [sys.executable, "-m", "maia.cli", "serve", "key-manager", "--home"]
    for arguments, code in (([pito, "--host", "0.0.0.0"], 2), ([str(network.homes["kent"].path)], 5)):  # noqa: S104
        ended = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, env=os.environ)
        assert ended.returncode == code, ended.stderr
        assert "Traceback" not in ended.stderr
