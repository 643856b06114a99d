"""Who reads what, why not, and what if: by `maia who-can`, `maia what-if` and `import maia`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from inheritance_world import CHILD, PARENT, make_world
from inheritance_world import give as give_type
from reasoning_world import TYPE, give, hospital, names
from topic_world import Exchange, make_exchange

import maia
from maia.errors import MaiaError, UsageError
from maia.testing import Command, publish_here, read_here

REPORT = {"patient-ID": "1234567768", "patient-name": "Patterson", "hospital-ID": "RGT01", "path-report-text": "…"}


@pytest.fixture
def home(maia_command: Command) -> Command:
    """Give the hospital."""
    return hospital(maia_command)


def readers(home: Command, attribute: str, *more: str) -> list[str]:
    """List who reads an attribute, by name."""
    found = home.do("who-can", TYPE, attribute, *more)
    assert found["complete"]
    return names(found["principals"])


@pytest.mark.requirement("18.04")
def test_nothing_stops_an_event_or_the_link_that_does_is_named(home: Command) -> None:
    """No right stops report e2 from reaching Ali; what keeps the patient's name from Chen is what the trust granted."""
    row = json.dumps(REPORT)
    for attribute in REPORT:
        assert home.do("who-can", TYPE, attribute, "--as", "ali", "--row", row)["holds"]
    code, reason = home.refused("who-can", TYPE, "patient-name", "--as", "chen", "--row", row)
    assert (code, reason) == (3, "NOT_PERMITTED")
    said = home("who-can", TYPE, "patient-name", "--as", "chen", "--row", row).out
    assert "`trust`" in said
    assert "attribute 2" in said
    assert home.refused("who-can", TYPE, "patient-name", "--as", "abroad")[1] == "NO_EVIDENCE"
    give(home, "trust", "brown", "--attribute", "hospital-ID=RGT02", "--attribute", "path-report-text")
    assert home.refused("who-can", TYPE, "path-report-text", "--as", "brown", "--row", row) == (3, "ROW_NOT_ADMITTED")


def test_an_answer_that_labels_may_change_says_so(home: Command) -> None:
    """With a label policy the list is not called complete, and says what may close more."""
    assert home.do("who-can", TYPE, "patient-name")["complete"]
    labels = home.home / "policy" / "labels.toml"
    labels.parent.mkdir(exist_ok=True)
    labels.write_text("", "utf-8")
    found = home.do("who-can", TYPE, "patient-name")
    assert not found["complete"]
    assert any("labels.toml" in line for line in found["assumptions"])


def test_the_answer_is_what_readers_are_shown(home: Command) -> None:
    """Who is said to read a cell of a published report is shown it, and nobody else: the list and the data agree."""
    give(home, "trust", "brown", "--attribute", "hospital-ID=RGT02", "--attribute", "path-report-text")
    give(home, "trust", "broker", action="publish,subscribe")
    opened = maia.open(home.home).home
    publish_here(opened, TYPE, [REPORT, REPORT | {"hospital-ID": "RGT02"}], as_="lab", at=datetime.now(UTC))
    for number, row in enumerate((REPORT, REPORT | {"hospital-ID": "RGT02"})):
        for attribute in REPORT:
            said = readers(home, attribute, "--row", json.dumps(row))
            shown = [who for who in ("ali", "brown", "chen", "abroad") if _sees(opened, who, number, attribute, row)]
            assert [who for who in said if who not in ("trust", "broker")] == shown, (attribute, row)


def _sees(opened: object, who: str, number: int, attribute: str, row: dict[str, str]) -> bool:
    try:
        found = read_here(opened, TYPE, as_=who)
    except MaiaError:
        return False
    return any(one[attribute] == row[attribute] and (one["hospital-ID"] in (None, row["hospital-ID"])) for one in found)


@pytest.mark.requirement("18.10")
def test_everybodys_rights_and_a_rule_about_them_with_an_event_that_breaks_it(home: Command) -> None:
    """The table of rights at a moment; "no identifiable data leaves the trust" holds until a right breaks it."""
    table = home.do("who-can", TYPE)["rights"]
    rights = {who.split(" ")[0]: sorted(can) for who, can in table.items()}
    assert rights == {
        "ali": ["subscribe"],
        "chen": ["subscribe"],
        "lab": ["publish"],
        "trust": ["publish", "subscribe"],
    }
    chen = next(can for who, can in table.items() if who.startswith("chen "))
    assert chen["subscribe"] == ["hospital-ID", "path-report-text"]
    inside = ("--only", "trust: members", "--only", "trust")
    kept = home.do("who-can", TYPE, "patient-name", *inside)
    assert kept["outsiders"] == []
    until = (datetime.now(UTC) + timedelta(days=9)).strftime("%Y-%m-%dT%H:%M:%SZ")
    demand = ("--attribute", "patient-name", "--attribute", "hospital-ID='RGT01'")
    give(home, "trust", "abroad", *demand, "--until", until)
    broken = home("who-can", TYPE, "patient-name", *inside, "--json")
    assert broken.code == 3
    [outsider] = broken.data["outsiders"]
    assert outsider.startswith("abroad ")
    event = next(row["example"] for row in broken.data["principals"] if row["principal"] == outsider)
    assert event["hospital-ID"] == "RGT01"
    assert home.do("who-can", TYPE, "patient-name", "--as", "abroad", "--row", json.dumps(event))["holds"]
    assert "abroad" not in {who.split(" ")[0] for who in home.do("who-can", TYPE, "--at", "+10d")["rights"]}
    assert home.do("who-can", TYPE, "patient-name", *inside, "--at", "+10d")["outsiders"] == []


