"""Networks and their owners, domains that join, leave and keep things to themselves, and a domain's register."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from domains_world import ROW, TYPE, another, publish, refusal, seen

import maia
from maia.encryption import KeyGroupId, open_parcel, verify_parcel
from maia.errors import DeniedError, MaiaError
from maia.events import EncryptionMode
from maia.testing import Command, publish_here, read_here, sealed_here, served

FOUNDERS = "2 of (met, ccs, pito)"
NETWORK = f"{FOUNDERS}/UK Police Network"
CONNECT = ("--network", NETWORK, "--action", "connect", "--irrevocable")


def may_connect(kent: Command) -> tuple[bool, str]:
    """Tell whether Kent's broker may connect to the network of its home, or why not."""
    connect = kent.do("status")["connect"]
    return bool(connect["held"]), str(connect["code"])


@pytest.mark.requirement("4.10")
@pytest.mark.requirement("1.12")
def test_two_of_three_founders_admit_a_domain_and_a_quorum_exchanges_one(tmp_path: Path) -> None:
    """One signature admits nobody, two do; CCS is exchanged for Kent by two, and its signature counts no longer."""
    devon = Command(tmp_path / "devon")
    devon.do("domain", "init", str(devon.home), "--network", NETWORK, "--key")
    devon.keys("met", "ccs", "pito", "kent")
    devon.grant("--from", "domain", "--to", "broker", *CONNECT, "--blanket")
    give = ("--to", "domain", *CONNECT, "--delegate")
    devon.grant("--from", "ccs", *give)
    assert may_connect(devon) == (False, "THRESHOLD_NOT_MET")
    devon.grant("--from", "ccs", *give, "--until", "+9d")
    assert may_connect(devon) == (False, "THRESHOLD_NOT_MET"), "the same one twice"
    assert devon.refused("grant", "--from", "kent", *give)[1] == "ISSUER_LACKS_RIGHT"
    devon.grant("--from", "met", *give)
    assert may_connect(devon)[0]

    def exchange(member: str) -> dict[str, object]:
        return devon.do("domain", "exchange", "ccs", "kent", "--from", member)

    assert devon.refused("domain", "exchange", "ccs", "kent", "--from", "kent")[1] == "OWNER_MEMBERS"
    assert not exchange("met")["counts"]
    assert may_connect(devon)[0], "one member exchanges nobody"
    assert exchange("pito")["counts"]
    assert may_connect(devon) == (False, "THRESHOLD_NOT_MET"), "CCS and Met count as one"
    assert devon.refused("grant", "--from", "ccs", *give)[1] == "ISSUER_LACKS_RIGHT"
    devon.grant("--from", "kent", *give)
    assert may_connect(devon)[0]
    assert devon.refused("domain", "exchange", "pito", "ccs", "--from", "ccs")[1] == "OWNER_MEMBERS"


@pytest.mark.requirement("4.10")
def test_an_exchange_counts_where_it_was_brought_and_only_whole(tmp_path: Path) -> None:
    """Another home takes each member's file; with one of them it goes by the founders still."""
    here, there = Command(tmp_path / "here"), Command(tmp_path / "there")
    here.do("domain", "init", str(here.home), "--network", NETWORK, "--key")
    here.keys("met", "ccs", "pito", "kent")
    shutil.copytree(here.home, there.home)
    there.grant("--from", "domain", "--to", "broker", *CONNECT, "--blanket")
    for member in ("ccs", "met"):
        there.grant("--from", member, "--to", "domain", *CONNECT, "--delegate")
    assert may_connect(there)[0]
    held = []
    for member in ("met", "pito"):
        file = tmp_path / f"{member}.exchange"
        here.do("domain", "exchange", "ccs", "kent", "--from", member, "--out", str(file))
        there.do("cert", "add", str(file))
        held.append(may_connect(there)[0])
    assert held == [True, False]


@pytest.mark.requirement("4.10")
def test_a_threshold_that_is_none_owns_no_network(tmp_path: Path) -> None:
    """Three of two, and one key twice, are refused where they would be configured."""
    for owner in ("3 of (met, ccs)", "2 of (met, met)", "0 of (met)"):
        home = Command(tmp_path / "home")
        assert home.refused("domain", "init", str(home.home), "--network", f"{owner}/N")[1] == "NETWORK_TEXT"


