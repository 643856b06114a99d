"""What the `maia` command refuses before a row moves, in a home of a configured network: exit codes and codes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import maia
from maia.authority import Action, network_right, type_right
from maia.errors import MaiaError, NotFoundError, VerificationError
from maia.events import EventType, TypeName, parse_version, sign_event_type
from maia.testing import NETWORK_NAME, TYPE_NAME, Command, NumberplateHomes, grant, numberplate_homes

ROWS = '{"numberplate": "AE05 XYZ", "timestamp": "2026-06-01T09:00:00Z", "location": "Victoria"}\n'


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the two homes of the network once."""
    return numberplate_homes(tmp_path_factory.mktemp("template"), network=True)


@pytest.fixture
def world(template: NumberplateHomes, tmp_path: Path) -> NumberplateHomes:
    """Give a copy of both homes."""
    shutil.copytree(template.ccs.parent, tmp_path / "net")
    return replace(template, ccs=tmp_path / "net" / "ccs", met=tmp_path / "net" / "met")


def subscribe(home: Path, who: str, *more: str, name: str = TYPE_NAME) -> tuple[int, str]:
    """Ask to subscribe, which is refused before Spark starts; tell how and why."""
    return Command(home).refused("subscribe", "--type", name, "--as", who, *more)


def accepted(home: Path, who: str, action: str, name: str = TYPE_NAME) -> bool:
    """Tell whether a home would serve somebody: the plan that a read or a publication starts with."""
    opened = maia.open(home)
    try:
        if action == "publish":
            opened.publish_plan(name, client=opened.prove(who), publication="asked")
        else:
            opened.deliver_plan(name, client=opened.prove(who), commits=())
    except MaiaError:
        return False
    return True


def drop(home: Path, certificate: bytes) -> None:
    """Take a certificate out of a home."""
    [found] = [path for path in (home / "certificates").iterdir() if path.read_bytes() == certificate]
    found.unlink()


@pytest.mark.requirement("5.02")
def test_a_right_on_a_type_is_no_use_without_the_right_to_connect(world: NumberplateHomes) -> None:
    """With Cap3 Smith subscribes; without it the very same right on the type opens nothing. So with a publisher."""
    certificates = world.network.certificates
    assert accepted(world.met, "Smith", "subscribe")
    drop(world.met, certificates["Cap3"].raw)
    assert not accepted(world.met, "Smith", "subscribe")
    assert subscribe(world.met, "Smith")[0] == 3
    assert accepted(world.ccs, "CCTV", "publish")
    drop(world.ccs, certificates["Cap3b-CCTV"].raw)
    assert not accepted(world.ccs, "CCTV", "publish")


@pytest.mark.requirement("2.08")
def test_a_type_without_an_install_chain_is_not_served(world: NumberplateHomes) -> None:
    """CB signs a type of its own: refused on the network without the chain; with PITO -> CCS -> BO in it, accepted."""
    people = world.network.people
    own = EventType(
        name=TypeName(world.network.key("BO"), "uk.ccs.Plate", parse_version("1")),
        attributes=world.event_type.attributes,
    )
    world.define(world.ccs, own, people["BO"])
    assert not accepted(world.ccs, "BO", "subscribe", name=f"BO/{own.name.name}@1")
    assert subscribe(world.ccs, "BO", name=own.name.name)[0] in (3, 4, 5)
    chain = tuple(world.network.some("Cap4", "Cap5"))
    fresh = replace(own, name=replace(own.name, version=parse_version("2")), credentials=chain)
    world.define(world.ccs, fresh, people["BO"])
    shown = type_right(world.network.key("BO"), own.name.name, actions=[Action.SUBSCRIBE])
    world.add(world.ccs, grant(people["BO"], people["CB"], shown))
    assert accepted(world.ccs, "BO", "subscribe", name=f"BO/{own.name.name}@2")
    foreign = replace(fresh, name=replace(own.name, version=parse_version("3")), credentials=chain[1:])
    world.define(world.ccs, foreign, people["BO"])
    assert not accepted(world.ccs, "BO", "subscribe", name=f"BO/{own.name.name}@3")


