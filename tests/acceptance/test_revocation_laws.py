"""Revocation is one thing: one series of lists, in force at once, in the log, lasting, and as the window says."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from processes import environment
from two_homes import READ, TwoHomes

import maia
from maia.testing import Command, numberplate_homes

PLATE = "pito/uk.gov.pito.Numberplate"
ASKED = ("--type", f"{PLATE}@8516", "--action", "subscribe")
ROLE = "tracker('AE05 XYZ')"
RULES = """\
tracker(plate)  <-  courtOrder(self, plate)*
tracker(plate)  |-  subscribe Numberplate(location, timestamp, numberplate = plate)
boss(self)      <-  chief(self)*
"""
ORDER = "courtOrder(smith, 'AE05 XYZ')"


# ---------------------------------------------------------------------- a domain with a register


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the home once."""
    return build(tmp_path_factory.mktemp("police") / "met").home


def build(home: Path, *, settings: str = "") -> Command:
    """Let PITO own the type and the Met delegate it, by role, to Smith."""
    met = Command(home)
    met.do("domain", "init", str(met.home), "--key")
    with (home / "maia.toml").open("a", encoding="utf-8") as file:
        file.write(settings)
    met.keys("pito", "smith", "jones")
    attributes = ("numberplate:string:3265", "timestamp:timestamp:9058", "location:string:3467")
    met.do("type", "define", f"{PLATE}@8516", *(flag for text in attributes for flag in ("--attribute", text)))
    met.grant("--from", "pito", "--to", "domain", "--type", PLATE, "--action", "subscribe", "--delegate")
    (met.home / "policy" / "met.rules").write_text(RULES, "utf-8")
    met.do("policy", "apply")
    enrol(met, "smith")
    return met


@pytest.fixture
def met(template: Path, tmp_path: Path) -> Command:
    """Give a copy of the home."""
    shutil.copytree(template, tmp_path / "met")
    return Command(tmp_path / "met")


def enrol(met: Command, who: str) -> None:
    """Invite somebody, who joins by proving a key and showing the code."""
    code = met.home.with_name(f"{met.home.name}-{who}.code")
    code.write_text(met.do("domain", "invite", who)["invitation"] + "\n", "utf-8")
    met.do("domain", "join", str(met.home), "--as", who, "--invitation-file", str(code))


def track(met: Command) -> dict[str, Any]:
    """Let Smith have the order and activate the role."""
    met.do("role", "appoint", ORDER)
    return met.do("role", "activate", ROLE, "--as", "smith")


def holds(met: Command, *more: str) -> str:
    """Say whether Smith's right is proven: `yes`, or the code of the refusal."""
    asked = ("--attribute", "numberplate='AE05 XYZ'", "--attribute", "location")
    ran = met("prove", "--as", "smith", *ASKED, *asked, "--json", *more)
    return "yes" if ran.code == 0 else str(ran.data["error"])


def numbers(met: Command, signer: str = "domain") -> list[int]:
    """List the numbers of a signer's lists that the home knows."""
    key = met.do("key", "show", signer)["keys"][0]["fingerprint"]
    shown = met.do("statement", "show")["statements"]
    return [item["sequence"] for item in shown if item["signer"].get("fingerprint") == key]


def smiths_right(met: Command) -> str:
    """Give the id of the certificate by which Smith tracks a plate."""
    shown = met.do("cert", "show")["certificates"]
    key = met.do("key", "show", "smith")["keys"][0]["fingerprint"]
    found = [
        item["id"] for item in shown if "numberplate" in str(item) and item["subject"].get("fingerprint") == key
    ]  # fmt: skip
    return str(found[-1])


