"""Who may hold keys: brokers of domains, on rights that choose no rows; and what readers make of an origin's right."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from key_world import TYPE, World
from processes import MAIA, environment

import maia
from maia.clients import AddressPolicy, KeyManagerClient
from maia.encryption import CountUse, GroupRequest, sign_group_request
from maia.errors import DeniedError
from maia.testing import Command, publish_here, served


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Give the two homes, and end the manager."""
    made = World(tmp_path)
    with served("key-manager", made.pito.home) as port:
        made.point_to(port)
        yield made


@pytest.mark.slow
def test_a_right_on_some_rows_brings_no_key(world: World) -> None:
    """A3: whoever is limited to Victoria and calls its own key a broker gets no key of a whole column."""
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.give("--action", "subscribe", "--attribute", "plate", "--attribute", "place=Victoria")
    code, said, keys = world.join()
    assert (code, keys) == (3, set())
    assert "CONSTRAINED_RIGHT" in said


@pytest.mark.slow
def test_a_right_within_a_bound_brings_no_key(world: World) -> None:
    """Keys open columns whatever the filter: a domain that must ask for Victoria alone is served, and gets none."""
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.give("--action", "subscribe", "--bound", "upper (place = 'Victoria')")
    code, said, keys = world.join()
    assert (code, keys) == (3, set())
    assert "CONSTRAINED_RIGHT" in said


@pytest.mark.slow
def test_a_domain_that_is_trusted_to_enforce_gets_keys(world: World) -> None:
    """The link that sets the demand says so, signed; nobody below can say it of a demand that was set above."""
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.give("--action", "subscribe", "--attribute", "plate", "--attribute", "place=Victoria")
    said_itself = ("--attribute", "plate", "--attribute", "place=Victoria", "--enforced", "--blanket", "--irrevocable")
    world.met.grant("--from", "domain", "--to", "broker", "--type", TYPE, "--action", "subscribe", *said_itself)
    assert world.join()[0] == 3
    world.give("--action", "subscribe", "--attribute", "plate", "--attribute", "place=Victoria", "--enforced")
    code, said, keys = world.join()
    assert (code, keys) == (0, {"1", "2"}), said


@pytest.mark.slow
def test_who_is_no_domain_has_no_brokers(world: World) -> None:
    """A right that may be passed on makes nobody a domain; the owner's word does."""
    world.give("--action", "subscribe", "--attribute", "plate")
    code, said, keys = world.join()
    assert (code, keys) == (3, set())
    assert "NOT_A_DOMAIN" in said
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.travel()
    code, said, keys = world.join()
    assert (code, keys) == (0, {"1"}), said


def count_use(world: World, uses: int) -> str:
    """Let the Met's broker report how often it used the newest key of the plates; give the code of a refusal."""
    home, manager = maia.open(world.met.home).home, maia.open(world.pito.home).home.key("domain")
    [name] = home.types.names()
    number = max(int(epoch["epoch"]) for epoch in world.history("plate")["epochs"])
    request = GroupRequest(
        type_id=name.type_id, manager=manager.key_id,
        stamp=int(datetime.now(UTC).timestamp() * 1000), what=CountUse(uses=((b"1", number, uses),)),
    )  # fmt: skip
    client = KeyManagerClient(
        str(home.config.key_manager), signer=home.broker, server_key=manager, policy=AddressPolicy(loopback=True)
    )
    try:
        client.count_use(sign_group_request(request, home.broker))
    except DeniedError as error:
        return error.code
    return ""


@pytest.mark.slow
def test_reports_of_use_are_believed_of_publishers_and_within_reason(world: World) -> None:
    """A26: whoever only reads, and whoever tells more than anybody can seal, makes no key change."""
    world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    world.give("--action", "subscribe", "--attribute", "plate")
    assert world.join()[0] == 0
    before = world.history("plate")["epochs"]
    assert {count_use(world, uses) for uses in (1, 10**15)} == {"DENIED"}
    assert world.history("plate")["epochs"] == before
    world.give("--action", "publish", "--attribute", "plate")
    assert world.join()[0] == 0
    before = world.history("plate")["epochs"]
    assert (count_use(world, 10**15), count_use(world, 1)) == ("DENIED", "")
    assert world.history("plate")["epochs"] == before


@pytest.mark.slow
def test_a_right_for_the_brokers_of_a_domain_brings_keys(world: World) -> None:
    """B13: who gives to `met: brokers` takes the Met for a domain; no other step is needed."""
    world.pito.grant(
        "--from", "domain", "--to", "met: brokers", "--type", "domain/Sighting", "--action", "subscribe",
        "--attribute", "place",
    )  # fmt: skip
    world.travel()
    code, said, keys = world.join()
    assert (code, keys) == (0, {"2"}), said


@pytest.mark.slow
def test_a_broker_without_a_common_log_brings_the_lists_of_its_rights(tmp_path: Path) -> None:
    """Rights are revocable by default: the Met's list goes along with the request, and what it names opens nothing."""
    world = World(tmp_path, listed=True)
    with served("key-manager", world.pito.home) as port:
        world.point_to(port)
        world.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
        world.give("--action", "subscribe", "--attribute", "plate")
        code, said, keys = world.join()
        assert (code, keys) == (0, {"1"}), said
        world.met.do("revoke", world.own, "--yes")
        assert world.join()[0] == 3


