"""Sixty and more wrong inputs over four doors: a code, an exit status, one line for people, nothing lost, no traceback.

Each case is a slip that a person makes. The world is made once and none of the cases may change it: the last test of
this file compares keys, certificates, types and the log with what they were.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maia
from maia.errors import MaiaError
from maia.testing import Command

TYPE = "clinic.Result"
ATTRIBUTES = ("patient:string", "visits:integer", "price:decimal(10,2)", "tags:array<string>", "seen:timestamp")
FILES = {
    "good.csv": b"patient,visits\nAnn,1\n",
    "notes.txt": b"Ann came once",
    "header.csv": b"pateint,visits\nAnn,1\n",
    "twice.csv": b"patient,patient\nAnn,Ann\n",
    "empty.csv": b"",
    "octets.csv": b"\xff\xfe\x00",
    "tags.csv": b"patient,tags\nAnn,urgent\n",
    "broken.json": b"{\n{\n",
    "odd.json": b'{"nothing": null, "when": "2026-06-01T09:00:00", "mixed": 1}\n{"mixed": {"a": 1}}\n',
    "junk.parquet": b"PAR1",
    "deep.jsonl": b'{"a":' + b"[" * 900 + b"1" + b"]" * 900 + b"}\n",
    "deep-objects.jsonl": b'{"a":' * 900 + b"1" + b"}" * 900 + b"\n",
    "wide.jsonl": ("{" + ",".join(f'"k{number}":1' for number in range(8000)) + "}\n").encode(),
    "thrice.csv": b"a,a,a,b\n1,2,3,\n",
    "array.json": b'[\n{"a": 1},\n{"a": 2}\n]\n',
    "more.csv": b"a\n1,2,3\n",
    "junk.type": b"no definition",
    "junk.maia": b"no welcome",
    "doctor.policy": b"role doctor(\n",
}


@dataclass(frozen=True)
class World:
    """A home in which a lab publishes and a ward reads some attributes, and a folder of files that are wrong."""

    clinic: Command
    folder: Path

    def words(self, text: str) -> list[str]:
        """Split a command line; ``@name`` is a file of the folder."""
        return [str(self.folder / word[1:]) if word.startswith("@") else word for word in _split(text)]

    def state(self) -> dict[str, object]:
        """Read what no mistake may change: keys, certificates, statements, types and the commits of the log."""
        found: dict[str, object] = {"commits": self.clinic.do("log", "show")["commits"]}
        for part in ("keys", "certificates", "statements", "types"):
            for path in sorted((self.clinic.home / part).rglob("*")):
                if path.is_file():
                    found[str(path.relative_to(self.clinic.home))] = path.read_bytes()
        return found


def _split(text: str) -> list[str]:
    return shlex.split(text)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make the home and the files once."""
    folder = tmp_path_factory.mktemp("wrong")
    clinic = Command(folder / "clinic")
    clinic.do("domain", "init", str(clinic.home), "--key")
    clinic.keys("lab", "ward", "desk")
    clinic.do("type", "define", f"domain/{TYPE}@1", *(flag for text in ATTRIBUTES for flag in ("--attribute", text)))
    for who, *right in (
        ("broker", "--action", "publish,subscribe"),
        ("lab", "--action", "publish"),
        ("ward", "--action", "subscribe", "--attribute", "patient", "--attribute", "visits", "--attribute", "tags"),
    ):
        clinic.grant("--from", "domain", "--to", who, "--type", f"domain/{TYPE}", *right)
    for name, octets in FILES.items():
        (folder / name).write_bytes(octets)
    naive = pa.table({"patient": ["Ann"], "seen": pa.array([0], pa.timestamp("us"))})
    pq.write_table(naive, folder / "naive.parquet")
    return World(clinic, folder)


@pytest.fixture(scope="module", autouse=True)
def unchanged(world: World) -> Iterator[None]:
    """Nothing is lost and nothing is added, whatever was tried."""
    before = world.state()
    yield
    assert world.state() == before