def plan(domain: maia.Domain, who: str) -> str:
    """Ask an open domain for a plan for a client's reading; give the code of a refusal."""
    try:
        domain.deliver_plan("Sighting", client=domain.prove(who), commits=(), at=datetime.now(UTC))
    except MaiaError as error:
        return error.code
    return ""


@pytest.mark.requirement("4.11")
def test_a_domain_joins_while_others_run_and_leaves_by_revocation(tmp_path: Path) -> None:
    """Kent gets its connect at run time and its broker works; the Met's goes on all the while. Revoked, Kent is out."""
    met = Command(tmp_path / "met")
    met.do("domain", "init", str(met.home), "--network", "pito/UK Police Network", "--log", str(tmp_path / "log"))
    met.keys("pito", "met", "kent", "smith", "clerk")
    attributes = ("--attribute", "plate:string:1", "--attribute", "place:string:2", "--encryption", "plain")
    met.do("type", "define", f"{TYPE}@1", *attributes, "--network", "pito/UK Police Network")
    on_network = ("--network", "pito/UK Police Network", "--action", "connect")
    on_type = ("--type", TYPE, "--action", "publish,subscribe")
    met.grant("--from", "pito", "--to", "met", *on_network, "--delegate")
    for domain in ("met", "kent"):
        met.grant("--from", "pito", "--to", domain, *on_type, "--delegate")
    for who in ("broker", "smith"):
        met.grant("--from", "met", "--to", who, *on_network)
        met.grant("--from", "met", "--to", who, *on_type)
    kent = another(met, "kent")
    for who in ("broker", "clerk"):
        kent.grant("--from", "kent", "--to", who, *on_network, "--blanket")
        kent.grant("--from", "kent", "--to", who, *on_type)
    with maia.open(met.home) as running, maia.open(kent.home) as waiting:
        assert plan(running, "smith") == ""
        assert plan(waiting, "clerk") != ""
        joined = kent.grant("--from", "pito", "--to", "kent", *on_network, "--delegate")
        assert plan(waiting, "clerk") == "", "the same process goes on, without a restart"
        publish(kent, "clerk")
        assert seen(kent, "clerk") == [(ROW["plate"], ROW["place"])]
        assert plan(running, "smith") == ""
        kent.do("revoke", joined[:12], "--yes")
        assert plan(waiting, "clerk") == "REVOKED"
        assert refusal(kent, "clerk", publishing=True) == "REVOKED"
        assert plan(running, "smith") == ""


@pytest.mark.requirement("4.11")
def test_a_domain_hands_its_types_over_before_it_leaves(maia_command: Command) -> None:
    """Kent owns a type and goes: the Met makes its next version and gives rights on it, which nobody else can."""
    home = maia_command
    home.keys("kent", "met", "ccs", "smith")
    home.do("type", "define", "kent/Report@1", "--attribute", "text:string:1")
    every = "publish,subscribe,manage"
    home.grant(
        "--from", "kent", "--to", "met", "--type", "kent/Report", "--action", every, "--delegate", "--irrevocable"
    )
    (home.home / "keys" / "kent.key").unlink()
    evolve = ("type", "evolve", "kent/Report@1", "--add", "place:string:2", "--number", "2")
    assert home.refused(*evolve, "--as", "ccs")[0] in (3, 4)
    home.do(*evolve, "--as", "met")
    home.do("type", "verify", "kent/Report@2")
    asked = ("--type", "kent/Report@2", "--action", "subscribe")
    home.grant("--from", "met", "--to", "smith", "--type", "kent/Report", "--action", "subscribe")
    assert home("explain", "--as", "smith", *asked).code == 0
    assert home.refused("grant", "--from", "ccs", "--to", "smith", *asked)[1] == "ISSUER_LACKS_RIGHT"


NET = ("--network", "pito/UK Police Network")
MODES = {"pito/Notice": "plain", "pito/Sighting": "plain", "met/Internal": "attribute"}
WORDS = {"Notice": "all-cars-stop", "Sighting": "AE05 XYZ", "Internal": "operation-swordfish"}