@pytest.mark.parametrize("hands", [1, 3], ids=["one list by hand", "three lists by hand"])
def test_a_list_by_hand_and_a_retracted_role_are_one_series(met: Command, hands: int) -> None:
    """Whoever makes the lists, a number is taken once, and what is revoked stays so in the lists after it."""
    track(met)
    for _ in range(hands):
        met.do("statement", "crl", "--from", "domain")
    assert holds(met) == "yes"
    ended = met.do("role", "revoke", ORDER)
    assert ended["certificates"]
    assert holds(met) == "REVOKED"
    newest = max(met.do("statement", "show")["statements"], key=lambda item: item["sequence"])
    assert {item["certificate"] for item in ended["certificates"]} <= set(newest["certificates"])
    met.do("statement", "crl", "--from", "domain")
    assert holds(met) == "REVOKED"
    assert len(numbers(met)) == len(set(numbers(met)))


def test_lists_by_hand_before_there_is_a_register_are_taken_over(tmp_path: Path) -> None:
    """What the domain's key revoked before its service began stays revoked by the service's own lists."""
    met = Command(tmp_path / "met")
    met.do("domain", "init", str(met.home), "--key")
    met.do("statement", "crl", "ab" * 32, "--from", "domain")
    (met.home / "policy" / "met.rules").write_text("boss(self) <- chief(self)*\n", "utf-8")
    met.do("policy", "apply")
    enrolled = met.home.with_name("code")
    met.keys("jones")
    enrolled.write_text(met.do("domain", "invite", "jones")["invitation"], "utf-8")
    met.do("domain", "join", str(met.home), "--as", "jones", "--invitation-file", str(enrolled))
    assert len(numbers(met)) == 2
    met.do("revoke", "--principal", "jones", "--yes")
    newest = max(met.do("statement", "show")["statements"], key=lambda item: item["sequence"])
    assert "ab" * 32 in newest["certificates"]
    assert newest["sequence"] >= 3


def test_domains_sign_timed_lists_unless_they_say_otherwise(met: Command) -> None:
    """Without a setting a list lasts a day; when it has lapsed and nobody renewed it, what obeys it is denied."""
    track(met)
    timed = [item for item in met.do("statement", "show")["statements"] if item["ends"] is not None]
    lasts = {
        datetime.fromisoformat(item["ends"]) - datetime.fromisoformat(item["starts"]) for item in timed
    }  # fmt: skip
    assert timed
    assert max(lasts) <= timedelta(days=1, hours=1)
    later = (datetime.now(UTC) + timedelta(hours=23)).isoformat()
    assert holds(met, "--at", later) == "yes"
    (met.home / "series").rename(met.home / "gone")  # nobody here can renew
    assert holds(met, "--at", (datetime.now(UTC) + timedelta(days=3)).isoformat()) != "yes"


def restore(met: Command, copy: Path) -> None:
    """Put an older copy of the database back."""
    for path in met.home.glob("store.db*"):
        path.unlink()
    shutil.copy(copy, met.home / "store.db")


@pytest.mark.parametrize("hide", [False, True], ids=["the log shows it", "the home's own record shows it"])
def test_a_restored_register_notices_it_and_takes_over_what_its_lists_say(
    met: Command, tmp_path: Path, hide: bool
) -> None:
    """It signs nothing under a number that was taken, and what was revoked since the copy stays revoked."""
    track(met)
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(met.home / "store.db")) as now, closing(sqlite3.connect(copy)) as then:
        now.backup(then)
    identity = smiths_right(met)
    met.do("revoke", identity, "--yes")
    before = max(numbers(met))
    restore(met, copy)
    if hide:
        shutil.rmtree(met.home / "log")
    else:
        shutil.rmtree(met.home / "series")
    assert met.refused("role", "revoke", ORDER) == (1, "REGISTER_BEHIND")
    assert holds(met) == "REVOKED"
    assert identity in met.do("domain", "repair")["certificates"]
    met.do("revoke", "--principal", "smith", "--yes")
    newest = max(met.do("statement", "show")["statements"], key=lambda item: item["sequence"])
    assert newest["sequence"] > before
    assert identity in newest["certificates"]
    assert holds(met) == "REVOKED"


