"""`maia type` from the outside: what it prints, what it keeps, and with which code it leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from maia.cli import app
from maia.events import parse_event_type

Run = Callable[..., tuple[int, str, str]]
PLATE = "pito/uk.gov.pito.Numberplate"


@pytest.fixture
def maia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in a home with three keys."""
    monkeypatch.setenv("MAIA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            app(args)
        text = capfd.readouterr()
        return int(left.value.code or 0), text.out, text.err

    for name in ("pito", "tm", "evil"):
        assert run("key", "new", name, "--no-passphrase")[0] == 0
    return run


def _json(result: tuple[int, str, str]) -> dict[str, object]:
    found = json.loads(result[1])
    assert found["code"] == result[0]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def defined(maia: Run) -> Run:
    """Start from Numberplate 4799 with two attributes."""
    made = maia(
        "type", "define", f"{PLATE}@4799", "--attribute", "license-plate:string:9525", "--attribute", "location:string"
    )
    assert made[0] == 0, made[2]
    return maia


def test_defined_type_is_shown_and_verified(defined: Run, tmp_path: Path) -> None:
    """What was defined is listed, shown in full, and verifies; --json says the same to machines."""
    assert "uk.gov.pito.Numberplate" in defined("type", "show")[1]
    shown = _json(defined("type", "show", PLATE, "--json"))
    assert [(a["name"], a["uid"]) for a in shown["attributes"]] == [("license-plate", "9525"), ("location", "9526")]  # type: ignore[attr-defined]
    assert "license-plate" in defined("type", "show", PLATE)[1]
    assert defined("type", "show", PLATE, "--spark")[1].strip() == "`license-plate` STRING, `location` STRING"
    assert _json(defined("type", "show", PLATE, "--spark", "--json"))["schema"]
    assert "verified" in defined("type", "verify", f"{PLATE}@4799")[1]
    assert _json(defined("type", "verify", PLATE, "--json"))["verified"] is True
    assert _json(defined("type", "show", "--json"))["types"]
    assert list((tmp_path / "types").glob("*/*.type"))


def test_bare_name_is_refused_where_it_may_mean_two(defined: Run) -> None:
    """The readable name alone is enough where one owner has it; where two have it, asking with it is a usage error."""
    code, shown, _ = defined("type", "show", "uk.gov.pito.Numberplate")
    assert code == 0
    assert "of pito (" in shown
    defined("type", "define", "evil/uk.gov.pito.Numberplate", "--attribute", "a:string")
    code, _, errors = defined("type", "show", "uk.gov.pito.Numberplate")
    assert code == 2
    assert "TYPE_TEXT" in errors
    assert "several owners" in errors
    code, _, errors = defined("type", "show", "uk.gov.pito.Numberplat")
    assert code == 2
    assert "did you mean `uk.gov.pito.Numberplate`?" in errors


@pytest.mark.threat("T35")
def test_lookalike_is_shown_with_a_warning_and_its_key(defined: Run) -> None:
    """Another owner's type of the same or a similar name gets a warning; the fingerprints differ."""
    same = defined("type", "define", "evil/uk.gov.pito.Numberplate", "--attribute", "a:string")
    assert "another owner has a type" in same[2]
    similar = defined("type", "define", "evil/uk.gov.pito.Numberpl\u0430te", "--attribute", "a:string")
    assert "mixes LATIN and CYRILLIC" in similar[2]
    assert "looks like `uk.gov.pito.Numberplate`" in similar[2]
    assert "evil (" in defined("type", "show", "evil/uk.gov.pito.Numberplate")[1]


def test_manager_evolves_within_its_part(defined: Run) -> None:
    """A holder of editAttributeName renames and may not remove; the diff says what each change needs."""
    args = ("--from", "pito", "--to", "tm", "--type", PLATE, "--action", "editAttributeName")
    assert defined("type", "evolve", f"{PLATE}@4799", "--rename", "license-plate=numberplate", "--as", "tm")[0] == 4
    assert defined("grant", *args)[0] == 0
    renamed = defined(
        "type", "evolve", f"{PLATE}@4799", "--rename", "license-plate=numberplate", "--as", "tm", "--number", "8516",
    )  # fmt: skip
    assert renamed[0] == 0, renamed[2]
    assert "rename `license-plate` to `numberplate` (9525)" in renamed[1]
    refused = defined("type", "evolve", f"{PLATE}@4799", "--remove", "location", "--as", "tm")
    assert refused[0] == 4
    assert "may not remove `location`" in refused[2]
    compared = defined("type", "diff", f"{PLATE}@4799", f"{PLATE}@8516")
    assert compared[1].strip().endswith("editAttributeName")
    assert _json(defined("type", "diff", f"{PLATE}@4799", f"{PLATE}@4799", "--json"))["changes"] == []
    assert "nothing changes" in defined("type", "diff", f"{PLATE}@4799", f"{PLATE}@4799")[2]
    assert defined("type", "show", PLATE)[0] == 2  # two versions now, so one has to be named


def test_versions_are_numbered_as_asked(defined: Run) -> None:
    """By counter, hash or UUID; without a change there is no version."""
    add = ("--add", "speed:integer")
    counted = _json(
        defined("type", "evolve", f"{PLATE}@4799", *add, "--number", "counter", "--uids", "sequence", "--json")
    )
    assert counted["version"] == "4800"
    assert counted["changes"][0]["needs"] == "addAttribute"  # type: ignore[index]
    hashed = _json(defined("type", "evolve", f"{PLATE}@4799", *add, "--number", "hash", "--embed", "--json"))
    assert len(str(hashed["version"])) == 64
    drawn = _json(defined("type", "evolve", f"{PLATE}@4799", "--retype", "location:binary", "--json"))
    assert len(str(drawn["version"])) == 36
    assert defined("type", "evolve", f"{PLATE}@4799")[0] == 2
    for wrong in (("--rename", "x"), ("--add", "x"), ("--add", "x:quaternion"), ("--uids", "dice", *add)):
        assert defined("type", "evolve", f"{PLATE}@4799", *wrong)[0] in (1, 2)
    assert defined("type", "diff", f"{PLATE}@4799", f"{PLATE}@{drawn['version']}")[0] == 0
    assert "embedded" in defined("type", "show", f"{PLATE}@{hashed['version']}")[1]


def test_lint_names_the_client_it_would_hurt(defined: Run, tmp_path: Path) -> None:
    """Removing `location` while SO uses it is a warning and exit code 1; without users it is none."""
    assert defined("type", "evolve", f"{PLATE}@4799", "--remove", "location", "--number", "4800")[0] == 0
    clients = tmp_path / "clients.jsonl"
    clients.write_text('{"client": "SO", "attributes": ["location"]}\n\n{"client": "BO", "uids": ["9525"]}\n')
    pair = (f"{PLATE}@4799", f"{PLATE}@4800")
    found = defined("type", "lint", *pair, "--clients", str(clients))
    assert found[0] == 1
    assert "`location` (9526) is used by SO" in found[1]
    assert "translator client" in found[2]
    assert _json(defined("type", "lint", *pair, "--clients", str(clients), "--json"))["findings"][0]["clients"] == [
        "SO"
    ]  # type: ignore[index]
    assert defined("type", "lint", *pair)[0] == 0
    clients.write_text('{"client": "ALL"}\n')
    assert "ALL" in defined("type", "lint", *pair, "--clients", str(clients))[1]
    for bad in ("[]", "{", '{"client": "x", "uids": ["01"]}', '{"client": "x", "attributes": ["nothing"]}'):
        clients.write_text(bad + "\n")
        assert defined("type", "lint", *pair, "--clients", str(clients))[0] == 1


def test_type_comes_from_the_schema_of_a_file(maia: Run, tmp_path: Path) -> None:
    """Parquet, Arrow and Spark's JSON give attributes; with a name they give a signed type."""
    table = pa.table({"plate": ["AE05 XYZ"], "speed": pa.array([30], pa.int32())})
    pq.write_table(table, tmp_path / "s.parquet")
    feather.write_feather(table, str(tmp_path / "s.arrow"))
    (tmp_path / "s.json").write_text(
        '{"fields": [{"name": "plate", "type": "string"}, {"name": "speed", "type": "long"}]}'
    )
    for name in ("s.parquet", "s.arrow", "s.json"):
        assert maia("type", "from-schema", name)[1].splitlines() == ["plate:string:0", "speed:integer:1"]
    assert _json(maia("type", "from-schema", "s.parquet", "--json"))["attributes"]
    made = maia("type", "from-schema", "s.parquet", "pito/x.Sighting", "--release", "direct", "--out", "x.type")
    assert made[0] == 0, made[2]
    read = parse_event_type((tmp_path / "x.type").read_bytes()).definition
    assert [item.name for item in read.attributes] == ["plate", "speed"]
    assert maia("type", "verify", "x.type")[0] == 0
    (tmp_path / "s.csv").write_text("price,paid,count\n12.50,True,1\n7.00,False,2\n")
    code, out, err = maia("type", "from-schema", "s.csv")
    assert (code, out.splitlines()) == (0, ["price:float:0", "paid:boolean:1", "count:integer:2"])
    assert "--attribute 'price:decimal(12,2)'" in err
    assert "paid" not in err
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    assert maia("type", "from-schema", "bad.parquet")[0] == 1
    assert maia("type", "from-schema", "missing.parquet")[0] == 5
    pq.write_table(pa.table({"t": pa.array([0], pa.timestamp("us"))}), tmp_path / "t.parquet")
    assert maia("type", "from-schema", "t.parquet")[0] == 1
    assert maia("type", "from-schema", "t.parquet", "--assume-utc")[1].strip() == "t:timestamp:0"


def test_network_demands_the_install_right(defined: Run) -> None:
    """A manager without install is refused on the network; with it the credentials are embedded by themselves."""
    network = ("--network", "pito/UK Police Network")
    assert defined("grant", "--from", "pito", "--to", "tm", "--type", PLATE, "--action", "manage")[0] == 0
    change = ("type", "evolve", f"{PLATE}@4799", "--add", "speed:integer", "--as", "tm", "--number", "1")
    assert defined(*change, *network)[0] == 4
    assert defined("grant", "--from", "pito", "--to", "tm", "--network", network[1], "--action", "install")[0] == 0
    made = _json(defined(*change, *network, "--json"))
    assert len(made["credentials"]) == 2  # type: ignore[arg-type]
    assert defined("type", "verify", f"{PLATE}@1", *network)[0] == 0
    assert defined("type", "verify", f"{PLATE}@4799", "--network", "evil/UK Police Network")[0] == 4


def test_child_extends_a_type_of_the_home(defined: Run) -> None:
    """The owner extends its own type without a certificate; a stranger needs `extend`."""
    child = ("--extends", f"{PLATE}@4799", "--attribute", "colour:string:1")
    assert defined("type", "define", "pito/x.Child", *child)[0] == 0
    assert "extends" in defined("type", "show", "pito/x.Child")[1]
    assert defined("type", "define", "tm/x.Child", *child)[0] == 4
    granted = defined("grant", "--from", "pito", "--to", "tm", "--type", PLATE, "--action", "extend")
    assert granted[0] == 0, granted[2]
    assert defined("type", "define", "tm/x.Child", *child)[0] == 0


def test_what_is_not_there_is_not_found(maia: Run, tmp_path: Path) -> None:
    """Unknown types and owners have the exit code for it; damaged files fail."""
    assert maia("type", "show")[2].startswith("no types here")
    assert maia("type", "show", PLATE)[0] == 5
    assert maia("type", "verify", "nobody/x.T")[0] == 5
    (tmp_path / "x.type").write_bytes(b"rubbish")
    assert maia("type", "verify", "x.type")[0] == 1
    assert maia("type", "define", "2 of (pito, tm)/x.Board", "--attribute", "a:string")[0] == 2
    assert maia("type", "define", "pito/x.T", "--encryption", "rot13")[0] == 1
    assert maia("type", "define", "pito/x.T", "--as", "evil")[0] == 4


def test_columns_of_a_sample_are_left_out_or_given_a_type(maia: Run, tmp_path: Path) -> None:
    """What the sample does not say is said on the command line; all that is wrong is told at once."""
    file = tmp_path / "sample.csv"
    file.write_text("a,price,empty,a\n1,2.50,,1\n", "utf-8")
    told = maia("type", "from-schema", str(file))[2]
    assert "the column `a` 2 times" in told
    assert "column `empty` is empty in the sample" in told
    assert "--without" in told
    file.write_text("a,price,empty,more\n1,2.50,,\n", "utf-8")
    said = ("--without", "empty", "--attribute", "more:array<string>", "--attribute", "price:decimal(12,2)")
    ran = maia("type", "from-schema", str(file), *said)
    assert ran[:2] == (0, "a:integer:0\nprice:decimal(12,2):1\nmore:array<string>:2\n")
    table = pa.table({"a": [1], "none": pa.nulls(1), "price": [2.5]})
    pq.write_table(table, tmp_path / "sample.parquet")
    ran = maia("type", "from-schema", str(tmp_path / "sample.parquet"), "--without", "none", "--attribute", "a:float")
    assert ran[:2] == (0, "a:float:0\nprice:float:1\n")
    (tmp_path / "array.json").write_text('[{"a": 1}]', "utf-8")
    assert "holds one JSON array" in maia("type", "from-schema", str(tmp_path / "array.json"))[2]