@pytest.mark.requirement("2.09")
def test_a_home_serves_a_type_as_long_as_its_credentials_last(world: NumberplateHomes) -> None:
    """One domain, left open: the install chain of a type ends, and so do reading and publishing; a fresh one serves."""
    people, connect = world.network.people, world.network.certificates["Cap2b"].body.tag
    now = datetime.now(UTC).replace(microsecond=0)
    install = network_right(world.network.key("PITO"), NETWORK_NAME, [Action.INSTALL])
    own = EventType(
        name=TypeName(world.network.key("CCS"), "uk.ccs.Plate", parse_version("1")),
        attributes=world.event_type.attributes,
    )
    both = type_right(world.network.key("CCS"), "uk.ccs.Plate", actions=[Action.SUBSCRIBE, Action.PUBLISH])
    world.add(world.ccs, *(grant(people["CCS"], people[who], both) for who in ("CB", "BO")))
    world.add(world.ccs, grant(people["CCS"], people["BO"], connect))
    for version, until in (("1", now + timedelta(hours=1)), ("2", None)):
        credential = grant(people["PITO"], people["CCS"], install, valid=(None, until))
        name = replace(own.name, version=parse_version(version))
        world.define(world.ccs, replace(own, name=name, credentials=(credential,)), people["CCS"])
    domain = maia.open(world.ccs)

    def served(version: str, when: datetime) -> list[str]:
        found = []
        for action in ("subscribe", "publish"):
            try:
                if action == "publish":
                    domain.publish_plan(
                        f"CCS/uk.ccs.Plate@{version}", client=domain.prove("BO"), publication="asked", at=when
                    )
                else:
                    domain.deliver_plan(f"CCS/uk.ccs.Plate@{version}", client=domain.prove("BO"), commits=(), at=when)
            except MaiaError as error:
                found.append(error.code)
            else:
                found.append("served")
        return found

    soon, late = now + timedelta(minutes=30), now + timedelta(hours=2)
    assert (served("1", soon), served("2", soon)) == (["served"] * 2, ["served"] * 2)
    assert "served" not in served("1", late)
    assert served("2", late) == ["served"] * 2


@pytest.mark.requirement("2.07")
@pytest.mark.requirement("2.02")
def test_a_definition_that_the_registry_altered_is_not_used(world: NumberplateHomes, tmp_path: Path) -> None:
    """The file says `location` is an integer: nobody subscribes by it; the genuine one serves on."""
    [path] = (world.met / "types").glob("*/*.type")
    genuine = path.read_bytes()
    head, tail = genuine.split(b"8:location", 1)
    altered = head + b"8:location" + tail.replace(b"6:string", b"7:integer", 1)
    assert len(altered) == len(genuine) + 1
    (tmp_path / "altered.type").write_bytes(altered)
    assert Command(world.met)("type", "verify", str(tmp_path / "altered.type")).code == 4
    path.write_bytes(altered)
    assert not accepted(world.met, "Smith", "subscribe")
    assert subscribe(world.met, "Smith")[0] in (3, 4, 5)
    path.write_bytes(genuine)
    assert accepted(world.met, "Smith", "subscribe")
    forged = sign_event_type(world.event_type, world.network.people["BO"]).raw
    path.write_bytes(forged)
    assert not accepted(world.met, "Smith", "subscribe")


@pytest.mark.requirement("7.02")
def test_a_type_is_named_only_where_its_definition_is_known(world: NumberplateHomes) -> None:
    """A home that never saw the definition does not know the name; once it has it, the name is enough."""
    [path] = (world.met / "types").glob("*/*.type")
    genuine = path.read_bytes()
    path.unlink()
    with pytest.raises(NotFoundError):
        maia.open(world.met).find_type(TYPE_NAME)
    assert subscribe(world.met, "Smith")[0] == 5
    path.write_bytes(genuine)
    assert accepted(world.met, "Smith", "subscribe")


