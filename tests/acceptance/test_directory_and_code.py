"""The directory names things once; the repository hands code out for credentials that name it, to their owners."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from overlay_world import OverlayWorld

import maia
from maia.principals import issue, parse_certificate


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OverlayWorld:
    """A home whose admin registers names, whose developer puts code, and two applications."""
    world = OverlayWorld(tmp_path_factory.mktemp("code") / "home", "admin", "developer", "app", "other")
    world.issue("directory:domain/directory", "register", to="admin")
    world.issue("repository:domain/code", "put", to="developer")
    return world


@pytest.fixture(scope="module")
def code(world: OverlayWorld) -> str:
    """Put a handler into the repository, and name it and the repository in the directory; give its digest."""
    file = world.home.parent / "greyscale.py"
    file.write_text("def handle(number, pixels):\n    return pixels[:, :, :1]\n", "utf-8")
    found = str(world.command.do("code", "put", str(file), "--as", "developer")["code"])
    for name, named in (("lab.code", "repository:domain/code"), ("greyscale", f"code:domain/{found}")):
        world.command.do("directory", "add", name, "--object", named, "--as", "admin")
    rules: list[dict[str, Any]] = [
        {"object": "repository:domain/code", "to": who, "rights": ["exchange"], "seconds": 600}
        for who in ("app", "other")
    ]
    world.policy(*rules, {"object": f"code:domain/{found}", "to": "app", "rights": ["fetch"], "seconds": 600})
    return found


@pytest.mark.requirement("19.12")
def test_a_name_stands_for_one_thing_and_anyone_finds_it(world: OverlayWorld) -> None:
    """A second registration is refused, in whatever case; who has no right changes nothing; look-ups take none."""
    add, repo = ("directory", "add"), ("--object", "repository:domain/code")
    world.command.do(*add, "Images", *repo, "--as", "admin")
    for name in ("Images", "images"):
        assert world.command.refused(*add, name, "--principal", "app", "--as", "admin") == (2, "DIRECTORY_TAKEN")
    assert world.command.refused(*add, "mine", *repo, "--as", "app") == (3, "OBJECT_DENIED")
    assert world.command.refused("directory", "remove", "Images", "--as", "app") == (3, "OBJECT_DENIED")
    assert world.command.refused(*add, "../up", *repo, "--as", "admin") == (2, "DIRECTORY_NAME")
    assert world.command.do("directory", "find", "Images")["object"] == "repository:domain/code"
    world.command.do(*add, "people.app", "--principal", "app", "--as", "admin")
    assert world.command.do("directory", "find", "people.app")["principal"] == world.key("app")
    assert world.command.refused("directory", "find", "nobody") == (5, "DIRECTORY_NONE")
    listed = [entry["name"] for entry in world.command.do("directory", "list")["entries"]]
    assert {"Images", "people.app"} <= set(listed)
    assert ("app", "OBJECT_DENIED") in world.refusals()
    world.command.do("directory", "remove", "Images", "--as", "admin")
    assert world.command.refused("directory", "find", "Images") == (5, "DIRECTORY_NONE")


@pytest.mark.requirement("19.12")
def test_an_entry_that_the_domain_did_not_sign_for_a_name_names_nothing(world: OverlayWorld) -> None:
    """A file of somebody else, and one of the domain for another name, are told from an entry."""
    for name, who in (("signed", "app"), ("moved", "other")):
        world.command.do("directory", "add", name, "--principal", who, "--as", "admin")
    folder = world.home / "directory"
    places = {name: folder / f"{hashlib.sha256(name.encode()).hexdigest()}.cert" for name in ("signed", "moved")}
    right = next((world.home / "certificates").glob("*.cert")).read_bytes()
    with maia.open(world.home) as domain:
        mallory = domain.home.signer("other")
    body = parse_certificate(places["signed"].read_bytes()).body
    forged = issue(replace(body, issuer=mallory.public_key), mallory).raw
    for data in (forged, places["moved"].read_bytes(), right, b"(nothing)"):
        places["signed"].write_bytes(data)
        assert world.command.refused("directory", "find", "signed") == (1, "DIRECTORY_ENTRY")
        assert "signed" not in [entry["name"] for entry in world.command.do("directory", "list")["entries"]]


@pytest.mark.requirement("19.13")
def test_a_credential_of_the_repository_is_exchanged_for_one_of_a_piece_of_code(
    world: OverlayWorld, code: str, tmp_path: Path
) -> None:
    """The directory tells the place as a credential, which buys one of the code, once, and that buys the code."""
    repo, piece, out = tmp_path / "repo.xml", tmp_path / "greyscale.json", tmp_path / "got.py"
    given = world.command.do("directory", "find", "lab.code", "--as", "app", "--out", str(repo))["credential"]
    assert (given["object"]["kind"], given["client"]["key"]) == ("repository", world.key("app"))
    assert world.command.refused("code", "get", str(repo), "--as", "app", "--out", str(out)) == (
        3,
        "CREDENTIAL_REFUSED",
    )
    made = world.command.do("code", "exchange", "greyscale", str(repo), "--as", "app", "--out", str(piece))[
        "credential"
    ]
    assert (made["object"]["kind"], made["object"]["instance"]) == ("code", code)
    assert made["client"] == {"kind": "person", "key": world.key("app")}
    again = ("code", "exchange", "greyscale", str(repo), "--as", "app")
    assert world.command.refused(*again) == (3, "CREDENTIAL_REFUSED"), "it was replaced"
    assert world.command.do("code", "get", str(piece), "--as", "app", "--out", str(out))["code"] == code
    assert f"sha256:{hashlib.sha256(out.read_bytes()).hexdigest()}" == code
    assert world.command.do("handler", "check", str(out))["handler"] == code


@pytest.mark.requirement("19.13")
def test_who_presents_somebody_elses_credential_is_refused(world: OverlayWorld, code: str, tmp_path: Path) -> None:
    """Neither the place nor the code is had by a credential that names another, nor what no policy gives."""
    repo, piece, out = tmp_path / "repo.xml", tmp_path / "piece.xml", tmp_path / "got.py"
    world.command.do("directory", "find", "lab.code", "--as", "app", "--out", str(repo))
    exchange = ("code", "exchange", "greyscale")
    assert world.command.refused(*exchange, str(repo), "--as", "other") == (3, "CREDENTIAL_NOT_OWN")
    own = tmp_path / "own.xml"
    world.command.do("directory", "find", "lab.code", "--as", "other", "--out", str(own))
    assert world.command.refused(*exchange, str(own), "--as", "other") == (3, "CREDENTIAL_DENIED")
    assert world.command.do("credential", "check", str(own))["rights"] == ["exchange"], "a refusal voids nothing"
    assert world.command.refused("directory", "find", "lab.code", "--as", "admin") == (3, "CREDENTIAL_DENIED")
    assert world.command.refused("code", "exchange", "lab.code", str(repo), "--as", "app") == (5, "CODE_NONE")
    world.command.do(*exchange, str(repo), "--as", "app", "--out", str(piece))
    get = ("code", "get", str(piece), "--out", str(out), "--as")
    assert world.command.refused(*get, "other") == (3, "CREDENTIAL_NOT_OWN")
    assert not out.exists()
    assert {("other", "CREDENTIAL_NOT_OWN"), ("other", "CREDENTIAL_DENIED")} <= world.refusals()
    [file] = (world.home / "code").glob(f"{code.removeprefix('sha256:')}.*")
    kept = file.read_bytes()
    file.write_bytes(kept + b"\n# changed\n")
    assert world.command.refused(*get, "app") == (1, "CODE_DAMAGED")
    file.write_bytes(kept)
    assert world.command.do(*get, "app")["code"] == code


@pytest.mark.requirement("19.13")
def test_only_by_right_code_is_put_into_the_repository(world: OverlayWorld, code: str, tmp_path: Path) -> None:
    """Who lacks it puts nothing; what is no handler is refused; putting the same again changes nothing."""
    file = tmp_path / "mine.py"
    file.write_text("def handle(number, pixels):\n    return None\n", "utf-8")
    before = world.command.do("code", "list")["pieces"]
    assert code in [item["code"] for item in before]
    assert world.command.refused("code", "put", str(file), "--as", "app") == (3, "OBJECT_DENIED")
    assert world.command.refused("code", "put", str(file.with_suffix(".txt")), "--as", "developer")[1] == "HANDLER_NAME"
    broken = tmp_path / "broken.wasm"
    broken.write_bytes(b"nothing of the kind")
    assert world.command.refused("code", "put", str(broken), "--as", "developer")[1] == "HANDLER_CODE"
    assert world.command.do("code", "list")["pieces"] == before
    names = {world.command.do("code", "put", str(file), "--as", "developer")["code"] for _ in range(2)}
    assert len(names) == 1
    assert len(world.command.do("code", "list")["pieces"]) == len(before) + 1
