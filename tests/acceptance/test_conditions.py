"""Conditions and timed lists, decided by a domain at an instant: the plan with which every read and publication starts.

Instants grow within a test: a home remembers how late it is.
"""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import maia
from maia.authority import Action, type_right
from maia.errors import MaiaError, VerificationError
from maia.policy import ConditionSyntaxError, compile_condition
from maia.principals import KeySigner, NonceProof, PublicKey, check_nonce_proof, prove_by_nonce
from maia.testing import TYPE_NAME, Command, NumberplateHomes, at, grant, numberplate_homes, publish_here, read_here

TYPE = "exchange/stock.Quote"
OFFICE = "now.clock('Europe/London') >= '09:00' && now.clock('Europe/London') < '17:00'"
RIGHT = ("--type", TYPE, "--action")


def london(text: str) -> datetime:
    """A time by the clocks of London in summer."""
    return at(f"{text}+01:00")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with the exchange's type, without sealing, and a broker that may publish and read it."""
    made = Command(tmp_path_factory.mktemp("conditions") / "home")
    made.do("domain", "init", str(made.home))
    made.keys("exchange", "bank", "firm", "desk", "eve")
    attributes = ("symbol:string:1", "price:integer:2", "source:string:3")
    flags = [flag for text in attributes for flag in ("--attribute", text)]
    made.do("type", "define", f"{TYPE}@1", *flags, "--encryption", "plain")
    made.grant("--from", "exchange", "--to", "broker", *RIGHT, "publish", "--action", "subscribe")
    return made.home


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Command:
    """Give a copy of the home."""
    shutil.copytree(template, tmp_path / "home")
    return Command(tmp_path / "home")


@pytest.fixture
def offices(tmp_path: Path) -> NumberplateHomes:
    """Give the homes of the numberplate network."""
    return numberplate_homes(tmp_path / "net")


def allowed(home: Command, who: str, action: str, when: datetime) -> bool:
    """Tell whether the domain would serve somebody at an instant."""
    domain = maia.open(home.home)
    try:
        if action == "publish":
            domain.publish_plan("stock.Quote", client=domain.prove(who), publication="asked", at=when)
        else:
            domain.deliver_plan("stock.Quote", client=domain.prove(who), commits=(), at=when)
    except MaiaError:
        return False
    finally:
        domain.close()
    return True


@pytest.mark.requirement("14.01")
@pytest.mark.requirement("23.01")
def test_one_certificate_for_a_month_of_working_days(home: Command) -> None:
    """Nine to five: 16:59 yes, 17:01 no, the next morning yes, by one certificate."""
    before = len(list((home.home / "certificates").iterdir()))
    home.grant("--from", "exchange", "--to", "desk", *RIGHT, "subscribe", "--condition", OFFICE)
    times = ("2027-06-03T16:59", "2027-06-03T17:01", "2027-06-04T09:30")
    assert [allowed(home, "desk", "subscribe", london(when)) for when in times] == [True, False, True]
    assert len(list((home.home / "certificates").iterdir())) == before + 1


@pytest.mark.requirement("14.02")
def test_a_condition_tells_actions_apart(home: Command) -> None:
    """`action == "publish" && hour < 17` gives publishing until five and subscribing never."""
    source = 'action == "publish" && now.hour("Europe/London") < 17'
    home.grant("--from", "exchange", "--to", "firm", *RIGHT, "publish", "--action", "subscribe", "--condition", source)
    home.grant("--from", "exchange", "--to", "desk", *RIGHT, "subscribe")
    before, after = london("2027-06-03T16:00"), london("2027-06-03T17:00")
    found = {(who, action, when.hour): allowed(home, who, action, when) for when in (before, after)
             for who, action in (("firm", "publish"), ("firm", "subscribe"), ("desk", "subscribe"))}  # fmt: skip
    assert found == {
        ("firm", "publish", 16): True, ("firm", "subscribe", 16): False, ("desk", "subscribe", 16): True,
        ("firm", "publish", 17): False, ("firm", "subscribe", 17): False, ("desk", "subscribe", 17): True,
    }  # fmt: skip


@pytest.mark.requirement("14.06")
def test_conditions_along_a_chain_are_conjoined(home: Command) -> None:
    """Weekdays by the owner, nine to five by the bank: Saturday at ten is neither, nor is Friday night."""
    weekdays = "now.weekday('Europe/London') <= 5"
    home.grant("--from", "exchange", "--to", "bank", *RIGHT, "subscribe", "--delegate", "--condition", weekdays)
    home.grant("--from", "bank", "--to", "desk", *RIGHT, "subscribe", "--condition", OFFICE)
    times = {
        "Friday at ten": "2027-06-04T10:00", "Friday night": "2027-06-04T22:00", "Saturday": "2027-06-05T10:00",
        "Monday": "2027-06-07T10:00",
    }  # fmt: skip
    found = {name: allowed(home, "desk", "subscribe", london(when)) for name, when in times.items()}
    assert found == {"Friday at ten": True, "Friday night": False, "Saturday": False, "Monday": True}