def test_granting_some_rows_to_a_domain_says_what_it_means(maia_command: Command) -> None:
    """`maia grant` warns that such a right brings no keys, and that `--enforced` brings whole columns."""
    maia = maia_command
    maia.keys("pito", "met")
    maia.do("type", "define", "pito/Sighting@1", "--attribute", "plate:string:1", "--attribute", "place:string:2")
    right = ("--from", "pito", "--to", "met", "--type", "pito/Sighting", "--action", "subscribe", "--attribute",
             "place=Victoria")  # fmt: skip
    for more, code in ((), "UNENFORCEABLE_FOR_DOMAIN"), (("--enforced",), "DOMAIN_ENFORCES"):
        ran = maia("grant", *right, "--delegate", *more, "--json")  # nobody is there who could be asked
        assert (ran.code, ran.data["error"]) == (2, "CONFIRMATION_MISSING")
        assert "--yes" in ran.data["message"]
        assert maia.do("grant", *right, "--delegate", *more, "--yes")["warnings"] == [code]
    assert maia("grant", *right, "--json").data["warnings"] == []
    plain = maia("grant", *right[:-1], "place", "--delegate", "--enforced", "--json")
    assert (plain.code, plain.data["error"]) == (2, "RIGHT_OPTIONS")


def test_granting_some_rows_to_a_domain_asks_at_the_terminal(maia_command: Command) -> None:
    """Whoever does not say yes issues nothing; whoever does, does."""
    maia = maia_command
    maia.keys("pito", "met")
    maia.do("type", "define", "pito/Sighting@1", "--attribute", "plate:string:1", "--attribute", "place:string:2")
    right = ("--from", "pito", "--to", "met", "--type", "pito/Sighting", "--action", "subscribe", "--attribute",
             "place=Victoria", "--delegate", "--home", str(maia.home))  # fmt: skip
    issued = maia.home / "certificates"
    for said, code, count in (("n", 2, 0), ("y", 0, 1)):
        ours, theirs = pty.openpty()
        try:
            os.write(ours, f"{said}\n".encode())
            ran = subprocess.run(
                [*MAIA, "grant", *right], stdin=theirs, capture_output=True, text=True, check=False, env=environment()
            )
        finally:
            os.close(ours)
            os.close(theirs)
        assert (ran.returncode, "issue it all the same? [y/N]" in ran.stderr) == (code, True), ran.stderr
        assert "UNENFORCEABLE_FOR_DOMAIN" in ran.stderr
        assert len(list(issued.glob("*.cert"))) == count


SIGHTINGS = [{"plate": "A", "place": "Kent"}, {"plate": "B", "place": "Victoria"}]


@pytest.fixture
def partial(maia_command: Command) -> Command:
    """Make a home whose camera may publish everything, and whose broker only what happens at Victoria."""
    home = maia_command
    home.do("domain", "init", str(home.home))
    home.keys("pito", "camera", "reader")
    attributes = ("--attribute", "plate:string:1", "--attribute", "place:string:2")
    home.do("type", "define", "pito/Sighting@1", "--encryption", "plain", *attributes)
    for who, action, *limit in (
        ("broker", "publish", "--attribute", "plate", "--attribute", "place=Victoria"),
        ("broker", "subscribe"),
        ("camera", "publish"),
        ("reader", "subscribe"),
    ):
        home.grant("--from", "pito", "--to", who, "--type", "pito/Sighting", "--action", action, *limit)
    return home


def seen(home: Command) -> list[tuple[str, str]]:
    """Read all that the reader may see."""
    rows = maia.open(home.home).client("reader").read("Sighting").select("plate", "place").collect()
    return sorted(tuple(row) for row in rows)


@pytest.mark.usefixtures("spark")
def test_readers_hold_an_origin_to_the_rows_of_its_right(partial: Command) -> None:
    """A11: a parcel of a broker that publishes beyond its right is refused whole; one within it is delivered."""
    home, now = maia.open(partial.home).home, datetime.now(UTC)
    assert publish_here(home, "Sighting", SIGHTINGS, as_="camera", at=now, honest=False) == 2
    assert seen(partial) == []
    later = datetime.now(UTC)
    assert publish_here(home, "Sighting", SIGHTINGS[1:], as_="camera", at=later, honest=False) == 1
    assert seen(partial) == [("B", "Victoria")]


@pytest.mark.usefixtures("spark")
def test_a_broker_publishes_nothing_that_readers_would_refuse(partial: Command) -> None:
    """What a client may and its broker may not is refused when it is published, and said, not lost later."""
    result = maia.open(partial.home).client("camera").publish(pa.Table.from_pylist(SIGHTINGS), "Sighting")
    assert (result.events, result.refused) == (1, {("BEYOND_BROKER", ""): 1})
    assert seen(partial) == [("B", "Victoria")]


@pytest.mark.usefixtures("spark")
def test_who_may_set_some_attributes_needs_no_key_of_the_others(maia_command: Command) -> None:
    """B11: a broker and a client with a right to plates publish; the place is null, and nobody gave them its key."""
    home = maia_command
    home.do("domain", "init", str(home.home), "--key")
    home.keys("camera")
    home.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
    attributes = ("--attribute", "plate:string:1", "--attribute", "place:string:2")
    home.do("type", "define", "domain/Sighting@1", *attributes)
    for who in ("broker", "camera"):
        home.grant(
            "--from", "domain", "--to", who, "--type", "domain/Sighting", "--action", "publish", "--attribute", "plate"
        )
    home.grant(
        "--from", "domain", "--to", "camera", "--type", "domain/Sighting", "--action", "subscribe", "--attribute",
        "plate",
    )  # fmt: skip
    camera = maia.open(home.home).client("camera")
    result = camera.publish(pa.Table.from_pylist(SIGHTINGS), "Sighting")
    assert (result.events, dict(result.refused), result.nulled) == (2, {}, 2)
    rows = camera.read("Sighting").select("plate", "place").collect()
    assert sorted(tuple(row) for row in rows) == [("A", None), ("B", None)]
