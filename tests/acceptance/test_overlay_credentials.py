"""The overlay's credentials: a view on certificates that round-trips, whose every field is signed, and that moves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from overlay_world import OverlayWorld

KINDS = {
    "channel": ("channel:met/CameraA@1", ("route", "installHandler"), "met"),
    "source handle": ("source:met/CameraA@1", ("publish",), "met"),
    "sink handle": ("sink:met/CameraA", ("subscribe",), "met"),
    "code": (f"code:domain/sha256:{'0f' * 32}", ("fetch",), "domain"),
    "type": ("type:met/CameraA@1", ("transformFrom", "transformTo"), "met"),
    "conversion": ("conversion:met/CameraA-to-grey", ("convert",), "met"),
    "repository": ("repository:domain/code", ("exchange",), "domain"),
}
CLIENTS = {"person": "alice", "role": "domain: operators", "trust": "domain: trust-high"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OverlayWorld:
    """A home with some people and two hosts."""
    return OverlayWorld(tmp_path_factory.mktemp("overlay") / "home", "alice", "bob", "carol", "host", "lowhost")


@pytest.mark.requirement("19.02")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_object_round_trips_through_xml_and_json(world: OverlayWorld, kind: str) -> None:
    """Written in either notation and read again, it is the same certificate; to a stranger it gives nothing."""
    named, rights, issuer = KINDS[kind]
    identity = world.issue(named, *rights, "transfer", to="alice", issuer=issuer)
    for ending in ("xml", "json"):
        file = world.written(identity, f"{kind.partition(' ')[0]}.{ending}")
        told = world.command.do("credential", "check", str(file))
        assert (told["id"], told["rights"]) == (identity, sorted([*rights, "transfer"]))
        assert world.command.refused("credential", "check", str(file), "--of", "bob") == (3, "CREDENTIAL_REFUSED")
    data = json.loads(file.read_text("utf-8"))
    assert (data["object"]["kind"], data["client"]["kind"]) == (kind.partition(" ")[0], "person")
    assert world.command.refused(
        "credential", "issue", "--object", named, "--right", "everything", "--from", issuer, "--to", "alice"
    ) == (2, "OBJECT_RIGHT")  # fmt: skip


@pytest.mark.requirement("19.01")
def test_a_change_of_any_field_is_noticed(world: OverlayWorld, tmp_path: Path) -> None:
    """Every value that stands in a credential is signed: whichever is changed, in whichever notation, it is refused."""
    more = ("--delegate", "--until", "+30d", "--not-before", "2026-01-01T00:00:00Z")
    identity = world.issue("channel:met/CameraA@1", "route", "transfer", to="alice", issuer="met", more=more)
    whole = json.loads(world.written(identity, "whole.json").read_text("utf-8"))
    other = "ab" * 32
    places = {
        ("issuer", "key"): world.key("bob"), ("object", "kind"): "sink",
        ("object", "owner"): other, ("object", "instance"): "CameraB", ("object", "version"): "2",
        ("client", "key"): world.key("bob"), ("client", "kind"): "role",
        ("valid", "from"): "2025-01-01T00:00:00Z", ("valid", "until"): "2099-01-01T00:00:00Z",
        ("general-right", 0): "transfer", ("right", 0): "installHandler", ("test", 0): {},
        ("digest", "sha256"): other, ("signature", "ed25519"): other * 2,
    }  # fmt: skip
    signed = {(name, key) for name, value in whole.items() for key in (value if isinstance(value, dict) else [0])}
    assert signed == set(places), "every field of it is changed below"
    file, codes = tmp_path / "changed.json", set()
    for (name, key), value in places.items():
        changed = json.loads(json.dumps(whole))
        changed[name][key] = value
        file.write_text(json.dumps(changed), "utf-8")
        code, reason = world.command.refused("credential", "check", str(file))
        assert code in (1, 4), (name, key)
        codes.add(reason)
        if isinstance(value, str) and (name, key) not in {("object", "kind"), ("client", "kind")}:
            assert reason in ("CREDENTIAL_DIGEST", "BAD_SIGNATURE", "CREDENTIAL_FORM"), (name, key)
    assert {"CREDENTIAL_DIGEST", "BAD_SIGNATURE"} <= codes
    for name in whole:  # what is left out, and what is added
        file.write_text(json.dumps({key: value for key, value in whole.items() if key != name}), "utf-8")
        assert world.command.refused("credential", "check", str(file))[0] in (1, 4), name
    file.write_text(json.dumps({**whole, "note": {"text": "trust me"}}), "utf-8")
    assert world.command.refused("credential", "check", str(file)) == (1, "CREDENTIAL_FORM")
    text = world.written(identity, "whole.xml").read_text("utf-8")
    swapped = tmp_path / "changed.xml"
    for old, new in re.findall(r'(="([^"]+)")', text):
        value = text.replace(old, f'="{new[:-1]}{"1" if new[-1] != "1" else "2"}"', 1)
        swapped.write_text(value, "utf-8")
        assert world.command.refused("credential", "check", str(swapped))[0] in (1, 4), old
    for head in ('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>', "<?php?>"):
        swapped.write_text(head + text, "utf-8")
        assert world.command.refused("credential", "check", str(swapped)) == (1, "CREDENTIAL_FORM")


@pytest.mark.requirement("19.01")
@pytest.mark.requirement("19.03")
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_is_a_person_a_role_or_a_trust_level(world: OverlayWorld, kind: str) -> None:
    """Who is one has the rights of it, and nobody else; the descriptor says which it is."""
    world.command.do("name", "add", "operators", "--from", "domain", "--to", "alice")
    world.command.do("name", "add", "trust-high", "--from", "domain", "--to", "alice")
    identity = world.issue("channel:met/CameraA@1", "route", to=CLIENTS[kind], issuer="met")
    file = world.written(identity, f"{kind}.xml")
    assert world.command.do("credential", "show", identity)["credential"]["client"]["kind"] == kind
    assert world.command.do("credential", "check", str(file), "--of", "alice")["rights"] == ["route"]
    assert world.command.refused("credential", "check", str(file), "--of", "carol") == (3, "CREDENTIAL_REFUSED")


@pytest.mark.requirement("19.03")
def test_a_host_of_low_trust_is_refused_where_high_is_asked(tmp_path: Path) -> None:
    """A channel that asks for high trust takes what a host of high trust signed, and not what one of low trust did."""
    world = OverlayWorld(tmp_path / "home", "alice", "host", "lowhost")
    for level, who in (("high", "host"), ("low", "lowhost"), ("low", "domain: trust-high")):
        world.command.do("name", "add", f"trust-{level}", "--from", "domain", "--to", who)
    camera = "channel:met/CameraA@1"
    world.issue(camera, "route", to="domain: trust-high", issuer="met", more=("--delegate",))
    asked = ("credential", "issue", "--object", camera, "--right", "route", "--to", "alice", "--from")
    assert world.command.refused(*asked, "lowhost") == (3, "ISSUER_LACKS_RIGHT"), "it cannot even be signed here"
    good = world.written(str(world.command.do(*asked, "host")["id"]), "good.xml")
    assert world.command.do("credential", "check", str(good))["rights"] == ["route"]
    # A low host that signs all the same is refused by whoever checks.
    made = world.command.do(
        "grant", "--from", "lowhost", "--to", "alice", "--type", "met/CameraA@1", "--action", "route", "--blanket",
        "--irrevocable",
    )  # fmt: skip
    bad = world.written(str(made["id"]), "bad.xml")
    assert world.command.refused("credential", "check", str(bad)) == (3, "CREDENTIAL_REFUSED")
    world.command.do("name", "add", "trust-high", "--from", "domain", "--to", "lowhost")
    assert world.command.do("credential", "check", str(bad))["rights"] == ["route"], "nothing but its trust was missing"


@pytest.mark.requirement("19.04")
def test_only_with_the_right_to_transfer_a_credential_is_handed_over(world: OverlayWorld) -> None:
    """Without it Alice keeps hers; with it the new one names Bob, hers is void, and the rest is as it was."""
    camera = "channel:met/CameraA@1"
    kept = world.written(world.issue(camera, "route", to="alice", issuer="met", more=("--until", "+9d")), "kept.xml")
    hand = ("--as", "alice", "--to", "bob")
    assert world.command.refused("credential", "transfer", str(kept), *hand) == (3, "CREDENTIAL_REFUSED")
    assert world.command.do("credential", "check", str(kept))["rights"] == ["route"]
    old = world.written(
        world.issue(camera, "route", "transfer", to="alice", issuer="met", more=("--until", "+8d")), "old.xml"
    )
    new = old.with_name("new.json")
    for who in ("bob", "carol"):
        stolen = ("credential", "transfer", str(old), "--as", who, "--to", who)
        assert world.command.refused(*stolen) == (3, "CREDENTIAL_NOT_OWN")
    told = world.command.do("credential", "transfer", str(old), *hand, "--out", str(new))["credential"]
    assert told["client"] == {"kind": "person", "key": world.key("bob")}
    assert world.command.do("credential", "check", str(new))["rights"] == ["route", "transfer"]
    assert world.command.refused("credential", "check", str(new), "--of", "alice")[0] == 3
    assert world.command.refused("credential", "check", str(old)) == (3, "CREDENTIAL_REFUSED")
    assert world.command.refused("credential", "transfer", str(old), *hand) == (3, "CREDENTIAL_REFUSED")
    back = world.command.do("credential", "transfer", str(new), "--as", "bob", "--to", "alice", "--out", str(kept))
    assert world.command.do("credential", "check", str(kept))["id"] == back["id"] != told["digest"]["sha256"]
    assert {told["valid"]["until"]} == {back["credential"]["valid"]["until"]}


@pytest.mark.requirement("19.04")
def test_what_no_list_can_revoke_is_not_handed_over(world: OverlayWorld) -> None:
    """It would not be void; nothing is issued for the other."""
    file = world.written(
        world.issue("channel:met/CameraA@1", "route", "transfer", to="carol", issuer="met", more=("--irrevocable",)),
        "irrevocable.xml",
    )
    before = world.certificates()
    refused = world.command.refused("credential", "transfer", str(file), "--as", "carol", "--to", "bob")
    assert refused == (2, "IRREVOCABLE")
    assert world.certificates() == before


@pytest.mark.requirement("19.04")
def test_who_was_given_a_part_does_not_hand_over_the_whole(world: OverlayWorld) -> None:
    """Alice passes on what she has, to Carol; Carol cannot give Alice's credential away."""
    camera = "channel:met/CameraA@1"
    whole = world.issue(camera, "route", "transfer", to="alice", issuer="met", more=("--delegate", "--until", "+7d"))
    world.issue(camera, "route", "transfer", to="carol", issuer="alice")
    file = world.written(whole, "delegated.xml")
    taken = world.command.refused("credential", "transfer", str(file), "--as", "carol", "--to", "bob")
    assert taken == (3, "CREDENTIAL_NOT_OWN")
    assert world.command.do("credential", "check", str(file))["id"] == whole