@pytest.mark.requirement("14.06")
def test_a_condition_is_asked_again_for_each_publication(home: Command) -> None:
    """At ten to five the firm may announce and publish; at five past it publishes no more, by the same certificate."""
    home.grant("--from", "exchange", "--to", "firm", *RIGHT, "publish", "--condition", OFFICE)
    times = ("2027-06-03T16:50", "2027-06-03T17:05")
    assert [allowed(home, "firm", "publish", london(when)) for when in times] == [True, False]


@pytest.mark.requirement("14.01")
def test_a_condition_on_connecting_is_asked_like_any_other(tmp_path: Path) -> None:
    """Who may connect in office hours, and read at any hour, reads in office hours; so with who publishes."""
    net = numberplate_homes(tmp_path / "net", network=True)
    people, connect = net.network.people, net.network.certificates["Cap2b"].body.tag
    both = type_right(net.network.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE, Action.PUBLISH])
    for who, conditions in (("day", [OFFICE]), ("always", []), ("never", ["event['1'] == 'x'"])):
        client = net.add_key(net.ccs, who, KeySigner.generate())
        net.add(net.ccs, grant(people["CCS"], client, both))
        net.add(net.ccs, grant(people["CCS"], client, connect, conditions=conditions))
    morning = datetime.now().astimezone().replace(hour=11, minute=0) + timedelta(days=1)

    def served(who: str, action: str, when: datetime) -> str:
        with maia.open(net.ccs) as domain:
            try:
                if action == "publish":
                    domain.publish_plan(TYPE_NAME, client=domain.prove(who), publication="asked", at=when)
                else:
                    domain.deliver_plan(TYPE_NAME, client=domain.prove(who), commits=(), at=when)
            except MaiaError as error:
                return error.code
        return "served"

    for when, day in ((morning, "served"), (morning + timedelta(hours=9), "CONDITION_FALSE")):
        for action in ("read", "publish"):
            found = {who: served(who, action, when) for who in ("day", "always", "never")}
            assert found == {"day": day, "always": "served", "never": "CONDITION_FALSE"}, (when, action)


@pytest.mark.requirement("14.04")
def test_leaving_early_denies_without_revocation(home: Command) -> None:
    """The duty roster is a declared provider, asked each time; off duty, or with the roster away, the answer is no."""
    desk = maia.open(home.home).client("desk").key.key_id.hex()
    folder = home.home / "policy"
    folder.mkdir(exist_ok=True)
    (folder / "providers.toml").write_text(
        '[[predicate]]\nname = "on_duty"\narity = 1\nkind = "sql"\ndatabase = "roster.db"\n'
        'ask = "select 1 from duty where officer = ?"\n',
        "utf-8",
    )
    roster = sqlite3.connect(folder / "roster.db")
    roster.execute("create table duty (officer text)")
    roster.execute("insert into duty values (?)", (desk,))
    roster.commit()
    home.grant("--from", "exchange", "--to", "desk", *RIGHT, "subscribe", "--condition", "on_duty(principal)")
    when = london("2027-06-03T12:00")
    assert allowed(home, "desk", "subscribe", when)
    roster.execute("delete from duty")
    roster.commit()
    assert not allowed(home, "desk", "subscribe", when)
    roster.execute("insert into duty values (?)", (desk,))
    roster.commit()
    roster.close()
    assert allowed(home, "desk", "subscribe", when)
    (folder / "roster.db").unlink()
    assert not allowed(home, "desk", "subscribe", when)


UNSAFE = {
    "a loop": "[1].all(x, x > 0)",
    "an import": "import os",
    "attribute access": "principal.key == 'x'",
    "a million nodes": "true" + " && true" * 10**6,
}