@pytest.mark.requirement("7.07")
@pytest.mark.parametrize("text", ["location = 'Victoria'", "location != 'Kent'", "location any"])
def test_a_filter_over_a_closed_attribute_is_refused(world: NumberplateHomes, text: str) -> None:
    """The billing office may not read places, so it may not ask by them; over plates it may."""
    ccs = maia.open(world.ccs)
    office = ccs.prove("BO")
    assert ccs.deliver_plan(TYPE_NAME, client=office, where="numberplate = 'AE05 XYZ'", commits=()).subscriptions
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        ccs.deliver_plan(TYPE_NAME, client=office, where=text, commits=())
    assert subscribe(world.ccs, "BO", "--where", text) == (3, "FILTER_NOT_AUTHORISED")


@pytest.mark.requirement("7.13")
def test_a_refused_publication_is_told_and_leaves_no_trace_in_the_log(world: NumberplateHomes, tmp_path: Path) -> None:
    """The billing office may not publish: exit 3 with a code, and the log is as it was."""
    log = world.ccs.parent / "log"
    before = set(log.rglob("*")) if log.exists() else set()
    (tmp_path / "rows.json").write_text(ROWS, "utf-8")
    command = Command(world.ccs)
    code, error = command.refused("publish", str(tmp_path / "rows.json"), "--type", TYPE_NAME, "--as", "BO")
    assert (code, bool(error)) == (3, True)
    assert (set(log.rglob("*")) if log.exists() else set()) == before
    assert command.do("log", "show")["commits"] == []


@pytest.mark.requirement("1.13")
def test_a_name_without_its_private_key_is_nobody(world: NumberplateHomes) -> None:
    """A home that knows Smith's public key and his chain, but not his private key, reads nothing as Smith."""
    smith = world.met / "keys" / "Smith.key"
    kept = smith.read_bytes()
    smith.unlink()
    with pytest.raises(NotFoundError):
        maia.open(world.met).client("Smith")
    assert subscribe(world.met, "Smith")[0] in (3, 4, 5)
    world.add_key(world.met, "Jones", world.network.people["BO"])
    smith.write_bytes((world.met / "keys" / "Jones.key").read_bytes())
    smith.chmod(0o600)
    with pytest.raises(VerificationError, match="KEY_PAIR"):
        maia.open(world.met).client("Smith")
    assert subscribe(world.met, "Smith")[0] == 4
    smith.write_bytes(kept)
    assert maia.open(world.met).client("Smith").key == world.network.key("Smith")


@pytest.mark.requirement("24.03")
def test_the_rights_matrix_at_the_door(world: NumberplateHomes) -> None:
    """The camera publishes and reads nothing; BO, SO and Smith read and publish nothing."""
    found = {
        who: (accepted(home, who, "publish"), accepted(home, who, "subscribe"))
        for home, who in ((world.ccs, "CCTV"), (world.ccs, "BO"), (world.ccs, "SO"), (world.met, "Smith"))
    }
    reads = (False, True)
    assert found == {"CCTV": (True, False), "BO": reads, "SO": reads, "Smith": reads}


CONNECTED = ("PITO", "Met", "CCS", "Smith", "BO", "SO", "CCTV", "MB", "CB")
HELD = {
    "connect": CONNECTED,
    "install": ("PITO", "CCS", "BO", "TM"),
    "publish": ("PITO", "CCS", "CCTV", "CB"),
    "subscribe": ("PITO", "Met", "CCS", "Smith", "BO", "SO", "MB", "CB"),
    "manage": ("PITO", "TM"),
}


def knows_all(world: NumberplateHomes) -> Command:
    """Let the home of the congestion charge service know every key of the network."""
    for who in ("PITO", "Met", "Smith", "MB", "TM"):
        world.add_key(world.ccs, who)
    return Command(world.ccs)


