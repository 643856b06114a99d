"""Sessions of clients with their broker: advertise, subscribe, and their ends; verified once, remembered, audited."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import maia
from maia.authority import Action, Constraint, Stage, type_right
from maia.errors import DeniedError, MaiaError, NotFoundError, VerificationError
from maia.events import sign_event_type
from maia.principals import KeySigner, TestKind
from maia.testing import (
    ATTRIBUTES,
    TYPE_NAME,
    Command,
    NumberplateHomes,
    counted_checks,
    grant,
    numberplate_homes,
    online,
    publish_here,
)

ROWS = '{"numberplate": "AE05 XYZ", "timestamp": "2026-06-01T09:00:00Z", "location": "Victoria"}\n'
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the two homes of the network once."""
    return numberplate_homes(tmp_path_factory.mktemp("template"), network=True)


@pytest.fixture
def world(template: NumberplateHomes, tmp_path: Path) -> NumberplateHomes:
    """Give a copy of both homes."""
    shutil.copytree(template.ccs.parent, tmp_path / "net")
    return replace(template, ccs=tmp_path / "net" / "ccs", met=tmp_path / "net" / "met")


def setting(home: Path, line: str) -> None:
    """Put a line on top of a home's settings."""
    file = home / "maia.toml"
    file.write_text(f"{line}\n{file.read_text('utf-8')}", "utf-8")


def plans(home: Path, who: str, action: str, **more: Any) -> str:
    """Begin to publish or to read as a client; tell `yes` or the code of the refusal."""
    with maia.open(home) as domain:
        try:
            if action == "publish":
                domain.publish_plan(TYPE_NAME, client=domain.prove(who), publication="p", **more)
            else:
                domain.deliver_plan(TYPE_NAME, client=domain.prove(who), commits=(), **more)
        except MaiaError as error:
            return error.code
    return "yes"


def audited(home: Path, kind: str) -> list[dict[str, Any]]:
    """Give the audit's rows of a kind."""
    return list(Command(home).do("audit", "--kind", kind)["rows"])


def files(folder: Path) -> set[Path]:
    """List all that is in a folder."""
    return set(folder.rglob("*")) if folder.exists() else set()


@pytest.mark.requirement("7.03")
def test_nothing_is_published_that_was_not_advertised(world: NumberplateHomes, tmp_path: Path) -> None:
    """Where a domain wants it said first: no advertisement, no publication; each names its principal and its chain."""
    setting(world.ccs, 'advertise = "explicit"')
    command, log = Command(world.ccs), world.ccs.parent / "log"
    (tmp_path / "rows.json").write_text(ROWS, "utf-8")
    publish = ("publish", str(tmp_path / "rows.json"), "--type", TYPE_NAME, "--as", "CCTV")
    before = files(log)
    assert command.refused(*publish) == (3, "NOT_ADVERTISED")
    assert files(log) == before
    people, network = world.network.people, world.network
    other = world.add_key(world.ccs, "Other", KeySigner.generate())
    world.add(
        world.ccs, grant(people["CCS"], other, network.certificates["Cap2b"].body.tag),
        grant(people["CCS"], other, network.certificates["Cap8"].body.tag),
    )  # fmt: skip
    command.do("advertise", "add", "--type", TYPE_NAME, "--as", "Other")
    assert plans(world.ccs, "CCTV", "publish") == "NOT_ADVERTISED", "another's advertisement is not the camera's"
    command.do("advertise", "add", "--type", TYPE_NAME, "--as", "CCTV")
    assert plans(world.ccs, "CCTV", "publish") == "yes"
    told = {row["subject"]: row for row in audited(world.ccs, "advertise")}
    assert set(told) == {"CCTV", "Other"}
    chain = {network.certificates[name].certificate_id.hex() for name in ("Cap6", "Cap8")}
    assert told["CCTV"]["principal"] == network.key("CCTV").fingerprint
    assert set(told["CCTV"]["certificates"]) == chain
    assert told["Other"]["principal"] == other.public_key.fingerprint
    [refused] = [row for row in audited(world.ccs, "refuse") if row["subject"] == "CCTV"][:1]
    assert refused["reason"] == "NOT_ADVERTISED"