@pytest.mark.requirement("14.03")
@pytest.mark.requirement("23.01")
@pytest.mark.parametrize("source", UNSAFE.values(), ids=UNSAFE)
def test_what_is_not_safe_is_refused_when_it_is_read(home: Command, offices: NumberplateHomes, source: str) -> None:
    """It never becomes a condition, the command signs none, and a certificate that carries it anyway opens nothing."""
    with pytest.raises(ConditionSyntaxError):
        compile_condition(source)
    exchange = ("grant", "--from", "exchange", "--to", "desk", *RIGHT, "subscribe", "--condition")
    if len(source) < 100_000:  # longer than a command line
        assert home(*exchange, source).code != 0
    people = offices.network.people
    publish = type_right(offices.network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
    found = []
    for number, condition in enumerate((source[:8_000], "true")):
        who = f"client{number}"
        client = offices.add_key(offices.ccs, who, KeySigner.generate())
        offices.add(offices.ccs, grant(people["CCS"], client, publish, conditions=[condition]))
        try:
            ccs = maia.open(offices.ccs)
            ccs.publish_plan(TYPE_NAME, client=ccs.prove(who), publication="asked")
        except MaiaError:
            found.append(False)
        else:
            found.append(True)
    assert found == [False, True]


@pytest.mark.requirement("14.03")
def test_what_would_take_too_much_to_evaluate_is_denied(tmp_path: Path) -> None:
    """A condition over more than 65,536 octets is not evaluated: the row is refused. A shorter value leaves."""
    offices = numberplate_homes(tmp_path)
    publish = type_right(offices.network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
    client = offices.add_key(offices.ccs, "client", KeySigner.generate())
    given = grant(offices.network.people["CCS"], client, publish, conditions=["event['3467'] != 'Kent'"])
    offices.add(offices.ccs, given)
    now = datetime.now().astimezone()
    admitted = []
    with maia.open(offices.ccs) as ccs:
        for number, location in enumerate(("Victoria", "Kent", "V" * 65_537)):
            rows = [{"numberplate": "AE05 XYZ", "timestamp": now, "location": location}]
            when = now + timedelta(seconds=number)
            admitted.append(publish_here(ccs.home, TYPE_NAME, rows, as_="client", at=when))
    assert admitted == [1, 0, 0]


@pytest.mark.requirement("22.13")
@pytest.mark.requirement("13.04")
def test_a_withheld_list_ends_the_access_when_it_lapses(home: Command) -> None:
    """The last timed list ends and no new one comes: what depends on it ends, the rest goes on."""
    now = datetime.now().astimezone().replace(microsecond=0)
    home.keys("clerk")
    home.grant("--from", "exchange", "--to", "desk", *RIGHT, "subscribe", "--test", "crl:clerk")
    home.grant("--from", "exchange", "--to", "firm", *RIGHT, "subscribe", "--irrevocable")
    assert not allowed(home, "desk", "subscribe", now), "no list, no access"
    home.do("statement", "crl", "--from", "clerk", "--until", "+1h")
    (home.home / "keys" / "clerk.key").unlink()  # whoever holds it renews the list when the home is opened
    soon, late = now + timedelta(minutes=30), now + timedelta(hours=2)
    found = [tuple(allowed(home, who, "subscribe", when) for who in ("desk", "firm")) for when in (soon, late)]
    assert found == [(True, True), (False, True)]


@pytest.mark.requirement("22.04")
def test_nobody_publishes_as_the_exchange(home: Command, tmp_path: Path) -> None:
    """Eve has no right and is refused, also with a certificate of her own making; a firm with a right is not."""
    home.grant("--from", "exchange", "--to", "firm", *RIGHT, "publish", "--attribute", "1", "--attribute", "3=firm")
    home.grant("--from", "eve", "--to", "eve", *RIGHT, "publish", "--blanket")
    (tmp_path / "rows.json").write_text('{"symbol": "A", "price": 1, "source": "exchange"}\n', "utf-8")
    assert home.refused("publish", str(tmp_path / "rows.json"), "--type", "stock.Quote", "--as", "eve")[0] == 3
    when = london("2027-06-03T12:00")
    assert (allowed(home, "firm", "publish", when), allowed(home, "eve", "publish", when)) == (True, False)


@pytest.mark.requirement("22.04")
def test_what_a_firm_says_comes_from_the_firm(home: Command) -> None:
    """The firm writes the exchange as the source and a price: readers see the firm, and no price it may not set."""
    home.grant("--from", "exchange", "--to", "firm", *RIGHT, "publish", "--attribute", "1", "--attribute", "3=firm")
    home.grant("--from", "exchange", "--to", "desk", *RIGHT, "subscribe")
    quote = {"symbol": "A", "price": 1, "source": "exchange"}
    with maia.open(home.home) as domain:
        now = datetime.now().astimezone()
        for number, who in enumerate(("firm", "exchange")):
            when = now + timedelta(milliseconds=number)
            assert publish_here(domain.home, "stock.Quote", [quote], as_=who, at=when) == 1
        seen = read_here(domain.home, "stock.Quote", as_="desk")
    assert seen == [{"symbol": "A", "price": None, "source": "firm"}, quote]


@pytest.mark.requirement("22.04")
def test_a_firm_does_not_prove_the_key_of_the_exchange(home: Command, tmp_path: Path) -> None:
    """With its own private key under the exchange's name it is nobody; to a challenge it answers as itself or not."""
    home.grant("--from", "exchange", "--to", "exchange", *RIGHT, "publish")
    keys = home.home / "keys"
    with maia.open(home.home) as domain:
        exchange, firm, broker = (domain.home.signer(who) for who in ("exchange", "firm", "broker"))
    audience, challenge = broker.public_key.key_id, bytes(range(16))

    def proof(by: KeySigner, *, answers: bytes = challenge) -> NonceProof:
        return prove_by_nonce(by, audience=audience, challenge=answers, own_nonce=bytes(16))

    def checked(shown: NonceProof) -> PublicKey:
        return check_nonce_proof(shown, audience=audience, challenge=challenge).key

    assert checked(proof(exchange)) == exchange.public_key
    assert checked(proof(firm)) == firm.public_key, "as itself"
    for wrong in (replace(proof(firm), key=exchange.public_key), proof(exchange, answers=bytes(16))):
        with pytest.raises(VerificationError):
            checked(wrong)
    shutil.copy(keys / "firm.key", keys / "exchange.key")
    (tmp_path / "rows.json").write_text('{"symbol": "A", "price": 1, "source": "exchange"}\n', "utf-8")
    args = ("publish", str(tmp_path / "rows.json"), "--type", "stock.Quote", "--as", "exchange")
    assert home.refused(*args) == (4, "KEY_PAIR")


@pytest.mark.requirement("12.08")
def test_an_emergency_opens_what_waits_for_it_and_only_those_who_may_declare_it(home: Command) -> None:
    """The chief declares a flood until noon: open until then; a deputy's word, or a touched file, opens nothing."""
    home.keys("chief", "deputy")
    policy = home.home / "policy"
    policy.mkdir(exist_ok=True)
    (policy / "providers.toml").write_text('[[predicate]]\nname = "emergency"\nkind = "emergency"\nby = ["chief"]\n')
    home.grant("--from", "exchange", "--to", "desk", *RIGHT, "subscribe", "--condition", "emergency()")
    flood, morning, noon = "2027-06-03T09:00:00Z", at("2027-06-03T10:00"), at("2027-06-03T12:00")
    assert not allowed(home, "desk", "subscribe", at("2027-06-03T08:00"))
    word = ("policy", "emergency", "--as", "deputy", "--reason", "rain", "--at", flood)
    assert home.refused(*word) == (3, "EMERGENCY_DENIED")
    assert not allowed(home, "desk", "subscribe", at("2027-06-03T08:30"))
    home.do(
        "policy", "emergency", "--as", "chief", "--reason", "flood", "--until", "2027-06-03T12:00:00Z", "--at", flood
    )
    assert [allowed(home, "desk", "subscribe", when) for when in (morning, noon)] == [True, False]
    told = home.do("policy", "emergency", "--at", flood)
    assert [(item["declared"], item["reason"]) for item in told["changes"]] == [(True, "flood")]
    home.do("policy", "emergency", "--as", "chief", "--reason", "again", "--at", "2027-06-03T13:00:00Z")
    assert allowed(home, "desk", "subscribe", at("2027-06-03T13:30"))
    home.do("policy", "emergency", "--end", "--as", "chief", "--reason", "dry", "--at", "2027-06-03T14:00:00Z")
    assert not allowed(home, "desk", "subscribe", at("2027-06-03T14:30"))
    rules = (policy / "providers.toml").read_text()
    (policy / "providers.toml").write_text(rules.replace('["chief"]', '["chief", "deputy"]'))
    home.do("policy", "emergency", "--as", "deputy", "--reason", "rain", "--at", "2027-06-03T14:40:00Z")
    assert allowed(home, "desk", "subscribe", at("2027-06-03T14:45"))
    (policy / "providers.toml").write_text(rules)
    assert not allowed(home, "desk", "subscribe", at("2027-06-03T14:50")), "what a deputy said counts no longer"
    file = policy / "emergency.jsonl"
    file.write_bytes(file.read_bytes().replace(b"dry", b"wet"))
    assert not allowed(home, "desk", "subscribe", at("2027-06-03T15:00"))
    assert home.refused("policy", "emergency")[1] == "EMERGENCY_DAMAGED"
