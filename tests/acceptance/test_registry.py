"""Definitions between homes: fetched from whoever has them, verified by whoever uses them, and refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import maia
from maia.encoding import encode, parse_canonical
from maia.errors import MaiaError
from maia.testing import Command

PLATE = "pito/uk.gov.pito.Numberplate"


@pytest.fixture
def pito(tmp_path: Path) -> Command:
    """Make the owner's home, with one version of its type."""
    made = Command(tmp_path / "pito")
    made.do("domain", "init", str(made.home))
    made.keys("pito", "tm")
    made.do("type", "define", f"{PLATE}@1", "--attribute", "numberplate:string:3265", "--attribute", "place:string:2")
    return made


@pytest.fixture
def met(pito: Command, tmp_path: Path) -> Command:
    """Make a home that knows the owner's key and nothing else."""
    made = Command(tmp_path / "met")
    made.do("domain", "init", str(made.home))
    made.do("key", "import", "pito", str(pito.home / "keys" / "pito.pub"))
    made.do("key", "import", "tm", str(pito.home / "keys" / "tm.pub"))
    return made


@pytest.mark.requirement("2.05")
def test_a_name_is_used_once_in_a_version_and_a_uid_once_for_ever(pito: Command) -> None:
    """`numberplate` twice is no version; 3265 with another type, or under another name after it went, is refused."""
    twice = ("--attribute", "numberplate:string:1", "--attribute", "numberplate:string:2")
    assert pito.refused("type", "define", "pito/Twice@1", *twice) == (1, "ATTRIBUTE_NAME_TWICE")
    assert pito.refused("type", "define", f"{PLATE}@2", "--attribute", "speed:integer:3265") == (1, "UID_REUSED")
    pito.do("type", "evolve", f"{PLATE}@1", "--remove", "numberplate", "--number", "2")
    back = ("type", "evolve", f"{PLATE}@2", "--add", "owner:string:3265", "--number", "3")
    assert pito.refused(*back) == (1, "UID_REUSED")
    assert len(pito.do("type", "show")["types"]) == 2


@pytest.mark.requirement("2.07")
def test_what_a_registry_gives_is_verified_before_it_is_kept(pito: Command, met: Command, tmp_path: Path) -> None:
    """By its full name, with the version that it came from; a tampered one is refused, and so is one under a guess."""
    pito.grant("--from", "pito", "--to", "tm", "--type", PLATE, "--action", "addAttribute", "--irrevocable")
    pito.do("type", "evolve", f"{PLATE}@1", "--add", "speed:integer:3", "--number", "2", "--as", "tm")
    fetch = ("type", "fetch", f"{PLATE}@2", "--from", str(pito.home / "types"))
    assert met.do(*fetch)["verified"]
    assert sorted(row["version"] for row in met.do("type", "show")["types"]) == ["1", "2"]
    assert met.refused("type", "fetch", f"{PLATE}@9", "--from", str(pito.home / "types")) == (5, "TYPE_NOT_FOUND")
    other = Command(tmp_path / "other")
    other.do("domain", "init", str(other.home))
    other.do("key", "import", "pito", str(pito.home / "keys" / "pito.pub"))
    for path in (pito.home / "types").glob("*/*.type"):
        path.write_bytes(path.read_bytes().replace(b"5:place", b"5:where"))
    for path in (pito.home / "types").rglob("*.accepted"):
        path.unlink()
    first = ("type", "fetch", f"{PLATE}@1", "--from", str(pito.home / "types"))
    assert other.refused(*first) == (4, "BAD_SIGNATURE")
    assert other.do("type", "show")["types"] == []


@pytest.mark.requirement("2.09")
@pytest.mark.requirement("3.10")
def test_each_reason_for_which_a_type_does_not_count_has_its_code(pito: Command, met: Command) -> None:
    """Unknown, expired, not installed, without the version before, altered: five codes, through one door."""
    past = ("--at", "2026-06-01T00:00:00Z")
    may = ("--from", "pito", "--to", "tm", "--irrevocable")
    pito.grant(*may, "--type", PLATE, "--action", "manage", "--until", "2026-06-02T00:00:00Z", *past)
    change = ("type", "evolve", f"{PLATE}@1", "--add", "speed:integer:3")
    pito.do(*change, "--number", "2", "--as", "tm", *past)
    pito.grant(*may, "--type", "pito/Other", "--action", "addAttribute")
    pito.do("type", "define", "pito/Other@1", "--attribute", "a:string:1")
    pito.do("type", "evolve", "pito/Other@1", "--add", "b:string:2", "--number", "2", "--as", "tm")

    def code(home: Command, name: str) -> str:
        domain = maia.open(home.home)
        with pytest.raises(MaiaError) as caught:
            domain.event_type(name)
        return caught.value.code

    assert code(pito, f"{PLATE}@7") == "TYPE_NOT_FOUND"
    assert code(pito, f"{PLATE}@2") == "TYPE_EXPIRED"
    other = maia.open(pito.home).find_type("Other@1").type_id.hex()
    for path in (pito.home / "types" / other).glob("*.type"):
        if b"1:1" in path.read_bytes().split(b"10:attributes")[0][-8:]:
            path.unlink()
    assert code(pito, "Other@2") == "PREVIOUS_MISSING"
    settings = met.home / "maia.toml"
    network = '\n[network]\nowner = "pito"\nname = "UK Police Network"\n'
    settings.write_text(settings.read_text("utf-8") + network, "utf-8")
    met.do("type", "fetch", f"{PLATE}@1", "--from", str(pito.home / "types"))
    met.keys("ccs")
    met.do("type", "define", "ccs/Own@1", "--attribute", "a:string:1")
    assert maia.open(met.home).event_type(f"{PLATE}@1"), "the coordinating principal's own types need no certificate"
    assert code(met, "Own@1") == "NOT_INSTALLED"


