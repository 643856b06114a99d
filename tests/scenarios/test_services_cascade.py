"""`maia serve acs` and `maia serve key-manager` as two processes: what the one withdraws, the other puts out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from key_network import Network, build

from maia.clients import AccessControlClient, KeyManagerClient, RemoteStatus
from maia.domain import join_key_groups, manager_signer, open_key_manager
from maia.encryption import KeyGroupId, RefreshCause
from maia.errors import DeniedError
from maia.home import Home
from maia.kernel import KEY_MANAGER
from maia.principals import KeySigner, PublicKey, parse_certificate, verify_certificate
from maia.testing import follow, naming
from service_process import LOOPBACK, Process, restless, serving

pytestmark = pytest.mark.slow
POLICY = "relay(d) <- driver(d)* , driver(self)*\nrelay(d) |- subscribe Numberplate\n"


class Pair:
    """The two services, the police's home and a van that is a broker by role."""

    def __init__(self, network: Network, acs: Process, manager: Process, managing: str, operator: KeySigner) -> None:
        self.network = network
        self.acs = acs
        self.manager = manager
        self.managing = network.homes[managing]
        self.key: PublicKey = manager_signer(self.managing).public_key
        self.operator = operator
        self.van = network.homes["van"]

    @contextmanager
    def ask_acs(self, signer: KeySigner) -> Iterator[AccessControlClient]:
        """Talk to the access control service."""
        domain = self.network.people.key("Met")
        with AccessControlClient(
            self.acs.url, signer=signer, server_key=domain, policy=LOOPBACK, rest=restless()
        ) as client:
            yield client

    @contextmanager
    def ask_manager(self, signer: KeySigner) -> Iterator[KeyManagerClient]:
        """Talk to the key manager."""
        with KeyManagerClient(
            self.manager.url, signer=signer, server_key=self.key, policy=LOOPBACK, rest=restless()
        ) as client:
            yield client

    def join(self, home: Home) -> tuple[KeyGroupId, ...]:
        """Let a home's broker join, and read the log."""
        follow(home, at=datetime.now(UTC))
        with self.ask_manager(home.broker) as client:
            joined = join_key_groups(home, self.network.event_type, client.join, manager=self.key, at=datetime.now(UTC))
        follow(home, at=datetime.now(UTC))
        return joined

    def status(self) -> dict[KeyGroupId, RemoteStatus]:
        """Ask where the groups stand."""
        with self.ask_manager(self.operator) as client:
            return {item.group: item for item in client.status()}


PLACES = {
    "the owner of the type runs the key manager": ("pito", False),
    "the domain's own, whose address stands in its home": ("met", True),
    "the domain's own, in the same home and database": ("met", False),
}


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Run both services, each over the home that the case names."""
    where, addressed = request.param
    network = build(tmp_path)
    network.close()
    people = network.people.people
    van, own = KeySigner.generate(), KeySigner.generate()
    network.add("van", van)
    met = network.homes["met"]
    met.add_key("domain", people["Met"])
    if where == "met":
        met.add_key(KEY_MANAGER, own)
        network.grant(naming(people["PITO"], KEY_MANAGER, own))
    (met.path / "policy").mkdir(exist_ok=True)
    (met.path / "policy" / "domain.toml").write_text("blanket = false\n")
    manages = network.homes[where].path
    with serving("key-manager", manages, str(manages / "store.db")) as manager:
        if addressed:
            (met.path / "maia.toml").write_text(replace(met.config, key_manager=manager.url).to_toml())
        with serving("acs", met.path, str(met.path / "store.db")) as acs:
            yield Pair(network, acs, manager, where, people["PITO" if where == "pito" else "Met"])


def test_a_role_that_falls_in_one_process_ends_the_membership_in_the_other(pair: Pair) -> None:
    """The van's role falls: the key manager hears of it by the log, puts it out once, and it does not come back."""
    met, van = pair.network.homes["met"], pair.van
    with pair.ask_acs(pair.network.people.people["Met"]) as chief, pair.ask_acs(van.broker) as asked:
        chief.apply_policy(POLICY)
        asked.enrol(invitation=chief.invite("van", kind="broker", appointments=["driver(van)"]))
        asked.activate("relay(van)")
        for raw in asked.capabilities().certificates:
            van.certificates.add(verify_certificate(parse_certificate(raw)))
        groups = pair.join(met)
        assert pair.join(van) == groups
        before = pair.status()
        assert {before[group].members for group in groups} == {2}
        ended = chief.retract("driver(van)")
        assert {holder for _, holder in ended.certificates} == {"van"}
    while {pair.status()[group].members for group in groups} != {1}:  # the test's own limit of time ends this
        time.sleep(0.1)
    after = pair.status()
    for home in (met, van):
        follow(home, at=datetime.now(UTC))
    looking, _ = open_key_manager(pair.managing)
    for group in groups:
        last = looking.history(group)[-1]
        assert last.number == after[group].number == before[group].number + 1
        assert RefreshCause.REVOCATION.value in last.causes
        newest = met.keyring().epochs(group)[-1]
        assert met.keyring().key(group, newest) is not None
        assert van.keyring().key(group, newest) is None
    looking.close()
    with pytest.raises(DeniedError):
        pair.join(van)
    assert {group: item.number for group, item in pair.status().items()} == {
        group: item.number for group, item in after.items()
    }