PUBLISH, READ = f"--type {TYPE} --as lab", f"subscribe --type {TYPE} --as ward"
GRANT = f"grant --from domain --yes --type domain/{TYPE} --to ward"
COMMANDS: dict[str, tuple[int, str]] = {
    f"publish @missing.csv {PUBLISH}": (5, "NO_SUCH_FILE"),
    f"publish @notes.txt {PUBLISH}": (2, "INPUT_FORMAT"),
    f"publish @header.csv {PUBLISH}": (1, "NO_ATTRIBUTE"),
    f"publish @twice.csv {PUBLISH}": (1, "INPUT_HEADER"),
    f"publish @empty.csv {PUBLISH}": (1, "INPUT_HEADER"),
    f"publish @octets.csv {PUBLISH}": (1, "INPUT_HEADER"),
    "publish @good.csv --type clinic.Reslt --as lab": (5, "TYPE_NOT_FOUND"),
    f"publish @good.csv --type {TYPE}@9 --as lab": (5, "TYPE_NOT_FOUND"),
    f"publish @good.csv --type {TYPE} --as labb": (5, "NO_SUCH_KEY"),
    f"publish @good.csv --type {TYPE} --as desk": (3, "NO_EVIDENCE"),
    "publish @good.csv --as lab": (2, "TYPE_OR_TOPIC"),
    f"publish @good.csv {PUBLISH} --topic clinic": (2, "TYPE_OR_TOPIC"),
    f"publish @good.csv {PUBLISH} --publication ''": (2, "PUBLICATION_NAME"),
    f"publish @good.csv {PUBLISH} --naive-timestamps Mars": (2, "TIME_ZONE"),
    f"publish - {PUBLISH} --format csv": (2, "INPUT_FORMAT"),
    "publsh @good.csv": (2, "USAGE"),
    f"{READ} --where 'vists = 1'": (1, "FILTER_UNKNOWN_ATTRIBUTE"),
    f"{READ} --where \"visits = 'many'\"": (1, "FILTER_LITERAL_TYPE"),
    f"{READ} --where 'visits ='": (1, "FILTER_SYNTAX"),
    f"{READ} --where 'price = 1.0'": (3, "FILTER_NOT_AUTHORISED"),
    f"{READ} --where \"tags = 'urgent'\"": (1, "FILTER_BINARY_ATTRIBUTE"),
    f"{READ} --attributes vists": (2, "NO_SUCH_ATTRIBUTE"),
    f"{READ} --format xml": (2, "OUTPUT_FORMAT"),
    f"{READ} --format parquet": (2, "OUTPUT_PLACE"),
    f"{READ} --format json --out @good.csv": (2, "OUTPUT_EXISTS"),
    f"{READ} --limit 0": (2, "USAGE"),
    f"{READ} --starting never": (2, "OUTPUT_FORMAT"),
    f"subscribe --type {TYPE} --as desk": (3, "NO_EVIDENCE"),
    f"subscribe --type {TYPE} --as nobody": (5, "NO_SUCH_KEY"),
    f"subscribe --typ {TYPE}": (2, "USAGE"),
    f"{GRANT} --action subscribe --attribute vists": (2, "NO_SUCH_ATTRIBUTE"),
    f"{GRANT} --action subscribe --attribute visits=many": (2, "ATTRIBUTE_VALUE"),
    f"{GRANT} --action subscribe --attribute tags=urgent": (2, "ATTRIBUTE_UNCOMPARED"),
    f"{GRANT} --action subscribe --until 2001-01-01": (2, "ENDS_IN_PAST"),
    f"{GRANT} --action subscribe --until soon": (2, "INSTANT_TEXT"),
    f"{GRANT} --action read": (2, "UNKNOWN_ACTION"),
    f"grant --from lab --yes --type domain/{TYPE} --to ward --action subscribe": (3, "ISSUER_LACKS_RIGHT"),
    f"grant --from domain --yes --type domain/{TYPE} --to nobody --action subscribe": (5, "NO_SUCH_KEY"),
    "type define domain/x.Y --attribute a:strng": (2, "ATTRIBUTE_TYPE"),
    "type define domain/x.Y --attribute 'a:decimal(2,9)'": (2, "ATTRIBUTE_TYPE"),
    "type define domain/x.Y --attribute 'a:array<strng>'": (2, "ATTRIBUTE_TYPE"),
    "type define domain/x.Y --attribute a:string --attribute a:date": (1, "ATTRIBUTE_NAME_TWICE"),
    "type define nobody/x.Y --attribute a:string": (5, "NO_SUCH_KEY"),
    f"type define domain/{TYPE}@1 --attribute a:string": (1, "VERSION_TAKEN"),
    f"type evolve domain/{TYPE}@1": (2, "NOTHING_CHANGES"),
    f"type evolve domain/{TYPE}@1 --remove vists": (1, "NO_ATTRIBUTE"),
    "type from-schema @missing.parquet": (5, "NO_SUCH_FILE"),
    "type from-schema @junk.parquet": (1, "SCHEMA_FORM"),
    "type from-schema @broken.json": (1, "SCHEMA_FORM"),
    "type from-schema @odd.json": (1, "SCHEMA_TYPE"),
    "type from-schema @deep.jsonl": (1, "SCHEMA_TYPE"),
    "type from-schema @deep-objects.jsonl": (1, "SCHEMA_TYPE"),
    "type from-schema @wide.jsonl": (1, "TOO_MANY_ATTRIBUTES"),
    "type from-schema @thrice.csv": (1, "SCHEMA_FORM"),
    "type from-schema @array.json": (1, "SCHEMA_FORM"),
    "type from-schema @good.csv --without vists": (2, "NO_SUCH_COLUMN"),
    "type from-schema @good.csv --attribute visits": (2, "ATTRIBUTE_TYPE"),
    "type from-schema @more.csv": (1, "SCHEMA_FORM"),
    "type verify @junk.type": (1, "SEXP_NOT_CANONICAL"),
    "type show x.Nothing": (2, "TYPE_TEXT"),
    "filter check 'visits >'": (1, "FILTER_SYNTAX"),
    "key new lab --no-passphrase": (2, "KEY_EXISTS"),
    "key new ../lab --no-passphrase": (2, "KEY_NAME"),
    "revoke deadbeef": (5, "NO_SUCH_CERTIFICATE"),
    f"explain --as nobody --type {TYPE} --action subscribe": (5, "NO_SUCH_KEY"),
    "role activate doctor --as ward": (3, "NOT_A_MEMBER"),
    "audit --kind refused": (2, "AUDIT_KIND"),
    "status --home @nowhere": (5, "NO_HOME"),
    "keys join Nothing": (5, "TYPE_NOT_FOUND"),
}


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_answers_a_slip_in_one_line(world: World, line: str) -> None:
    """Its exit status and its code are those of the table, and one line on standard error says what is wrong."""
    status, code = COMMANDS[line]
    ran = world.clinic(*world.words(line))
    assert ran.code == status, ran.err
    [said] = [text for text in ran.err.splitlines() if text.startswith("error: ")]
    assert said.startswith(f"error: [{code}] ")
    assert "Traceback" not in ran.err + ran.out