@pytest.mark.requirement("7.03")
def test_the_first_publication_advertises_and_what_is_withdrawn_stays_withdrawn(world: NumberplateHomes) -> None:
    """By default the first publication is the advertisement, told once; taken back, nothing but a new one mends it."""
    camera = maia.open(world.ccs).client("CCTV")
    with pytest.raises(DeniedError) as nothing:
        camera.unadvertise(TYPE_NAME)
    assert nothing.value.code == "NOT_ADVERTISED"
    assert [plans(world.ccs, "CCTV", "publish") for _ in range(3)] == ["yes"] * 3
    [told] = audited(world.ccs, "advertise")
    assert (told["subject"], told["source"]) == ("CCTV", "publication p")
    assert told["certificates"]
    camera.unadvertise(TYPE_NAME)
    assert plans(world.ccs, "CCTV", "publish") == "NOT_ADVERTISED"
    assert plans(world.ccs, "CCTV", "publish", advertise="location = 'Victoria'") == "NOT_ADVERTISED"
    [ended] = audited(world.ccs, "unadvertise")
    assert ended["principal"] == world.network.key("CCTV").fingerprint
    shown = Command(world.ccs).do("advertise", "list")["advertisements"]
    assert [(item["as"], item["withdrawn"]) for item in shown] == [("CCTV", True)]
    camera.advertise(TYPE_NAME)
    assert plans(world.ccs, "CCTV", "publish") == "yes"


@pytest.mark.requirement("13.16")
def test_an_advertisement_outlives_no_right(world: NumberplateHomes) -> None:
    """What the broker remembers gives nothing: a right that is revoked ends publishing, whatever was advertised."""
    people = world.network.people
    guest = world.add_key(world.ccs, "Guest", KeySigner.generate())
    tests = [online(TestKind.CRL, people["CCS"])]
    given = grant(people["CCS"], guest, world.network.certificates["Cap8"].body.tag, tests=tests)
    world.add(world.ccs, grant(people["CCS"], guest, world.network.certificates["Cap2b"].body.tag), given)
    command = Command(world.ccs)
    command.do("statement", "crl", "--from", "CCS")
    maia.open(world.ccs).client("Guest").advertise(TYPE_NAME)
    assert plans(world.ccs, "Guest", "publish") == "yes"
    command.do("revoke", given.certificate_id.hex()[:16], "--yes")
    assert plans(world.ccs, "Guest", "publish") == "REVOKED"