@pytest.mark.postgres
def test_a_lagging_copy_of_the_register_notices_that_it_lags(
    tmp_path: Path, postgres: str, postgres_server: Any
) -> None:
    """A replica that is promoted too early signs nothing until it has taken over what the log says."""
    met = build(tmp_path / "met", settings=f'\n[services]\ndatabase = "{postgres}"\n')
    track(met)
    name = postgres.partition("@/")[2].partition("?")[0]
    postgres_server.cut_connections(postgres)
    postgres_server.execute(f"CREATE DATABASE lagging_{name} TEMPLATE {name}")
    identity = smiths_right(met)
    met.do("revoke", identity, "--yes")
    shutil.rmtree(met.home / "series")
    file = met.home / "maia.toml"
    file.write_text(file.read_text("utf-8").replace(f"@/{name}?", f"@/lagging_{name}?"), "utf-8")
    assert met.refused("role", "revoke", ORDER) == (1, "REGISTER_BEHIND")
    assert identity in met.do("domain", "repair")["certificates"]
    met.do("revoke", "--principal", "smith", "--yes")
    assert holds(met) == "REVOKED"


def test_a_right_that_was_revoked_by_itself_is_not_issued_anew(met: Command) -> None:
    """Neither asking again nor activating again brings it back; only lifting the revocation does."""
    track(met)
    met.do("revoke", smiths_right(met), "--yes")
    again = met.do("role", "activate", ROLE, "--as", "smith")
    assert "RIGHT_REVOKED" in [item["error"] for item in again["refused"]]
    assert holds(met) == "REVOKED"
    assert met.do("revoke", "--lift", "--principal", "smith")["lifted"] == 1
    met.do("role", "activate", ROLE, "--as", "smith")
    assert holds(met) == "yes"
    assert met.refused("revoke", "--lift", "--principal", "smith") == (5, "NOT_REVOKED")


def test_python_revokes_through_the_register_what_the_service_issued(met: Command) -> None:
    """As `maia revoke` does: with what stands on it, at once, and not to be issued anew."""
    track(met)
    with maia.open(met.home) as domain:
        done = domain.revoke(smiths_right(met))
    assert done.told is True
    assert done.ended is not None
    assert "smith" in str(done)
    assert holds(met) == "REVOKED"
    again = met.do("role", "activate", ROLE, "--as", "smith")
    assert "RIGHT_REVOKED" in [item["error"] for item in again["refused"]]


def test_what_a_revocation_prints_is_who_loses_what_and_until_when_the_lists_last(met: Command) -> None:
    """For people and for machines, before and after; the instant is the end of the last list that was signed."""
    (met.home / "policy" / "domain.toml").write_text("life = 604800\n", "utf-8")
    track(met)
    ends = max(item["ends"] for item in met.do("statement", "show")["statements"] if item["ends"])
    asked = ("revoke", "--role", ROLE, "--principal", "smith")
    (shown,) = met.do(*asked, "--preview")["certificates"]
    assert (shown["holder"], shown["by"]) == ("smith", ends)
    assert "numberplate = 'AE05 XYZ'" in shown["privilege"]
    ran = met(*asked, "--yes")
    assert ran.code == 0
    assert f"smith: {shown['privilege']}" in ran.out
    assert f"by {ends}" in ran.out
    assert holds(met) == "REVOKED"


def test_a_certificate_of_others_is_taken_in_when_its_signature_verifies(met: Command, tmp_path: Path) -> None:
    """`maia cert add` keeps it and tells the domain's brokers; one that was changed is refused."""
    pito = Command(tmp_path / "pito")
    shutil.copytree(met.home / "types", pito.home / "types")
    shutil.copytree(met.home / "keys", pito.home / "keys")
    (pito.home / "keys" / "domain.key").unlink()
    made = pito.do("grant", "--from", "pito", "--to", "domain", "--type", PLATE, "--action", "publish", "--irrevocable")
    asked = ("prove", "--as", "domain", "--type", f"{PLATE}@8516", "--action", "publish")
    assert met(*asked).code != 0
    assert met.do("cert", "add", made["file"])["told"] is True
    assert met(*asked).code == 0
    data = bytearray(Path(made["file"]).read_bytes())
    data[-1] ^= 1
    changed = tmp_path / "changed.cert"
    changed.write_bytes(data)
    assert met("cert", "add", str(changed)).code != 0