@pytest.mark.requirement("2.12")
def test_a_definition_that_leaves_its_credentials_unsigned_is_accepted_by_name_only(
    pito: Command, tmp_path: Path
) -> None:
    """The healthcare chapter's scope: `maia type verify` refuses it, and with `--compatible` demands the chain."""
    pito.grant("--from", "pito", "--to", "tm", "--type", "pito/uk.nhs.path_report", "--action", "manage")
    from maia.principals import Kind

    domain = maia.open(pito.home)
    pito.do("type", "define", "pito/uk.nhs.path_report@1", "--attribute", "lab:string:1", "--as", "tm")
    [path] = (pito.home / "types" / domain.find_type("uk.nhs.path_report").type_id.hex()).glob("*.type")
    match parse_canonical(path.read_bytes()):
        case (b"signed", number, (b"event-type", *fields), (b"signature", key, _)):
            body = (b"event-type", *fields[:-1])
            mark = domain.home.signer("tm").sign(Kind.EVENT_TYPE, encode(body))
        case _:
            pytest.fail("no definition")
    for name, credentials in {"whole": (fields[-1],), "bare": ()}.items():
        raw = encode((b"signed", number, body, *credentials, (b"signature", key, mark)))
        (tmp_path / name).write_bytes(raw)
    assert pito("type", "verify", str(tmp_path / "whole"), "--compatible").code == 0
    assert pito.refused("type", "verify", str(tmp_path / "whole"))[0] == 1
    assert pito.refused("type", "verify", str(tmp_path / "bare"), "--compatible")[0] == 1


@pytest.mark.requirement("3.13")
def test_the_lint_knows_who_subscribes_here(pito: Command) -> None:
    """SO is shown the place, BO the plate: removing the place names SO, adding and renaming nobody."""
    pito.keys("SO", "BO")
    pito.grant("--from", "pito", "--to", "broker", "--type", PLATE, "--action", "subscribe")
    for who, attribute in (("SO", "place"), ("BO", "numberplate")):
        pito.grant("--from", "pito", "--to", who, "--type", PLATE, "--action", "subscribe", "--attribute", attribute)
        pito.do("deliver", "add", who.lower(), "--as", who, "--type", f"{PLATE}@1")
    pito.do("type", "evolve", f"{PLATE}@1", "--remove", "place", "--number", "2")
    ran = pito("type", "lint", f"{PLATE}@1", f"{PLATE}@2", "--json")
    assert (ran.code, ran.data["findings"][0]["clients"]) == (1, ["SO"])
    pito.do("type", "evolve", f"{PLATE}@1", "--rename", "place=where", "--add", "speed:integer:3", "--number", "3")
    assert pito("type", "lint", f"{PLATE}@1", f"{PLATE}@3").code == 0


@pytest.mark.requirement("2.01")
def test_two_owners_of_one_name_have_two_types(pito: Command) -> None:
    """PITO and TM both define `Location`: a right on the one says nothing of the other, and a bare name is refused."""
    pito.keys("reader")
    for owner in ("pito", "tm"):
        pito.do("type", "define", f"{owner}/Location@1", "--attribute", "place:string:1")
    for who in ("broker", "reader"):
        pito.grant("--from", "pito", "--to", who, "--type", "pito/Location", "--action", "subscribe")
    domain = maia.open(pito.home)
    client = domain.prove("reader")
    with pytest.raises(MaiaError) as caught:
        domain.deliver_plan("Location", client=client, commits=())
    assert caught.value.code == "TYPE_AMBIGUOUS"
    assert domain.deliver_plan("pito/Location", client=client, commits=()).subscriptions
    with pytest.raises(MaiaError) as caught:
        domain.deliver_plan("tm/Location", client=client, commits=())
    assert caught.value.code in ("NO_EVIDENCE", "WRONG_ROOT", "BROKEN_CHAIN")