class Overlay:
    """Two brokers of the Met that reach each other through the CCS alone, and three types on one network.

    Notice is public, Sighting is shared with the CCS, Internal is the Met's own. What the Met's first broker writes
    lies in a log of the Met; the CCS carries it, file by file, to where its own broker and the Met's second one read.
    """

    def __init__(self, root: Path) -> None:
        """Make the homes, each with a broker and the private keys of its clients; the desk has signed everything."""
        self.here, self.there = root / "met-log", root / "ccs-log"
        desk = self.desk = Command(root / "desk")
        desk.do("domain", "init", str(desk.home), "--name", "met", *NET, "--log", str(self.here))
        settings = desk.home / "maia.toml"
        settings.write_text(settings.read_text("utf-8").replace('domain = "domain"', 'domain = "met"'), "utf-8")
        desk.keys("pito", "met", "ccs", "smith", "jones")
        self.grant("pito", "met", *NET, "--action", "install")
        for domain in ("met", "ccs"):
            self.grant("pito", domain, *NET, "--action", "connect", "--delegate")
        words = ("--attribute", "word:string:1", "--attribute", "more:string:2", *NET)
        for name, mode in MODES.items():
            desk.do("type", "define", f"{name}@1", *words, "--encryption", mode)
        both = ("--action", "publish,subscribe", "--delegate")
        for name in ("pito/Notice", "pito/Sighting"):
            self.grant("pito", "met", "--type", name, *both)
        self.grant("pito", "ccs", "--type", "pito/Notice", *both)
        self.grant(
            "pito", "ccs", "--type", "pito/Sighting", "--action", "subscribe", "--attribute", "word", "--delegate"
        )
        homes = {"first": "met", "second": "met", "relay": "ccs"}
        made = {name: another(desk, name) for name in homes}
        for name, home in made.items():
            desk.do("key", "import", name, str(home.home / "keys" / "broker.pub"))
            desk.do("name", "add", "brokers", "--from", homes[name], "--to", name)
        for domain, members in {"met": ("smith", "met: brokers"), "ccs": ("jones", "ccs: brokers")}.items():
            for who in members:
                self.grant(domain, who, *NET, "--action", "connect")
                self.grant(domain, who, "--type", "*", "--blanket")
        clients = {"first": "smith", "second": "smith", "relay": "jones"}
        for name, home in made.items():
            shutil.copytree(desk.home / "certificates", home.home / "certificates", dirs_exist_ok=True)
            for file in (home.home / "keys").glob("*.key"):
                if file.stem not in ("broker", clients[name]):
                    file.unlink()
            shutil.copy(desk.home / "keys" / "met.pub", home.home / "keys" / "key-manager.pub")
        self.first, self.second, self.relay = made.values()

    def grant(self, issuer: str, to: str, *right: str) -> None:
        """Let somebody give something, for good."""
        self.desk.grant("--from", issuer, "--to", to, *right, "--irrevocable")

    def settle(self, port: int) -> None:
        """Tell the homes where the Met's key manager is, and all but the first to read what the CCS carried."""
        for home in (self.first, self.second, self.relay):
            settings = home.home / "maia.toml"
            text = settings.read_text("utf-8") + f'\n[services]\nkey_manager = "http://127.0.0.1:{port}"\n'
            place = self.here if home is self.first else self.there
            settings.write_text(text.replace(str(self.here), str(place)), "utf-8")

    def publish(self, name: str) -> bool:
        """Let Smith publish through the Met's first broker, unless its key is not in use yet."""
        row = {"word": WORDS[name], "more": f"more of {WORDS[name]}"}
        try:
            with maia.open(self.first.home) as first:
                return publish_here(first.home, name, [row], as_="smith", at=first.follow()) == 1
        except MaiaError as error:
            if error.code != "NO_KEY":
                raise
            return False

    def carry(self) -> None:
        """Let the CCS carry all that there is, as it lies there."""
        shutil.copytree(self.here, self.there, dirs_exist_ok=True)

    def seen(self, home: Command, name: str, who: str) -> list[tuple[object, object]] | str:
        """Read as a client of a home: the rows, or the code of the refusal."""
        try:
            rows = read_here(maia.open(home.home).home, name, as_=who)
        except MaiaError as error:
            return error.code
        return [(row["word"], row["more"]) for row in rows]