@pytest.mark.requirement("24.03")
@pytest.mark.parametrize("action", HELD)
def test_each_principal_has_its_rights_and_no_other(world: NumberplateHomes, action: str) -> None:
    """Ten principals, five actions: `maia explain` draws the chain for those of the thesis, and exits with 3 else."""
    command = knows_all(world)
    on = ("--network", f"PITO/{NETWORK_NAME}") if action in ("connect", "install") else ("--type", f"PITO/{TYPE_NAME}")
    exits = {who: command("explain", "--as", who, *on, "--action", action).code for who in (*CONNECTED, "TM")}
    assert exits == {who: 0 if who in HELD[action] else 3 for who in exits}


@pytest.mark.requirement("18.10")
@pytest.mark.requirement("24.03")
def test_the_table_of_rights_is_the_matrix(world: NumberplateHomes) -> None:
    """`maia who-can` lists everybody with what it may do and see; after Smith's right is gone, everybody but him."""
    command = knows_all(world)

    def table() -> dict[str, list[str]]:
        rights = command.do("who-can", f"PITO/{TYPE_NAME}")["rights"]
        return {who.partition(" ")[0]: sorted(can) for who, can in rights.items()}

    everybody = {who for holders in HELD.values() for who in holders} - {"PITO"}  # owners are not listed
    expected = {who: sorted(action for action in HELD if who in HELD[action]) for who in everybody}
    assert table() == expected
    drop(world.ccs, world.network.certificates["Cap10"].raw)
    assert table() == expected | {"Smith": ["connect"]}


@pytest.mark.requirement("24.03")
def test_who_may_install_and_who_may_manage(world: NumberplateHomes) -> None:
    """BO installs a type of its own, Smith does not; TM signs a version of PITO's, BO does not; TM does not connect."""
    command = knows_all(world)
    on = ("--attribute", "a:string:1", "--network", f"PITO/{NETWORK_NAME}")
    assert command.do("type", "define", "BO/uk.ccs.Own@1", *on)
    assert command.refused("type", "define", "Smith/uk.met.Own@1", *on) == (4, "NOT_INSTALLED")
    evolve = ("type", "evolve", f"PITO/{TYPE_NAME}@8516", "--add", "speed:integer:1", "--number", "2", *on[2:], "--as")
    assert command.refused(*evolve, "BO") == (4, "NOT_PERMITTED")
    assert [command.refused(*evolve, who)[0] for who in ("Smith", "SO", "CCTV", "CCS")] == [4] * 4
    with pytest.raises(NotFoundError):
        maia.open(world.ccs).event_type(f"PITO/{TYPE_NAME}@2")
    command.do(*evolve, "TM")
    assert "speed" in {item.name for item in maia.open(world.ccs).event_type(f"PITO/{TYPE_NAME}@2").attributes}
    assert not accepted(world.ccs, "TM", "publish")
    assert not accepted(world.ccs, "TM", "subscribe")


@pytest.mark.requirement("24.03")
def test_nobody_grants_on_the_type_but_pito_and_those_it_let(world: NumberplateHomes) -> None:
    """Without a delegable right from PITO the command signs nothing, and what is signed all the same opens nothing."""
    command = knows_all(world)
    command.keys("stranger")
    given = ("--to", "stranger", "--type", f"PITO/{TYPE_NAME}", "--action", "subscribe", "--irrevocable")
    asked = ("explain", "--as", "stranger", "--type", f"PITO/{TYPE_NAME}", "--action", "subscribe")
    for who in ("Smith", "BO", "SO", "CCTV", "MB", "CB", "TM"):
        assert command.refused("grant", "--from", who, *given) == (3, "ISSUER_LACKS_RIGHT")
        command.grant("--from", who, *given, "--blanket")
        assert command(*asked).code == 3, who
    for who in ("Met", "CCS"):  # which pass on what is PITO's
        for cap in ("Cap12", "Cap6"):
            drop(world.ccs, world.network.certificates[cap].raw)
        assert command.refused("grant", "--from", who, *given) == (3, "ISSUER_LACKS_RIGHT")
        world.add(world.ccs, *world.network.some("Cap12", "Cap6"))
    command.grant("--from", "PITO", *given)
    assert command(*asked).code == 0
