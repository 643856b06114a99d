"""Attributes by name, in every command and explanation; uids where they matter; useless rights refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from maia.errors import UsageError
from maia.home import Folder, words

TYPE = "pito/uk.gov.pito.Numberplate"
NAME = "uk.gov.pito.Numberplate"


@pytest.fixture
def typed(maia):
    """Give a home that keeps the type, whose owner let met pass its rights on."""
    maia.keys("pito", "met", "smith")
    made = maia(
        *("type", "define", f"{TYPE}@1", "--attribute", "numberplate:string", "--attribute", "speed:integer"),
        *("--attribute", "seen:timestamp", "--attribute", "price:decimal", "--attribute", "raw:binary"),
        *("--attribute", "17=road name"),
    )
    assert made.code == 0, made.err
    maia.grant("--from", "pito", "--to", "met", "--type", TYPE, "--delegate", "--irrevocable")
    return maia


def give(maia, *attributes: str):
    """Let met give smith a right on these attributes."""
    options = [word for text in attributes for word in ("--attribute", text)]
    return maia("grant", "--from", "met", "--to", "smith", "--type", TYPE, "--action", "subscribe", *options, "--json")


def test_names_become_uids_when_signed_and_names_again_when_shown(typed):
    """What is signed names uids; whoever reads it sees names, and uids where the certificate itself is shown."""
    ran = give(typed, "numberplate=AE05 XYZ", "speed", "uid:17")
    assert ran.code == 0, ran.err
    assert ran.data["rights"][0]["attributes"] == ["17", "18", "19"]
    shown = typed("cert", "show", ran.data["id"][:12]).out
    assert "numberplate (uid 18) = 'AE05 XYZ'" in shown
    assert "road name (uid 17)" in shown
    target = ("--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe")
    for verb in ("explain", "prove", "verify"):
        out = typed(verb, *target).out
        assert "numberplate = 'AE05 XYZ'" in out, verb
        assert " 18" not in out, verb
    assert "rows without numberplate" in typed("explain", *target).out
    narrow = typed("explain", "--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe", "--attribute", "speed")
    assert narrow.code == 0


USELESS = {
    "an unknown name": ("sped", "NO_SUCH_ATTRIBUTE", "did you mean `speed`?"),
    "an unknown number": ("99", "NO_SUCH_ATTRIBUTE", "has no attribute `99`"),
    "a word for a number": ("speed > fast", "ATTRIBUTE_VALUE", "`speed` is an integer"),
    "a fraction of an integer": ("speed>=1.5", "ATTRIBUTE_VALUE", "which `1.5` is not"),
    "a time that is a date": ("seen > 2026-06-01", "ATTRIBUTE_VALUE", "is a timestamp"),
    "a demand on octets": ("raw = 5", "ATTRIBUTE_UNCOMPARED", "`raw`"),
}


@pytest.mark.parametrize("text, code, words_", USELESS.values(), ids=USELESS)
def test_useless_demands_are_not_signed(typed, text, code, words_):
    """What no event could meet is refused, with what would have been right."""
    ran = give(typed, text)
    assert ran.code == 2
    assert ran.data["error"] == code
    assert words_ in ran.err
    assert len(list((typed.home / "certificates").iterdir())) == 1


def test_values_are_read_as_the_type_of_their_attribute(typed):
    """Digits are a text where the attribute is text, and a decimal where it is decimal; names may hold blanks."""
    assert give(typed, "numberplate=500").data["rights"][0]["constraints"] == {"18": "= 500"}
    sexp = typed("cert", "show", give(typed, "numberplate=500").data["id"][:12], "--sexp").out
    assert "range" not in sexp
    assert give(typed, "price >= 3").data["rights"][0]["constraints"] == {"21": ">= 3.0"}
    assert give(typed, "road name in (A1, 'M 25')").data["rights"][0]["constraints"] == {"17": "in ('A1', 'M 25')"}


def test_a_name_without_its_type_is_refused(maia):
    """Where no definition says the uid of a name, only uids can be given."""
    maia.keys("pito", "met")
    args = ("grant", "--from", "pito", "--to", "met", "--type", TYPE, "--action", "subscribe", "--attribute")
    ran = maia(*args, "speed")
    assert ran.code == 2
    assert "no type here says which uid `speed` has" in ran.err
    assert maia(*args, "3265").code == maia(*args, "uid:3265>=7").code == 0


def test_an_end_in_the_past_is_refused_and_the_window_is_told(typed):
    """A right that is over is useless; of any other its issuer learns how long it may outlive its revocation."""
    args = ("grant", "--from", "met", "--to", "smith", "--type", TYPE, "--action", "subscribe")
    late = typed(*args, "--until", "2020-01-01")
    assert late.code == 2
    assert "[ENDS_IN_PAST]" in late.err
    told = typed(*args, "--until", "+1d")
    worst = "if it is revoked now, it counts at worst for 1 day and 1 second (the end of its validity period)"
    assert worst in told.err
    # the list was signed a moment before
    assert "counts at worst for 30 days (the crl of" in typed(*args).err
    assert "it cannot be revoked" in typed(*args, "--irrevocable").err


def test_planted_definitions_name_nothing(typed):
    """A forged definition with swapped names beside the genuine one neither resolves nor shows a name."""
    typed.keys("evil")
    (genuine,) = (typed.home / "types").glob("*/*.type")
    folder = Folder(typed.home)
    forged = genuine.read_bytes().replace(b"11:numberplate", b"11:plate-forge")
    genuine.with_name(f"{'0' * 64}.type").write_bytes(forged)
    (version,) = folder.versions(folder.key("pito").key_id, NAME)
    assert "numberplate" in {item.name for item in version.attributes}
    assert give(typed, "plate-forge").code == 2


def test_a_renamed_attribute_is_shown_by_both_names_and_found_by_either(typed):
    """A right on all versions speaks of an attribute that two versions name differently."""
    assert typed("type", "evolve", f"{TYPE}@1", "--rename", "speed=pace", "--number", "2").code == 0
    both = give(typed, "pace")
    assert both.data["rights"][0]["names"]["19"] in ("pace/speed", "speed/pace")
    assert give(typed, "speed").data["rights"][0]["attributes"] == both.data["rights"][0]["attributes"]
    folder = Folder(typed.home)
    with pytest.raises(UsageError, match="NO_SUCH_ATTRIBUTE"):
        words.parse_right(folder, type_=f"{TYPE}@1", actions=["subscribe"], attributes=["pace"])


def test_conditions_that_are_false_now_are_named(typed):
    """Who holds a right only on a condition is told which one is false, and that it is no right now."""
    typed.grant(
        *("--from", "met", "--to", "smith", "--type", TYPE, "--action", "subscribe"),
        *("--condition", 'now.hour("Europe/London") < 9', "--condition", 'event["18"] == "AE05 XYZ"'),
        "--irrevocable",
    )
    target = ("explain", "--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe", "--at")
    early = typed(*target, "2027-06-01T05:00:00Z")
    assert early.code == 0
    assert "is asked of each event" in early.out
    late = typed(*target, "2027-06-01T12:00:00Z")
    assert late.code == 3
    assert 'not now: `now.hour("Europe/London") < 9` is false now' in late.out
    asked = typed(*target, "2027-06-01T12:00:00Z", "--json").data
    assert asked["usable"] is False
    assert [item["holds"] for item in asked["asked"]] == [False, None]


def test_the_broker_that_may_not_publish_is_named(typed):
    """A broker needs the right to publish for its client to publish; to deliver, that or the right to subscribe."""
    typed.grant("--from", "met", "--to", "smith", "--type", TYPE, "--action", "subscribe,publish")
    typed.keys("broker")
    (typed.home / "maia.toml").write_text('format = 2\nname = "met"\nbroker = "broker"\ndomain = "met"\n')
    reading = ("explain", "--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe")
    ran = typed(*reading)
    assert (ran.code, "may not open the type itself, so nothing is delivered" in ran.err) == (0, True)
    assert "broker_lacks" in typed(*reading, "--json").data
    writing = (*reading[:-1], "publish")
    ran = typed(*writing)
    assert ran.code == 0
    assert "the broker broker (" in ran.err
    assert "may not publish the type, so nothing is published" in ran.err
    assert "broker_lacks" in typed(*writing, "--json").data
    typed.grant("--from", "met", "--to", "broker", "--type", TYPE, "--action", "publish")
    assert "warning" not in typed(*writing).err
    assert "warning" not in typed(*reading).err
    assert "broker_lacks" not in typed(*reading, "--json").data
    denied = typed("explain", "--as", "broker", "--type", f"{TYPE}@1", "--action", "subscribe")
    assert "hint: broker (" in denied.err


def test_a_home_without_the_keys_that_somebody_manages_is_told_so(typed):
    """Where a key manager has the keys and the home has not joined, what it delivers is null, and the hint says how."""
    typed.grant("--from", "met", "--to", "smith", "--type", TYPE, "--action", "subscribe")
    typed("key", "new", "broker", "--no-passphrase")
    typed.grant("--from", "met", "--to", "broker", "--type", TYPE, "--action", "subscribe")
    text = 'format = 2\nname = "met"\nbroker = "broker"\ndomain = "met"\n[services]\nkey_manager = "https://keys.example"\n'
    (typed.home / "maia.toml").write_text(text)
    ran = typed("explain", "--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe", "--attribute", "speed")
    assert ran.code == 0
    assert "this home holds no key of `speed`: null in every event" in ran.err
    assert "maia keys join" in ran.err


def test_a_version_that_does_not_exist_is_refused(typed):
    """Asking about version 7 of a type that has one version is a slip, and the versions are listed."""
    ran = typed("explain", "--as", "pito", "--type", f"{TYPE}@7", "--action", "publish")
    assert ran.code == 5
    assert f"there is `{NAME}@1`" in ran.err


def test_samples_become_types_and_all_bad_columns_are_told(typed, tmp_path):
    """CSV and JSON lines serve as well as Parquet."""
    sample = tmp_path / "sample.csv"
    sample.write_text("plate,speed,seen\nAE05 XYZ,31,2026-06-01T09:00:00Z\nB2,7.5,\n")
    assert typed("type", "from-schema", str(sample)).out.split() == [
        "plate:string:0", "speed:float:1", "seen:timestamp:2"
    ]  # fmt: skip
    lines = tmp_path / "sample.jsonl"
    lines.write_text(json.dumps({"plate": "x", "at": {"x": 1}, "list": []}) + "\n")
    ran = typed("type", "from-schema", str(lines))
    assert ran.code == 1
    assert "column `list` is empty in the sample" in ran.err
    assert typed("type", "from-schema", str(sample), "pito/Sample").code == 0
    (tmp_path / "broken.jsonl").write_text("[1]\n")
    assert "line 1" in typed("type", "from-schema", str(tmp_path / "broken.jsonl")).err


def test_counted_uids_and_uids_in_front(typed):
    """`NAME:TYPE` counts uids, `UID=NAME:TYPE` gives one."""
    assert typed("type", "define", "pito/Lab", "--attribute", "3=glucose", "--attribute", "when:timestamp").code == 0
    shown = typed("type", "show", "pito/Lab", "--json").data["attributes"]
    assert [(item["name"], item["uid"], item["type"]) for item in shown] == [
        ("glucose", "3", "string"), ("when", "4", "timestamp")
    ]  # fmt: skip
    wrong = typed("type", "define", "pito/Lab2", "--attribute", "x:strng")
    assert "did you mean `string`?" in wrong.err


def test_an_instant_reads_as_one() -> None:
    """Values without a known type are typed by how they are written."""
    assert words.parse_value("2026-06-01T09:00:00Z") == datetime(2026, 6, 1, 9, tzinfo=UTC)