def test_an_appointment_is_in_the_register_and_ends_with_its_revocation(met: Command, tmp_path: Path) -> None:
    """Its holder joins with it; revoked, nobody joins with it, and what stood on the fact falls."""
    cards = {name: tmp_path / f"{name}.cert" for name in ("jones", "late")}
    met.keys("late")
    made = {
        name: met.do("domain", "appoint", name, f"chief({name})", "--key", name, "--out", str(card))["id"]
        for name, card in cards.items()
    }
    met.do("domain", "join", str(met.home), "--as", "jones", "--appointment", str(cards["jones"]))
    met.do("role", "activate", "boss(jones)", "--as", "jones")
    ended = met.do("revoke", made["jones"], "--yes")
    assert ended["roles"]
    assert made["jones"] in [item["certificate"] for item in ended["certificates"]]
    assert met.refused("role", "activate", "boss(jones)", "--as", "jones")[0] == 3
    met.do("revoke", made["late"], "--yes")
    join = ("domain", "join", str(met.home), "--as", "late", "--appointment", str(cards["late"]))
    assert met.refused(*join) == (4, "REVOKED")


# ---------------------------------------------------------------------- an owner and a reader, two homes over one log


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoHomes]:
    """Give the two homes."""
    made = TwoHomes(numberplate_homes(tmp_path), tmp_path)
    yield made
    made.domain.close()


def test_a_right_given_by_hand_obeys_its_issuers_lists_and_the_window_is_told(two: TwoHomes) -> None:
    """The other home hears the list through the log; only `--irrevocable` gives what nobody can take back."""
    two.give("jones")
    assert two.reads("jones") == "yes"
    asked = ("grant", "--from", "PITO", "--to", "jones", "--type", READ, "--action", "subscribe")
    assert "1 day" in two.pito.do(*asked)["exposure"]
    given = two.pito.do(*asked, "--irrevocable")
    assert "unbounded" in given["exposure"]
    assert two.pito.refused("revoke", given["id"], "--yes") == (2, "IRREVOCABLE")


def test_a_right_given_again_is_another_certificate(two: TwoHomes) -> None:
    """What was revoked stays revoked; who gets the right back gets a certificate that counts at once, each time."""
    given = [two.give("jones")]
    asked = ("grant", "--from", "PITO", "--to", "jones", "--type", READ, "--action", "subscribe")
    for _ in range(3):
        two.pito.do("revoke", given[-1], "--yes")
        assert two.reads("jones") == "REVOKED"
        made = two.pito.do(*asked)
        shutil.copy(made["file"], two.reader.home / "certificates")
        given.append(made["id"])
        assert two.reads("jones") == "yes"
    assert len(set(given)) == 4


def test_a_list_is_renewed_for_no_longer_than_the_one_before(two: TwoHomes) -> None:
    """Who was told a window of ten minutes is not given one of a day because the home was opened."""
    two.pito.do("statement", "crl", "--from", "PITO", "--until", "+10m")
    two.give("jones")
    now = datetime.now(UTC)
    for minutes in (9, 12, 40):
        with maia.open(two.pito.home) as pito:
            pito.follow(at=now + timedelta(minutes=minutes))
        assert two.reads("jones", now + timedelta(minutes=minutes)) == "yes"
    timed = [item for item in two.pito.do("statement", "show")["statements"] if item["ends"]]
    lasts = {datetime.fromisoformat(item["ends"]) - datetime.fromisoformat(item["starts"]) for item in timed}
    assert len(timed) >= 2
    assert max(lasts) <= timedelta(minutes=10)