def frame(**columns: object) -> pd.DataFrame:
    """Make rows to publish."""
    return pd.DataFrame({name: [value] for name, value in columns.items()})


Act = Callable[[Any], object]
PYTHON: dict[str, tuple[str, Act]] = {
    "a home that is none": ("NO_HOME", lambda _: maia.open("/nowhere").client("lab")),
    "a client that is none": ("NO_SUCH_KEY", lambda domain: domain.client("labb")),
    "a type that is none": ("TYPE_NOT_FOUND", lambda domain: domain.find_type("clinic.Reslt")),
    "rows that are none": ("NO_ROWS", lambda domain: domain.client("lab").publish([1], TYPE)),
    "an unknown column": ("ROWS_REFUSED", lambda domain: domain.client("lab").publish(frame(vists=1), TYPE)),
    "a text for a number": ("ROWS_REFUSED", lambda domain: domain.client("lab").publish(frame(visits="one"), TYPE)),
    "a text for an array": ("ROWS_REFUSED", lambda domain: domain.client("lab").publish(frame(tags="a"), TYPE)),
    "a time without a zone": (
        "TIME_WITHOUT_ZONE",
        lambda domain: domain.client("lab").publish(frame(seen=pd.Timestamp("2026-06-01 09:00")), TYPE),
    ),
    "a zone that is none": (
        "TIME_ZONE",
        lambda domain: domain.client("lab").publish(frame(visits=1), TYPE, naive_timestamps="Mars"),
    ),
    "a right that is missing": ("NO_EVIDENCE", lambda domain: domain.client("desk").read(TYPE)),
    "an attribute that is none": (
        "NO_SUCH_ATTRIBUTE",
        lambda domain: domain.client("ward").read(TYPE, attributes="vists"),
    ),
    "a closed attribute in a filter": (
        "FILTER_NOT_AUTHORISED",
        lambda domain: domain.client("ward").read(TYPE, where="price = 1.0"),
    ),
    "an array in a filter": (
        "FILTER_BINARY_ATTRIBUTE",
        lambda domain: domain.client("ward").read(TYPE, where="tags = 'urgent'"),
    ),
    "a grant to nobody": ("NO_SUCH_KEY", lambda domain: domain.grant("nobody", TYPE)),
    "a grant of nothing": ("NO_SUCH_ATTRIBUTE", lambda domain: domain.grant("ward", TYPE, attributes="vists")),
    "a frame whose columns do not fit": (
        "SCHEMA_TYPE",
        lambda domain: domain.type_from_schema(pd.DataFrame({"a": [1 + 2j], "b": [pd.Timedelta(1)]})),
    ),
}