@pytest.mark.slow
@pytest.mark.requirement("4.14")
def test_a_foreign_broker_carries_public_shared_and_private_types_and_cannot_read_the_last(tmp_path: Path) -> None:
    """The CCS reads what is public and its part of what is shared; the Met's own type passes it, and it has no key."""
    net = Overlay(tmp_path)
    with served("key-manager", net.desk.home) as port:
        net.settle(port)
        assert [home("keys", "join", "met/Internal").code for home in (net.first, net.second)] == [0, 0]
        assert net.relay.refused("keys", "join", "met/Internal")[0] == 3, "the manager gives a foreign broker nothing"
        while not net.publish("Internal"):  # a key is announced before it is used
            time.sleep(0.1)
    for name in ("Notice", "Sighting"):
        assert net.publish(name)
    assert net.seen(net.second, "Notice", "smith") == [], "nothing reaches the second broker but through the CCS"
    net.carry()
    whole = {name: [(word, f"more of {word}")] for name, word in WORDS.items()}
    assert {name: net.seen(net.second, name, "smith") for name in WORDS} == whole
    carried = {name: net.seen(net.relay, name, "jones") for name in WORDS}
    assert carried == {"Notice": whole["Notice"], "Sighting": [(WORDS["Sighting"], None)], "Internal": "BROKEN_CHAIN"}
    relay = maia.open(net.relay.home).home
    [parcel] = [item for item in sealed_here(relay) if item.header.mode is EncryptionMode.ATTRIBUTE]
    ring = relay.keyring()
    assert not ring.groups()
    opened = open_parcel(verify_parcel(parcel), lambda label: ring.key(KeyGroupId(parcel.header.type_id, label), 1))
    assert opened == {}, "a broker that keeps to no rule has the octets, and opens nothing"
    files = [file.read_bytes() for file in net.there.rglob("*") if file.is_file()]
    found = {name: any(word.encode() in data for data in files) for name, word in WORDS.items()}
    assert found == {"Notice": True, "Sighting": True, "Internal": False}


