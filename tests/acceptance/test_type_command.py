"""Types and key groups with the `maia` command: who may define, evolve, extend and install, and who gets keys."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import maia
from maia.errors import MalformedError, UsageError
from maia.events import TypeName, parse_version
from maia.testing import Command

PLATE = "pito/uk.gov.pito.Numberplate"


@pytest.fixture(name="maia")
def numberplate(maia_command: Command) -> Command:
    """Start from Numberplate 4799 with two attributes."""
    maia_command.keys("pito", "tm", "evil")
    maia_command.do(
        "type", "define", f"{PLATE}@4799", "--attribute", "license-plate:string:9525", "--attribute", "location:string"
    )
    return maia_command


@pytest.mark.requirement("2.04")
def test_people_may_leave_the_owner_out_where_it_is_clear_and_what_is_signed_never_does(maia: Command) -> None:
    """A bare name means the one owner that has it, whose key is in all that is signed; of two, neither."""
    bare = "uk.gov.pito.Numberplate"
    assert bare in maia("type", "show").out
    owner = maia.do("key", "show", "pito")["keys"][0]["fingerprint"]
    for text in (bare, PLATE):
        assert maia.do("type", "show", text)["owner"]["fingerprint"] == owner
    to_tm = ("grant", "--to", "tm", "--type", bare, "--action", "subscribe", "--from")
    whole = ("grant", "--to", "tm", "--type", PLATE, "--action", "subscribe", "--from")
    assert maia.do(*to_tm, "pito")["tag"] == maia.do(*whole, "pito")["tag"]
    maia.keys("reader")
    below = ("--from", "pito", "--to", "reader", "--action", "subscribe", "--type")
    asked = ("explain", "--as", "reader", "--action", "subscribe", "--type", f"{PLATE}@4799")
    maia.grant(*below, "pito/uk.gov.met.*")
    assert maia.refused(*asked)[0] == 3
    maia.grant(*below, "pito/uk.gov.pito.*")
    assert maia(*asked).code == 0, "names are a hierarchy, read from the left"
    maia.do("type", "define", f"evil/{bare}@4799", "--attribute", "license-plate:string:9525")
    ran = maia("type", "show", bare)
    assert ran.code == 2
    assert all(f"`{who}/{bare}`" in ran.err for who in ("pito", "evil"))
    assert maia.refused(*to_tm, "evil") == (2, "TYPE_TEXT")
    with pytest.raises(MalformedError, match="TYPE_OWNER"):
        TypeName(bare, bare, parse_version("4799"))  # type: ignore[arg-type]


@pytest.mark.requirement("2.04")
def test_where_full_names_are_wanted_a_bare_one_is_refused_at_every_door(maia_command: Command) -> None:
    """The display says `uk.gov.pito.Numberplate`; commands, calls and machines are told whose it is, or refuse."""
    home, bare = maia_command, "uk.gov.pito.Numberplate"
    home.do("domain", "init", str(home.home))
    home.keys("pito", "tm")
    home.do("type", "define", f"{PLATE}@4799", "--attribute", "license-plate:string:9525", "--encryption", "plain")
    for who in ("broker", "tm"):
        home.grant("--from", "pito", "--to", who, "--type", PLATE, "--action", "publish,subscribe")
    domain = maia.open(home.home)
    assert domain.find_type(bare).name == bare, "by default people may leave out what is clear"
    settings = home.home / "maia.toml"
    settings.write_text(f'names = "full"\n{settings.read_text("utf-8")}', "utf-8")
    assert bare in home("type", "show").out
    advertise, subscribe = ("advertise", "add", "--as", "tm", "--type"), ("deliver", "add", "s", "--as", "tm", "--type")
    grant = ("grant", "--from", "pito", "--to", "tm", "--action", "subscribe", "--type")
    for line in (advertise, subscribe, grant, ("type", "show"), ("type", "verify")):
        assert home.refused(*line, bare) == (2, "TYPE_TEXT"), line
        home.do(*line, PLATE)
    assert home.refused("advertise", "remove", "--as", "tm", "--type", bare) == (2, "TYPE_TEXT")
    domain = maia.open(home.home)
    calls: tuple[Callable[[str], object], ...] = (
        domain.find_type, domain.event_type, domain.client("tm").advertise,
        lambda name: domain.deliver_plan(name, client=domain.prove("tm"), commits=()),
        lambda name: domain.publish_plan(name, client=domain.prove("tm"), publication="p"),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(UsageError, match="TYPE_TEXT"):
            call(bare)
        call(PLATE)
    right = {"type": [bare, "4799"], "actions": ["subscribe"], "attributes": "*"}
    asked = {
        "id": 1, "verb": "authority.decide", "roots": [], "statements": [], "at": 0, "principal": "tm",
        "certificates": [{"issuer": "pito", "subject": "tm", "delegate": False, "right": right}],
        "request": {"action": "subscribe", "type": ["pito", bare, "4799"]},
    }  # fmt: skip
    whole = {**right, "type": ["pito", bare, "4799"]}
    known = {**asked, "certificates": [{"issuer": "pito", "subject": "tm", "delegate": False, "right": whole}]}
    unknown = {**known, "request": {"action": "subscribe", "type": [bare, "4799"]}}
    lines = home("conformance", stdin="".join(f"{json.dumps(line)}\n" for line in (asked, known, unknown))).lines
    assert ["error" in line for line in lines] == [True, False, True]
    assert lines[1]["result"] == "grant"


def test_a_uid_keeps_its_meaning_over_all_versions(maia: Command) -> None:
    """9525 neither changes its type nor comes back as something else after it was removed; a fresh uid is welcome."""
    evolve = ("type", "evolve", f"{PLATE}@4799")
    maia.do(*evolve, "--remove", "license-plate", "--number", "2")
    define = ("type", "define", f"{PLATE}@3", "--attribute", "location:string:9526", "--attribute")
    assert maia(*define, "license-plate:integer:9525").code == 1
    for number, text in (("3", "license-plate:integer:9525"), ("4", "colour:string:9525")):
        assert maia("type", "evolve", f"{PLATE}@2", "--add", text, "--number", number).code not in (0, 2), text
    maia.do("type", "evolve", f"{PLATE}@2", "--add", "colour:string:4711", "--number", "5")
    twice = ("--attribute", "a:string:1", "--attribute", "a:string:2")
    assert maia("type", "define", "pito/x.Twice", *twice).code != 0


@pytest.mark.requirement("3.01")
@pytest.mark.requirement("3.10")
def test_a_manager_evolves_within_its_part(maia: Command) -> None:
    """A holder of editAttributeName renames, which keeps the uid, and may neither remove nor add."""
    rename = ("type", "evolve", f"{PLATE}@4799", "--rename", "license-plate=numberplate", "--as", "tm")
    assert maia.refused(*rename)[0] == 4
    maia.grant("--from", "pito", "--to", "tm", "--type", PLATE, "--action", "editAttributeName")
    maia.do(*rename, "--number", "8516")
    shown = maia.do("type", "show", f"{PLATE}@8516")
    assert ("numberplate", "9525") in [(item["name"], item["uid"]) for item in shown["attributes"]]
    for beyond in (("--remove", "location"), ("--add", "speed:integer")):
        assert maia.refused("type", "evolve", f"{PLATE}@4799", *beyond, "--as", "tm")[0] == 4
    retyped = maia.do("type", "evolve", f"{PLATE}@4799", "--retype", "location:binary", "--number", "9")
    uids = {item["name"]: item["uid"] for item in retyped["attributes"]}
    assert uids["location"] not in ("9525", "9526")


@pytest.mark.requirement("3.12")
def test_a_manager_is_named_after_deployment_and_its_certificate_travels_by_itself(
    maia: Command, tmp_path: Path
) -> None:
    """The type stays as it was deployed; what the manager gets is a file, which obeys no list, and it counts."""
    versions = maia.do("type", "show")["types"]
    deployed = {path.name: path.read_bytes() for path in (maia.home / "types").rglob("*.type")}
    other = Command(tmp_path / "other")
    other.keys("tm")
    for source, target, names in ((other, maia, ("tm",)), (maia, other, ("pito",))):
        for name in names:
            shutil.copy(source.home / "keys" / f"{name}.pub", target.home / "keys" / f"{name}-there.pub")
    (other.home / "keys" / "pito-there.pub").rename(other.home / "keys" / "pito.pub")
    shutil.copytree(maia.home / "types", other.home / "types", dirs_exist_ok=True)
    change = ("type", "evolve", f"{PLATE}@4799", "--add", "speed:integer", "--as", "tm", "--number", "1")
    assert other.refused(*change)[0] == 4
    maia.grant("--from", "pito", "--to", "tm-there", "--type", PLATE, "--action", "manage", "--irrevocable",
               "--out", str(tmp_path / "manage.cert"))  # fmt: skip
    assert maia.do("type", "show")["types"] == versions
    assert {path.name: path.read_bytes() for path in (maia.home / "types").rglob("*.type")} == deployed
    assert other.refused(*change)[0] == 4, "it travels by itself, or not at all"
    (other.home / "certificates").mkdir(exist_ok=True)
    shutil.copy(tmp_path / "manage.cert", other.home / "certificates" / "manage.cert")
    other.do(*change, "--out", str(tmp_path / "one.type"))
    assert maia("type", "verify", str(tmp_path / "one.type")).code == 0


@pytest.mark.requirement("3.11")
@pytest.mark.requirement("2.08")
def test_a_network_demands_the_install_right(maia: Command) -> None:
    """A manager without install is refused on the network; with it, its chain is in the definition for everybody."""
    network = ("--network", "pito/UK Police Network")
    maia.grant("--from", "pito", "--to", "tm", "--type", PLATE, "--action", "manage")
    change = ("type", "evolve", f"{PLATE}@4799", "--add", "speed:integer", "--as", "tm", "--number", "1")
    assert maia.refused(*change, *network)[0] == 4
    maia.grant("--from", "pito", "--to", "tm", *network, "--action", "install")
    assert len(maia.do(*change, *network)["credentials"]) == 2
    assert maia("type", "verify", f"{PLATE}@1", *network).code == 0
    assert maia("type", "verify", f"{PLATE}@1", "--network", "evil/UK Police Network").code == 4


@pytest.mark.requirement("5.16")
def test_a_child_needs_the_extend_right_on_its_parent(maia: Command) -> None:
    """Extend `Test*`: a child of TestType1 is accepted, one of Other is not, nor one without a certificate."""
    for name in ("TestType1", "Other"):
        maia.do("type", "define", f"pito/{name}@1", "--attribute", "a:string:1")

    def child(parent: str, name: str) -> int:
        own = ("--extends", f"pito/{parent}@1", "--attribute", "b:string:7")
        return maia("type", "define", f"tm/{name}", *own).code

    assert child("TestType1", "Early") == 4
    maia.grant("--from", "pito", "--to", "tm", "--type", "pito/Test*", "--action", "extend")
    assert (child("TestType1", "Child"), child("Other", "Stray")) == (0, 4)


@pytest.mark.requirement("16.01")
@pytest.mark.requirement("16.02")
def test_a_key_group_for_each_attribute_and_one_for_the_whole_takes_brokers_with_a_right(maia: Command) -> None:
    """Three attributes make four groups, of which brokers alone are members: by their right all, one or none."""
    attributes = ("numberplate:string:3265", "timestamp:timestamp:9058", "location:string:3467")
    flags = [flag for text in attributes for flag in ("--attribute", text)]
    found = {}
    for name, right in {"none": None, "one": ("--attribute", "9058"), "all": ()}.items():
        met = Command(maia.home / name)
        met.do("domain", "init", str(met.home), "--key")
        met.do("type", "define", "domain/Numberplate@1", *flags)
        met.keys("smith")
        met.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
        if right is not None:
            for who in ("broker", "smith"):
                met.grant(
                    "--from", "domain", "--to", who, "--type", "domain/Numberplate", "--action", "subscribe", *right
                )
        ran = met("keys", "join", "Numberplate", "--json")
        if name == "none":
            assert ran.code == 4, "without a chain a broker is refused, and told so"
        found[name] = {row["uid"] for row in ran.data["groups"]} if ran.code == 0 else set()
    assert found == {"none": set(), "one": {"9058"}, "all": {None, "3265", "9058", "3467"}}
    groups = met.do("keys", "groups")["groups"]
    assert [row["members"] for row in groups] == [1] * 4
    assert {row["epoch"] for row in groups} == {1}