def test_a_publisher_is_held_to_what_it_advertised(world: NumberplateHomes) -> None:
    """A filter that was advertised binds what is published without another word."""
    people, network = world.network.people, world.network
    desk = world.add_key(world.ccs, "Desk", KeySigner.generate())
    everything = type_right(network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
    world.add(world.ccs, grant(people["CCS"], desk, network.certificates["Cap2b"].body.tag))
    world.add(world.ccs, grant(people["CCS"], desk, everything))
    said = "numberplate any and timestamp any and location = 'Victoria'"
    maia.open(world.ccs).client("Desk").advertise(TYPE_NAME, where=said)
    home = maia.open(world.ccs).home
    now, row = datetime.now(UTC), {"numberplate": "AE05 XYZ", "timestamp": NOW, "location": "Victoria"}
    admitted = [
        publish_here(home, TYPE_NAME, [{**row, "location": place}], as_="Desk", at=now + timedelta(milliseconds=n))
        for n, place in enumerate(("Victoria", "Kent"))
    ]
    assert admitted == [1, 0]


@pytest.mark.requirement("6.09")
def test_an_advertise_that_is_refused_leaves_no_state_anywhere(world: NumberplateHomes) -> None:
    """The billing office may not publish: the brokers of both domains and the log are as they were, but the audit."""
    before = {home: files(home) for home in (world.ccs, world.met, world.ccs.parent / "log")}
    with pytest.raises(VerificationError) as refused:
        maia.open(world.ccs).client("BO").advertise(TYPE_NAME)
    assert refused.value.code == "NOT_PERMITTED"
    new = {path.relative_to(world.ccs).parts[0] for path in files(world.ccs) - before[world.ccs]}
    assert {name for name in new if "audit" not in name} <= {"clock", ".clock.lock"}, new
    assert not (world.ccs / "advertisements.toml").exists()
    assert files(world.met) == before[world.met]
    assert files(world.ccs.parent / "log") == before[world.ccs.parent / "log"]
    assert Command(world.ccs).do("advertise", "list")["advertisements"] == []


@pytest.mark.requirement("6.09")
def test_the_right_to_publish_is_proven_once(world: NumberplateHomes) -> None:
    """One search for the camera's chain when it advertises, none for all that it publishes under it."""
    domain, camera = maia.open(world.ccs), world.network.key("CCTV")
    client = domain.client("CCTV")
    with counted_checks() as first:
        client.advertise(TYPE_NAME)
    assert first.chains(camera, Action.PUBLISH) == 1
    assert first.signatures > 0
    with counted_checks() as later:
        for number in range(100):
            domain.publish_plan(TYPE_NAME, client=client.proven, publication=f"p{number}")
    assert (later.chains(camera, Action.PUBLISH), later.chains(camera, Action.CONNECT)) == (0, 0)
    assert later.signatures == 0


@pytest.mark.requirement("7.02")
@pytest.mark.requirement("6.10")
def test_a_name_is_enough_once_a_client_brought_the_definition(world: NumberplateHomes) -> None:
    """A fresh broker knows no name. With the definition it does; brought again it is welcome, and altered it is not."""
    [path] = (world.ccs / "types").glob("*/*.type")
    genuine = path.read_bytes()
    shutil.rmtree(world.ccs / "types")
    camera = maia.open(world.ccs).client("CCTV")
    with pytest.raises(NotFoundError) as unknown:
        camera.advertise(TYPE_NAME)
    assert unknown.value.code == "TYPE_NOT_FOUND"
    altered = genuine.replace(b"8:location", b"8:locatiom")
    forged = sign_event_type(world.event_type, world.network.people["BO"]).raw
    for wrong in (altered, forged, genuine[:-1]):
        with pytest.raises(MaiaError):
            camera.advertise(wrong)
    with pytest.raises(NotFoundError):
        camera.advertise(TYPE_NAME)
    assert audited(world.ccs, "advertise") == []
    camera.advertise(genuine)
    camera.advertise(genuine)
    camera.advertise(TYPE_NAME)
    assert plans(world.ccs, "BO", "subscribe") == "yes"


def test_a_definition_that_may_not_be_installed_is_not_kept(world: NumberplateHomes) -> None:
    """BO signs a type of its own without the chain that lets it install one: no client brings it in."""
    own = replace(world.event_type, name=replace(world.event_type.name, owner=world.network.key("BO")))
    office = maia.open(world.ccs).client("BO")
    before = files(world.ccs / "types")
    with pytest.raises(VerificationError):
        office.advertise(sign_event_type(own, world.network.people["BO"]).raw)
    assert files(world.ccs / "types") == before


@pytest.mark.requirement("6.11")
def test_a_second_subscription_costs_no_signature(world: NumberplateHomes) -> None:
    """What was verified is remembered in the process, and verified again in the next one: a file proves nothing."""
    ccs = maia.open(world.ccs)
    office = ccs.prove("BO")
    with counted_checks() as first:
        ccs.deliver_plan(TYPE_NAME, client=office, commits=())
    with counted_checks() as second:
        ccs.deliver_plan(TYPE_NAME, client=office, commits=())
        ccs.deliver_plan(TYPE_NAME, client=office, where="numberplate = 'AE05 XYZ'", commits=())
    assert first.signatures > 0
    assert second.signatures == 0
    again = maia.open(world.ccs)
    proven = again.prove("BO")
    with counted_checks() as started:
        again.deliver_plan(TYPE_NAME, client=proven, commits=())
    assert started.signatures == first.signatures
    given = world.network.certificates["Cap7"].raw
    [path] = [item for item in (world.ccs / "certificates").iterdir() if item.read_bytes() == given]
    path.write_bytes(given[:-10] + bytes([given[-10] ^ 1]) + given[-9:])
    assert plans(world.ccs, "BO", "subscribe") != "yes"
    path.write_bytes(given)
    assert plans(world.ccs, "BO", "subscribe") == "yes"


@pytest.mark.requirement("6.11")
def test_what_is_remembered_ends_with_its_certificate(world: NumberplateHomes) -> None:
    """Verified at 10, ends at 20: at 21 it is refused, by the process that remembers it and by a new one."""
    people = world.network.people
    guest = world.add_key(world.ccs, "Guest", KeySigner.generate())
    tag = world.network.certificates["Cap7"].body.tag
    start = NOW + timedelta(hours=1)
    ends = (None, start + timedelta(seconds=20))
    world.add(world.ccs, grant(people["CCS"], guest, world.network.certificates["Cap2b"].body.tag))
    world.add(world.ccs, grant(people["CCS"], guest, tag, valid=ends))
    ccs = maia.open(world.ccs)
    proven = ccs.prove("Guest")
    for second in (10, 19):
        assert ccs.deliver_plan(
            TYPE_NAME, client=proven, commits=(), at=start + timedelta(seconds=second)
        ).subscriptions
    with pytest.raises(MaiaError) as over:
        ccs.deliver_plan(TYPE_NAME, client=proven, commits=(), at=start + timedelta(seconds=21))
    assert over.value.code == "EXPIRED"
    assert plans(world.ccs, "Guest", "subscribe", at=start + timedelta(seconds=21)) == "EXPIRED"


@pytest.mark.requirement("6.01")
@pytest.mark.requirement("1.13")
def test_a_request_needs_a_key_evidence_and_an_operation(world: NumberplateHomes) -> None:
    """All three: yes. Each missing: no, with its stage. Smith's chain shown by Jones, who has a key too: no."""
    met = maia.open(world.met)
    smith = met.client("Smith")
    world.add_key(world.met, "Jones", KeySigner.generate())
    jones = maia.open(world.met).client("Jones")
    evidence = [item.raw for item in world.network.certificates.values()]
    assert met.decide(smith, evidence, "subscribe", TYPE_NAME)
    missing = {
        "NOT_AUTHENTICATED": (met.decide(None, evidence, "subscribe", TYPE_NAME), Stage.AUTHENTICATION),
        "NO_EVIDENCE": (met.decide(smith, None, "subscribe", TYPE_NAME), Stage.EVIDENCE),
        "NO_REQUEST": (met.decide(smith, evidence, None, None), Stage.REQUEST),
    }
    for code, (decision, stage) in missing.items():
        assert (decision.allowed, decision.reason, decision.stage) == (False, code, stage)
    assert not met.decide(jones, evidence, "subscribe", TYPE_NAME)
    assert not met.decide(smith, evidence, "publish", TYPE_NAME)
    alone = [item.raw for name, item in world.network.certificates.items() if name != "Cap3"]
    assert not met.decide(smith, alone, "subscribe", TYPE_NAME), "without the right to connect"


@pytest.mark.requirement("6.01")
def test_a_broker_that_is_not_in_the_network_decides_nothing(world: NumberplateHomes) -> None:
    """The name by which the broker of the police connects is gone: it is no verifier of this network any more."""
    evidence = [item.raw for item in world.network.certificates.values()]
    name = world.network.certificates["N1"].raw
    [path] = [item for item in (world.met / "certificates").iterdir() if item.read_bytes() == name]
    path.unlink()
    met = maia.open(world.met)
    with pytest.raises(VerificationError) as outside:
        met.decide(met.client("Smith"), evidence, "subscribe", TYPE_NAME)
    assert outside.value.code == "BROKER_NOT_CONNECTED"


def test_a_subscription_that_was_ended_leaves_its_name_to_its_client(world: NumberplateHomes) -> None:
    """Nobody else ends it, nor takes its name, under which the outbox holds what was delivered; its client may."""
    command = Command(world.ccs)
    add = ("deliver", "add", "billing", "--type", TYPE_NAME)
    command.do(*add, "--as", "BO", "--where", "numberplate != ''")
    assert command.refused("deliver", "remove", "billing", "--as", "SO") == (3, "NOT_YOUR_SUBSCRIPTION")
    command.do("deliver", "remove", "billing", "--as", "BO")
    assert command.do("deliver", "list")["subscriptions"] == []
    assert command.refused("deliver", "remove", "billing", "--as", "BO") == (5, "NO_SUBSCRIPTION")
    assert command.refused(*add, "--as", "SO") == (2, "SUBSCRIPTION_EXISTS")
    assert command.refused(*add, "--as", "BO") == (2, "SUBSCRIPTION_EXISTS"), "by another filter"
    command.do(*add, "--as", "BO", "--where", "numberplate != ''")
    assert [item["as"] for item in command.do("deliver", "list")["subscriptions"]] == ["BO"]
    told = [(row["kind"], row["subject"]) for kind in ("subscribe", "unsubscribe") for row in audited(world.ccs, kind)]
    assert told == [("subscribe", "BO"), ("subscribe", "BO"), ("unsubscribe", "BO")]
    chain = {world.network.certificates[name].certificate_id.hex() for name in ("Cap6", "Cap7")}
    assert set(audited(world.ccs, "subscribe")[0]["certificates"]) == chain


@pytest.mark.requirement("5.11")
def test_a_filter_that_contradicts_the_right_is_noticed(world: NumberplateHomes) -> None:
    """Smith sees one car. Who asks for another gets a notice, and who asks for that one, or for more of it, none."""
    command = Command(world.met)
    cases = {
        "numberplate = 'BX51 ABC'": True,
        "numberplate prefix 'BX'": True,
        "numberplate in ('BX51 ABC', 'AA11 AAA') and location = 'Victoria'": True,
        "numberplate = 'AE05 XYZ'": False,
        "numberplate prefix 'AE' and location = 'Kent'": False,
        "": False,
    }
    for number, text in enumerate(cases):
        command.do("deliver", "add", f"s{number}", "--as", "Smith", "--type", TYPE_NAME, "--where", text)
    noticed = {row["source"] for row in audited(world.met, "notice") if row["reason"] == "FILTER_CONTRADICTS_RIGHT"}
    assert noticed == {f"s{number}" for number, text in enumerate(cases) if cases[text]}
    assert "BX51" not in str(audited(world.met, "notice"))


@pytest.mark.requirement("5.11")
def test_one_chain_that_can_match_is_enough_for_no_notice(world: NumberplateHomes) -> None:
    """A second right on another car: the filter for it contradicts the one and not the other."""
    people = world.network.people
    more = type_right(
        world.network.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE], attributes=list(ATTRIBUTES.values()),
        constraints=[Constraint(ATTRIBUTES["numberplate"], "=", "BX51 ABC")],
    )  # fmt: skip
    world.add(world.met, grant(people["Met"], people["Smith"], more))
    command = Command(world.met)
    command.do("deliver", "add", "s", "--as", "Smith", "--type", TYPE_NAME, "--where", "numberplate = 'BX51 ABC'")
    assert audited(world.met, "notice") == []