@pytest.mark.requirement("1.14")
def test_the_register_shows_what_is_in_force_and_what_was_passed_on(maia_command: Command) -> None:
    """Of three rights one is over at 10, one was passed on and reported: at 11 the register has 2 own, 1 reported."""
    home = maia_command
    home.do("domain", "init", str(home.home), "--key")
    home.keys("ann", "kent", "bob", "cyd", "eve")
    begun = datetime.now(UTC).replace(microsecond=0)
    ten, eleven = ((begun + timedelta(seconds=600 * n // 10)).strftime("%Y-%m-%dT%H:%M:%SZ") for n in (10, 11))
    right = ("--type", "domain/T", "--action", "subscribe")
    home.grant("--from", "domain", "--to", "ann", *right, "--until", ten)
    to_kent = home.grant("--from", "domain", "--to", "kent", *right, "--delegate")
    home.grant("--from", "domain", "--to", "bob", *right)
    passed = home.grant("--from", "kent", "--to", "cyd", *right)
    forged = home.grant("--from", "eve", "--to", "cyd", *right, "--blanket")

    def register(at: str) -> list[tuple[str, str | None]]:
        rows = home.do("cert", "list", "--at", at)["certificates"]
        return [(row["holder"].split(" ")[0], (row["reporter"] or "").split(" ")[0] or None) for row in rows]

    assert register(ten) == [("ann", None), ("bob", None), ("kent", None)]
    home.do("cert", "report", passed[:12], "--as", "kent")
    assert register(ten) == [("ann", None), ("bob", None), ("kent", None), ("cyd", "kent")]
    assert register(eleven) == [("bob", None), ("kent", None), ("cyd", "kent")]
    assert home.refused("cert", "report", forged[:12], "--as", "eve")[1] == "REPORT_REFUSED"
    assert home.refused("cert", "report", passed[:12], "--as", "bob")[1] == "REPORT_REFUSED"
    assert len(register(eleven)) == 3
    home.do("revoke", to_kent[:12], "--yes")
    assert register(eleven) == [("bob", None)]


@pytest.fixture
def corp(tmp_path: Path) -> Iterator[tuple[Command, Command, Command]]:
    """Corp owns Salary and manages its keys; PayRoll and General are its sub-domains, with brokers of their own."""
    homes = {name: Command(tmp_path / name) for name in ("corp", "payroll", "general")}
    owner, payroll, general = homes.values()
    for name, home in homes.items():
        log = () if home is owner else ("--log", str(owner.home / "log"))
        home.do("domain", "init", str(home.home), "--name", name, "--key", *log)
    owner.do("type", "define", "domain/Salary@1", "--attribute", "employee:string:1", "--attribute", "amount:integer:2")
    for name, home in list(homes.items())[1:]:
        shutil.copy(home.home / "keys" / "domain.pub", owner.home / "keys" / f"{name}.pub")
        for known in ("corp", "key-manager"):
            shutil.copy(owner.home / "keys" / "domain.pub", home.home / "keys" / f"{known}.pub")
        owner.do("name", "add", "domains", "--from", "domain", "--to", name)
        home.keys("clerk", "admin")
        shutil.copy(home.home / "keys" / "admin.pub", owner.home / "keys" / f"{name}-admin.pub")
        home.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
        home.grant("--from", "domain", "--to", "broker", "--type", "*", "--blanket", "--irrevocable")
    sensitive = ("--type", "domain/Salary", "--action", "publish,subscribe", "--irrevocable")
    owner.grant("--from", "domain", "--to", "payroll", *sensitive, "--delegate")
    # A mistake, which the split makes harmless: General's administrator may read salaries.
    owner.grant("--from", "domain", "--to", "general-admin", *sensitive)
    with served("key-manager", owner.home) as port:
        for home in (payroll, general):
            for public in ("types", "certificates"):
                shutil.copytree(owner.home / public, home.home / public, dirs_exist_ok=True)
            settings = home.home / "maia.toml"
            address = f'[services]\nkey_manager = "http://127.0.0.1:{port}"\n'
            settings.write_text(f"{settings.read_text('utf-8')}\n{address}", "utf-8")
        yield owner, payroll, general


def published(pay: maia.Domain, row: dict[str, object]) -> bool:
    """Publish a salary, unless its key is not in use yet."""
    try:
        return publish_here(pay.home, "Salary", [row], as_="clerk", at=pay.follow()) == 1
    except MaiaError as error:
        if error.code != "NO_KEY":
            raise
        return False


@pytest.mark.slow
@pytest.mark.requirement("4.04")
@pytest.mark.requirement("22.17")
def test_a_privileged_sub_domain_keeps_what_the_rest_must_not_know(corp: tuple[Command, Command, Command]) -> None:
    """PayRoll's broker gets keys and serves salaries; General's gets none, and its administrator reads nothing."""
    owner, payroll, general = corp
    shown = owner.do("domain", "show")
    assert (shown["kind"], {item["name"] for item in shown["domains"]}) == ("group of domains", {"general", "payroll"})
    payroll.grant("--from", "domain", "--to", "clerk", "--type", "corp/Salary", "--action", "publish,subscribe")
    assert payroll("keys", "join", "corp/Salary").code == 0
    refused = general("keys", "join", "corp/Salary", "--json")
    assert refused.code == 3, refused.out
    pay, rest = (maia.open(home.home) for home in (payroll, general))
    row = {"employee": "ann.archer", "amount": 100}
    while not published(pay, row):  # a key is announced before it is used
        time.sleep(0.1)
    assert read_here(pay.home, "Salary", as_="clerk") == [row]
    rest.follow()
    assert not rest.home.keyring().groups()
    with pytest.raises(DeniedError) as shut:
        read_here(rest.home, "Salary", as_="admin")
    assert shut.value.code == "BROKER_LACKS_RIGHT"
    # The administrator of General's broker reads every file of it, and the raw flow, which it has the right to carry.
    for place in (owner.home / "log", general.home):
        octets = [file.read_bytes() for file in place.rglob("*") if file.is_file()]
        assert octets
        assert not [data for data in octets if b"ann.archer" in data]