def test_names_and_thresholds_count_and_expired_or_revoked_certificates_do_not(home: Command) -> None:
    """Whoever a name stands for is listed; two of three together give; what is over or revoked gives nothing."""
    home.keys("a", "b", "c", "dan")
    home.grant("--from", "trust", "--to", "trust: ward", "--type", TYPE, "--action", "subscribe", "--irrevocable")
    assert "brown" not in readers(home, "patient-ID")
    home.do("name", "add", "ward", "--from", "trust", "--to", "brown")
    assert "brown" in readers(home, "patient-ID")
    give(home, "trust", "2 of (a, b, c)", "--delegate")
    for member, expected in (("a", False), ("b", True)):
        home.grant(
            "--from", member, "--to", "dan", "--type", TYPE, "--action", "subscribe", "--irrevocable", "--blanket"
        )
        assert ("dan" in readers(home, "patient-ID")) is expected
    assert not {"a", "b", "c"} & set(readers(home, "patient-ID")), "none of them by itself"
    revocable = home.grant("--from", "trust", "--to", "abroad", "--type", TYPE, "--action", "subscribe")
    assert "abroad" in readers(home, "patient-ID")
    home.do("revoke", revocable[:12], "--yes")
    assert "abroad" not in readers(home, "patient-ID")


@pytest.mark.requirement("18.03")
def test_what_ends_with_a_certificate_and_what_another_would_begin(home: Command, tmp_path: Path) -> None:
    """Revoking the trust's right ends everybody's behind it; one more right lets Brown read; nothing is changed."""
    brown = tmp_path / "brown.cert"
    given = give(home, "trust", "brown", "--out", str(brown), "--attribute", "path-report-text", "--until", "+9d")
    [kept] = [path for path in (home.home / "certificates").iterdir() if path.name.startswith(given[:16])]
    kept.unlink()
    assert "brown" not in readers(home, "path-report-text")
    assert "brown" in names(home.do("who-can", TYPE, "path-report-text", "--add", str(brown))["principals"])
    began = home.do("what-if", "--add", str(brown))["changes"]
    assert [(row["what"], row["principal"].split(" ")[0], row["action"], row["attribute"]) for row in began] == [
        ("began", "brown", "subscribe", "path-report-text")
    ]
    later = home.do("who-can", TYPE, "path-report-text", "--add", str(brown), "--at", "+10d")
    assert "brown" not in names(later["principals"]), "while it is valid"
    assert home.do("what-if", "--add", str(brown), "--at", "+10d")["changes"] == []
    assert "brown" not in readers(home, "path-report-text"), "nothing was kept"
    domain = maia.open(home.home)
    ended = domain.ends(_id_of(home, "trust"))
    assert {(who.split(" ")[0], action) for who, action, _ in ended.of("ended")} == {
        ("trust", "publish"), ("trust", "subscribe"), ("ali", "subscribe"), ("chen", "subscribe"), ("lab", "publish"),
    }  # fmt: skip
    assert ended.complete
    assert len(domain.who_can(TYPE, "patient-ID")) == 2, "still there"
    assert not domain.what_if(remove=_id_of(home, "ali")).of("began")


def _id_of(home: Command, holder: str) -> str:
    """Find the certificate that gave somebody its right on reports."""
    found = maia.open(home.home).who_can(TYPE, "hospital-ID")
    return next(reader.chain[-1] for reader in found if reader.name.startswith(f"{holder} "))


def test_rights_that_end_or_narrow_later_are_shown_with_a_row(home: Command) -> None:
    """Between two moments: a right that is over ends; one of two that is over leaves fewer rows, and a row shows it."""
    give(home, "trust", "brown", "--attribute", "hospital-ID='RGT01'", "--attribute", "path-report-text")
    give(
        home,
        "trust",
        "brown",
        "--attribute",
        "hospital-ID='RGT02'",
        "--attribute",
        "path-report-text",
        "--until",
        "+2d",
    )
    give(home, "trust", "abroad", "--attribute", "patient-ID", "--until", "+2d")
    changes = home.do("what-if", "--then", "+3d")["changes"]
    said = {(row["what"], row["principal"].split(" ")[0], row["attribute"]): row for row in changes}
    assert ("ended", "abroad", "patient-ID") in said
    assert said["narrowed", "brown", "path-report-text"]["row"]["hospital-ID"] == "RGT02"
    assert home.refused("what-if") == (2, "NOTHING_NAMED")