@pytest.mark.requirement("14.06")
def test_a_condition_is_asked_again_after_it_was_advertised(world: NumberplateHomes) -> None:
    """Advertised at ten to five, published at five past: refused, although the advertisement stands."""
    people, network = world.network.people, world.network
    firm = world.add_key(world.ccs, "Firm", KeySigner.generate())
    office = "now.clock('Europe/London') >= '09:00' && now.clock('Europe/London') < '17:00'"
    world.add(world.ccs, grant(people["CCS"], firm, network.certificates["Cap2b"].body.tag))
    world.add(world.ccs, grant(people["CCS"], firm, network.certificates["Cap8"].body.tag, conditions=[office]))
    ccs = maia.open(world.ccs)
    proven = ccs.prove("Firm")
    day = (NOW + timedelta(days=400)).replace(hour=0, minute=0, second=0, tzinfo=ZoneInfo("Europe/London"))
    five = day.replace(hour=17)
    ccs.advertise(TYPE_NAME, client=proven, at=five - timedelta(minutes=10))
    assert ccs.publish_plan(TYPE_NAME, client=proven, publication="p", at=five - timedelta(minutes=5)).clauses
    with pytest.raises(MaiaError) as late:
        ccs.publish_plan(TYPE_NAME, client=proven, publication="p", at=five + timedelta(minutes=5))
    assert late.value.code == "CONDITION_FALSE"
    assert [item.kept.withdrawn for item in ccs.advertisements()] == [False]
    with pytest.raises(MaiaError):
        ccs.advertise(TYPE_NAME, client=proven, at=five + timedelta(minutes=5))