@pytest.mark.parametrize("door", ["command", "python"])
def test_a_revocation_by_hand_reaches_other_homes(two: TwoHomes, door: str) -> None:
    """`maia revoke` and `domain.revoke` tell the log; the other home's broker stops at its next step."""
    identity = two.give("jones")
    assert two.reads("jones") == "yes"
    if door == "command":
        done = two.pito.do("revoke", identity, "--yes")
        assert done["told"] is True
        assert done["holder"].startswith("jones")
    else:
        with maia.open(two.pito.home) as pito:
            assert pito.revoke(identity).told is True
    assert two.reads("jones") == "REVOKED"


def test_each_revocation_takes_force_at_once_whatever_was_signed_ahead(two: TwoHomes) -> None:
    """Three lists are signed ahead; three revocations are heard at once, and none waits longer than the one before."""
    given = {name: two.give(name) for name in ("ann", "bob", "cid")}
    for _ in range(3):
        two.pito.do("statement", "crl", "--from", "PITO")
    assert {two.reads(name) for name in given} == {"yes"}
    by = []
    for name, identity in given.items():
        by.append(two.pito.do("revoke", identity, "--yes")["by"])
        assert two.reads(name) == "REVOKED"
    assert len(set(by)) == 1
    later = datetime.fromisoformat(by[0]) - timedelta(seconds=1)  # under the last list that was signed ahead
    assert {two.reads(name, later) for name in given} == {"REVOKED"}


def test_a_revocation_that_is_kept_from_a_reader_ends_with_the_printed_window(two: TwoHomes) -> None:
    """Somebody removes the notice: the reader goes on until the printed instant, and not a second longer."""
    identity = two.give("jones")
    two.give("kim")
    assert two.reads("jones") == "yes"
    known = set(two.log.rglob("*.record"))
    printed = datetime.fromisoformat(two.pito.do("revoke", identity, "--yes")["by"])
    for path in set(two.log.rglob("*.record")) - known:
        path.unlink()
    assert two.reads("jones", printed - timedelta(seconds=1)) == "yes"
    assert two.reads("jones", printed) != "yes"
    with maia.open(two.pito.home) as pito:
        pito.follow(at=printed)  # the owner's home is opened, and renews its list
    assert two.reads("kim", printed) == "yes"
    assert two.reads("jones", printed) == "REVOKED"


@pytest.mark.parametrize("signer", ["pito", "domain"], ids=["by hand", "register"])
def test_each_list_repeats_what_was_revoked_and_since_when(met: Command, signer: str) -> None:
    """Timed, plain, by whoever: a list names all that was revoked, each with the moment of the first that named it."""
    seen = moments(met.do("statement", "crl", "aa" * 32, "--from", signer))
    for more in (("bb" * 32,), (), ("cc" * 32,), ("--until", "+40d")):
        wait_for_the_next_second()
        made = moments(met.do("statement", "crl", *more, "--from", signer))
        assert {identity: made[identity] for identity in seen} == seen
        seen = made
    assert seen.keys() == {"aa" * 32, "bb" * 32, "cc" * 32}
    assert len(set(seen.values())) == 3
    if signer == "domain":
        track(met)
        met.do("role", "revoke", ORDER)
        newest = moments(max_list(met))
        assert {identity: newest[identity] for identity in seen} == seen
        assert len(newest) > len(seen)


def test_a_plain_list_goes_on_naming_what_ended(two: TwoHomes) -> None:
    """What was revoked and has ended since is named by the next plain list, which has no time of its own."""
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    over, other = two.give("ann", "--until", ends.isoformat()), two.give("bob")
    two.pito.do("revoke", over, "--yes")
    (since,) = moments(max_list(two.pito)).values()
    while datetime.now(UTC) <= ends + timedelta(seconds=1):
        time.sleep(0.05)
    two.pito.do("revoke", other, "--yes")
    assert moments(max_list(two.pito))[over] == since
    assert other in moments(max_list(two.pito))


REVOKER = """
import sys, time, maia
with maia.open(sys.argv[1]) as domain:
    print("ready", flush=True)
    for line in sys.stdin:
        identity, moment = line.split()
        while time.time() < float(moment):
            pass
        domain.revoke(identity)
        print(identity, flush=True)
"""