@pytest.mark.parametrize("slip", PYTHON)
def test_python_raises_one_line_with_a_code(spark: Any, world: World, slip: str) -> None:
    """The error is one of Maia's, says what is wrong in one line, and has no cause that a user must read."""
    code, act = PYTHON[slip]
    with pytest.raises(MaiaError) as raised:
        act(maia.open(world.clinic.home))
    assert raised.value.code == code
    assert "\n" not in str(raised.value)


SQL = {
    "an unknown type": ("TYPE_NOT_FOUND", "type 'clinic.Reslt', as 'ward'"),
    "no client": ("MISSING_OPTION", f"type '{TYPE}'"),
    "an option that is none": ("UNKNOWN_OPTION", f"type '{TYPE}', as 'ward', wher 'x'"),
    "a closed attribute": (
        "FILTER_NOT_AUTHORISED",
        f"type '{TYPE}', as 'ward', where 'price = 1.0'",
    ),
    "a right that is missing": ("NO_EVIDENCE", f"type '{TYPE}', as 'desk'"),
    "a right to publish alone": ("NOT_PERMITTED", f"type '{TYPE}', as 'lab'"),
}


@pytest.mark.parametrize("slip", SQL)
def test_sql_answers_with_the_code(spark: Any, world: World, slip: str) -> None:
    """A table over Maia fails with Maia's code in the first line, and no Python traceback."""
    code, options = SQL[slip]
    table = f"wrong_{list(SQL).index(slip)}"
    create = f"CREATE TEMPORARY VIEW {table} USING maia OPTIONS (home '{world.clinic.home}', {options})"

    def ask() -> None:
        spark.sql(create)
        spark.table(table).collect()

    with pytest.raises(Exception, match=code) as raised:
        ask()
    answered(raised.value, code)


SPARK: dict[str, tuple[str, Callable[[Any, dict[str, str]], object]]] = {
    "an option's value": ("OPTION_VALUE", lambda spark, home: load(spark, home, withEventId="maybe")),
    "a place to start": ("OPTION_VALUE", lambda spark, home: load(spark, home, startingOffsets="never")),
    "a filter that is none": ("FILTER_SYNTAX", lambda spark, home: load(spark, home, where="visits =")),
    "another type of column": (
        "SCHEMA_TYPE",
        lambda spark, home: spark.read.format("maia").options(**home).schema("visits string").load().collect(),
    ),
    "an unknown column": ("NO_ATTRIBUTE", lambda spark, home: save(spark, home, "SELECT 1 vists")),
    "a column of another kind": ("VALUE_TYPE", lambda spark, home: save(spark, home, "SELECT 'one' visits")),
    "a time without a zone": (
        "naiveTimestamps",
        lambda spark, home: save(spark, home, "SELECT timestamp_ntz'2026-06-01 09:00:00' seen"),
    ),
    "a decimal with a digit too many": (
        "ROWS_REFUSED",
        lambda spark, home: save(spark, home, "SELECT CAST(1.255 AS decimal(10,3)) price"),
    ),
}


def load(spark: Any, home: dict[str, str], **options: str) -> object:
    """Read as the ward."""
    return spark.read.format("maia").options(**home, **options).load().collect()


def save(spark: Any, home: dict[str, str], rows: str) -> None:
    """Write as the lab."""
    spark.sql(rows).write.format("maia").mode("append").options(**{**home, "as": "lab"}).save()


def answered(error: BaseException, code: str) -> None:
    """Check that an error of Spark's says Maia's code at once, and nothing of Python's stack."""
    text = str(error)
    assert code in text.splitlines()[0] + (text.splitlines()[1:2] or [""])[0], text
    assert "Traceback" not in text


@pytest.mark.parametrize("slip", SPARK)
def test_spark_answers_with_the_code(spark: Any, world: World, slip: str) -> None:
    """`format("maia")` fails with Maia's code in the first line, and no Python traceback."""
    code, act = SPARK[slip]
    home = {"home": str(world.clinic.home), "type": TYPE, "as": "ward"}
    with pytest.raises(Exception, match=code) as raised:
        act(spark, home)
    answered(raised.value, code)


def test_there_are_sixty_of_them() -> None:
    """The table is as long as it was promised to be, over all four doors."""
    assert all((COMMANDS, PYTHON, SQL, SPARK))
    assert len(COMMANDS) + len(PYTHON) + len(SQL) + len(SPARK) >= 60