def test_two_readers_are_compared_over_all_rows(home: Command) -> None:
    """Chen sees nothing that Ali does not; Ali sees more, and an event shows it; what is never seen is said."""
    domain = maia.open(home.home)
    assert domain.compare(TYPE, "chen", "ali")["implies"]
    other = domain.compare(TYPE, "ali", "chen")
    assert other["implies"] is False
    assert other.witness is not None
    assert set(other.witness) <= set(REPORT)
    answers = home.do("compare", TYPE, "chen")["answers"]
    held = {(row["question"], row["attribute"]): row["holds"] for row in answers}
    assert held["always", "hospital-ID"]
    assert held["never", "patient-name"]
    assert not held["never", "hospital-ID"]
    give(home, "trust", "brown", "--attribute", "patient-name", "--attribute", "hospital-ID='RGT01'")
    assert home.do("compare", TYPE, "brown", "chen")["answers"][2]["holds"] is False, "the hospital's number in common"
    assert home.refused("compare", TYPE, "brown", "nobody")[0] == 5


def test_questions_that_make_no_sense_are_refused(home: Command) -> None:
    """Unknown attributes, actions, rows and filters are named; nothing is guessed."""
    domain = maia.open(home.home)
    for wrong, code in (
        ({"attribute": "patient"}, "NO_SUCH_ATTRIBUTE"), ({"action": "manage"}, "UNKNOWN_ACTION"),
        ({"row": {"ward": "x"}}, "NO_SUCH_ATTRIBUTE"), ({"row": {}, "where": "hospital-ID = 'x'"}, "ROW_AND_FILTER"),
    ):  # fmt: skip
        asked = {"attribute": "patient-ID", **wrong}
        with pytest.raises((UsageError, MaiaError)) as refused:
            domain.who_can(TYPE, asked.pop("attribute"), **asked)
        assert refused.value.code == code
    assert home.refused("who-can", TYPE, "patient-ID", "--row", "[1]") == (2, "ROW_TEXT")
    assert home.refused("who-can", "Nothing", "x")[0] == 5


def test_what_is_inherited_and_what_lies_under_a_topic_is_asked_of_all_types_that_decide(tmp_path: Path) -> None:
    """A child's inherited attribute takes a right on both types; a topic's writer needs one on each topic above."""
    home = make_world(tmp_path / "types")
    domain = maia.open(home.home)

    def found(*args: str, **more: str) -> set[str]:
        return {reader.name.split(" ")[0] for reader in domain.who_can(*args, **more)}

    # The child's owner has the child without a certificate, and what it inherits not at all.
    assert found(CHILD, "plate") == {"broker", "reader"}
    assert found(CHILD, "unit") == {"broker", "reader", "children"}
    assert found(PARENT, "plate") == {"broker", "reader", "parents"}
    assert found(CHILD, "unit", action="publish") == {"broker", "camera", "patrol"}
    assert found(CHILD, "plate", action="publish") == {"broker", "camera"}
    parents = next(reader.chain[-1] for reader in domain.who_can(PARENT, "plate") if reader.name.startswith("reader "))
    assert {who.split(" ")[0] for who, _, _ in domain.ends(parents).of("ended")} == {"reader"}

    give_type(home, "met", PARENT, "subscribe", "--attribute", "plate")
    domain = maia.open(home.home)
    assert found(CHILD, "plate") == {"broker", "reader", "met"}, "the owner of the child, by a right on the parent"

    exchange = Exchange(Command(make_exchange(tmp_path / "topics")))
    quotes, stocks = "MarketQuotes", "MarketQuotes.Stocks"
    exchange.command.keys("ann", "bob")
    exchange.give("ann", stocks, "publish")
    domain = maia.open(exchange.command.home)
    assert "ann" not in found(stocks, "price", action="publish"), "not on the topic above"
    exchange.give("ann", quotes, "publish")
    exchange.give("bob", quotes, "subscribe")
    domain = maia.open(exchange.command.home)
    assert "ann" in found(stocks, "price", action="publish")
    assert "bob" in found(stocks, "price"), "a right on a topic is one on those below it"


def test_rights_within_access_control_filters_show_what_a_subscription_can_keep_to(home: Command) -> None:
    """Under an upper bound the rows within it are shown, and an example keeps to it; what cannot be told is said."""
    give(home, "trust", "brown", "--bound", "upper (hospital-ID = 'RGT01')")
    found = home.do("who-can", TYPE, "patient-ID")
    [brown] = [row for row in found["principals"] if row["principal"].startswith("brown ")]
    assert brown["example"]["hospital-ID"] == "RGT01"
    for number, expected in (("RGT01", True), ("RGT02", False)):
        said = readers(home, "patient-ID", "--row", json.dumps(REPORT | {"hospital-ID": number}))
        assert ("brown" in said) is expected