def test_two_processes_revoke_at_once_and_nothing_acknowledged_is_lost(two: TwoHomes) -> None:
    """F7: each draws up, signs and saves its lists under one lock, so no list leaves out what another revoked."""
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    two.reader.keys("jones")
    two.pito.do("key", "import", "jones", str(two.reader.home / "keys" / "jones.pub"))
    asked = ("grant", "--from", "PITO", "--to", "jones", "--type", READ, "--action", "subscribe", "--until")
    given = [two.pito.do(*asked, (ends + timedelta(hours=hour)).isoformat())["id"] for hour in range(40)]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", REVOKER, str(two.pito.home)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [heard(process) for process in both] == ["ready", "ready"]
    for pair in zip(given[::2], given[1::2], strict=True):
        moment = time.time() + 0.01
        for process, identity in zip(both, pair, strict=True):
            assert process.stdin is not None
            print(identity, moment, file=process.stdin, flush=True)
        assert tuple(heard(process) for process in both) == pair, "each revocation is acknowledged"
        assert set(pair) <= set(max_list(two.pito)["certificates"])
    for process in both:
        process.communicate()
    assert set(given) <= set(max_list(two.pito)["certificates"])
    assert len(numbers(two.pito, "PITO")) == len(set(numbers(two.pito, "PITO")))


def heard(process: subprocess.Popen[str]) -> str:
    """Read the next line that a process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def moments(shown: dict[str, Any]) -> dict[str, int]:
    """Tell since when a list revokes what it names."""
    return dict(zip(shown["certificates"], shown.get("since", ()), strict=True))


def max_list(home: Command) -> dict[str, Any]:
    """Give the list with the highest number that a home knows."""
    shown: list[dict[str, Any]] = home.do("statement", "show")["statements"]
    return max(shown, key=lambda item: int(item["sequence"]))


def wait_for_the_next_second() -> None:
    """Wait until another moment can be told from this one; commands tell whole seconds."""
    start = int(time.time())
    while int(time.time()) <= start:
        time.sleep(0.01)


def test_junk_in_the_log_keeps_nobody_from_revoking(two: TwoHomes) -> None:
    """Whatever lies under the names of its lane gives way, and a list is heard at once."""
    identity = two.give("jones")
    assert two.reads("jones") == "yes"
    (lane,) = {path.parent for path in two.log.rglob("statement/*/*/*.record")}
    for number in range(1, 40):
        (lane / f"{number:012}.record").write_bytes(b"junk")
    (lane / "head").unlink()
    (lane / "head").symlink_to("/dev/zero")
    assert two.pito.do("revoke", identity, "--yes")["told"] is True
    assert two.reads("jones") == "REVOKED"


def test_a_log_that_takes_nothing_keeps_nobody_from_revoking(two: TwoHomes) -> None:
    """It is durable at the owner first, said to be unheard, and told as soon as the log takes it."""
    identity = two.give("jones")
    assert two.reads("jones") == "yes"
    away = two.log.rename(two.log.with_name("away"))
    two.log.write_bytes(b"no folder")
    assert two.pito.do("revoke", identity, "--yes")["told"] is False
    assert identity in str(two.pito.do("statement", "show"))
    two.log.unlink()
    away.rename(two.log)
    with maia.open(two.pito.home) as pito:
        pito.follow()
    assert two.reads("jones") == "REVOKED"


def test_an_old_file_of_statements_brings_nothing_back(two: TwoHomes) -> None:
    """Put back under a running process, or removed, it is noticed: what was revoked stays so."""
    identity = two.give("jones")
    assert two.reads("jones") == "yes"
    file, copy = two.reader.home / "statements", two.reader.home / "copy"
    shutil.copy(file, copy)
    two.pito.do("revoke", identity, "--yes")
    assert two.reads("jones") == "REVOKED"
    shutil.copy(copy, file)
    assert two.reads("jones") == "REVOKED"
    file.unlink()
    assert two.reads("jones") == "REVOKED"