@pytest.mark.requirement("19.01")
def test_who_holds_the_right_otherwise_does_not_hold_it_by_this_credential(world: OverlayWorld) -> None:
    """A credential counts by itself: another one of the same right does not carry it, nor a false condition."""
    camera = "channel:met/CameraA@1"
    world.issue(camera, "route", to="carol", issuer="met", more=("--until", "+6d"))
    other = world.written(world.issue(camera, "route", to="alice", issuer="met", more=("--until", "+6d")), "other.xml")
    assert world.command.refused("credential", "check", str(other), "--of", "carol") == (3, "CREDENTIAL_REFUSED")
    never = ("--condition", 'now.clock("UTC") > "99:99"')
    closed = world.written(world.issue(camera, "route", to="carol", issuer="met", more=never), "closed.xml")
    assert world.command.refused("credential", "check", str(closed)) == (3, "CREDENTIAL_REFUSED")


@pytest.mark.requirement("19.01")
def test_what_a_credential_cannot_say_is_none(world: OverlayWorld) -> None:
    """A demand on rows, two kinds of rights or a threshold of owners would be lost in the view: refused."""
    give = ("--from", "met", "--type", "met/CameraA@1", "--action")
    made = [
        world.command.grant(*give, "subscribe", "--to", "alice", "--attribute", "number=7"),
        world.command.grant(*give, "subscribe,publish", "--to", "alice"),
        world.command.grant(*give, "route", "--to", "1 of (alice, bob)"),
        world.command.grant(*give, "route", "--to", "met: a: b"),
    ]
    for identity in made:
        assert world.command.refused("credential", "show", identity) == (1, "NOT_A_CREDENTIAL")
