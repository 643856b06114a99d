"""`maia publish` before Spark starts: what is wrong with the input, the type or the right is said at once."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from clinic import TYPE, build, publish_here

from maia.cli.publish.publication import Total
from maia.cli.read import lines as stdin_lines
from maia.cli.read.lines import stretches
from maia.domain import Published
from maia.errors import ChainError, MalformedError, UnavailableError
from maia.spark import unwrap
from maia.spark.input_files import breaks_lines

HEADER = "patient,ward,test,value,taken\n"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may start Spark."""

    def start(**_: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("maia.spark.launch.start_spark", start)


CASES: dict[str, tuple[str, tuple[str, ...], int, str]] = {
    "a client without the right": (HEADER, ("--as", "doctor"), 3, "NOT_PERMITTED"),
    "a client without any right": (HEADER, ("--as", "visitor"), 3, "NO_EVIDENCE"),
    "a client nobody knows": (HEADER, ("--as", "nobody"), 5, "NO_SUCH_KEY"),
    "a type nobody knows": (HEADER, ("--as", "lab", "--type", "clinic.Other"), 5, "TYPE_NOT_FOUND"),
    "a version nobody knows": (HEADER, ("--as", "lab", "--version", "9"), 5, "TYPE_NOT_FOUND"),
    "the type of another owner": (HEADER, ("--as", "lab", "--type", f"lab/{TYPE}@1"), 5, "TYPE_NOT_FOUND"),
    "a column that is no attribute": ("pateint,ward\n", ("--as", "lab"), 1, "NO_ATTRIBUTE"),
    "a column twice": ("ward,ward\n", ("--as", "lab"), 1, "INPUT_HEADER"),
    "no header": ("", ("--as", "lab"), 1, "INPUT_HEADER"),
    "an unknown format": (HEADER, ("--as", "lab", "--format", "xml"), 2, "INPUT_FORMAT"),
    "a publication of two lines": (HEADER, ("--as", "lab", "--publication", "a\nb"), 2, "PUBLICATION_NAME"),
}


@pytest.mark.parametrize("text, flags, code, error", CASES.values(), ids=CASES)
def test_publish_refuses_before_spark_starts(
    maia: Any, tmp_path: Path, text: str, flags: tuple[str, ...], code: int, error: str
) -> None:
    """Each with its exit code and its name."""
    build(maia)
    (tmp_path / "in.csv").write_text(text)
    kind = () if "--type" in flags else ("--type", TYPE)
    ran = maia("publish", str(tmp_path / "in.csv"), *kind, *flags, "--json")
    assert (ran.code, ran.data["error"]) == (code, error), ran.err


def test_a_misspelt_column_is_told_the_nearest_attribute(maia: Any, tmp_path: Path) -> None:
    """The message helps."""
    build(maia)
    (tmp_path / "in.csv").write_text("pateint\nAda\n")
    assert "did you mean `patient`?" in maia("publish", str(tmp_path / "in.csv"), "--type", TYPE, "--as", "lab").err


def test_a_missing_file_and_an_unclear_one_are_refused(maia: Any, tmp_path: Path) -> None:
    """Neither is guessed."""
    build(maia)
    assert maia("publish", str(tmp_path / "none.csv"), "--type", TYPE, "--as", "lab").code == 5
    (tmp_path / "in.dat").write_text(HEADER)
    assert maia("publish", str(tmp_path / "in.dat"), "--type", TYPE, "--as", "lab").code == 2
    assert maia("publish", "-", "--type", TYPE, "--as", "lab", "--format", "csv", stdin="").code == 2


def test_a_denial_shows_how_to_learn_more(maia: Any, tmp_path: Path) -> None:
    """The next command is spelt out, with the key's name."""
    build(maia)
    (tmp_path / "in.csv").write_text(HEADER)
    ran = maia("publish", str(tmp_path / "in.csv"), "--type", TYPE, "--as", "doctor")
    assert f"maia explain --as doctor --type owner/{TYPE}@1 --action publish" in ran.err
    assert "ask owner, who owns the type, for the missing right" in ran.err
    assert "`owner`" in ran.err


def test_a_publication_that_was_published_counts_once(maia: Any, tmp_path: Path) -> None:
    """Published again under its name it is known, without a look at the rows."""
    home = build(maia)
    publish_here(home, "monday", ["Ada", "Ben"])
    (tmp_path / "in.csv").write_text(HEADER)
    ran = maia("publish", str(tmp_path / "in.csv"), "--type", TYPE, "--as", "lab", "--publication", "monday", "--json")
    assert ran.code == 0
    assert (ran.data["events"], ran.data["repeated"]) == (2, True)


def test_the_audit_counts_a_repeated_publication_once(maia: Any) -> None:
    """A writer that did not hear of its commit writes all of it again: the log has it once, and so has the audit."""
    home = build(maia)
    for _ in range(2):
        publish_here(home, "monday", ["Ada", "Ben"])
    rows = [(row["kind"], row["reason"], row["events"]) for row in maia("audit", "--json").data["rows"]]
    assert rows.count(("publish", "OK", 2)) == 1
    assert rows.count(("notice", "REPEATED", 2)) == 1
    assert sorted(count for kind, _, count in rows if kind == "result") == [0, 2]


def test_empty_standard_input_publishes_nothing(maia: Any) -> None:
    """No line, no event, no Spark."""
    build(maia)
    ran = maia("publish", "-", "--type", TYPE, "--as", "lab", "--json", stdin="\n\n")
    assert (ran.code, ran.data["events"], ran.data["commits"]) == (0, 0, 0)


def test_an_interrupted_publication_says_what_stands(maia: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """Nothing when it was not committed; the commit when it was."""

    def press(**_: object) -> None:
        raise KeyboardInterrupt

    home = build(maia)
    monkeypatch.setattr("maia.spark.launch.start_spark", press)
    (tmp_path / "in.csv").write_text(HEADER)
    flags = ("publish", str(tmp_path / "in.csv"), "--type", TYPE, "--as", "lab")
    ran = maia(*flags)
    assert (ran.code, ran.out) == (130, "")
    assert "interrupted: nothing is published" in ran.err
    found = maia(*flags, "--json").data
    assert (found["interrupted"], found["events"], found["commit"]) == (True, 0, None)

    def press_late(**_: object) -> None:
        publish_here(home, "monday", ["Ada"])
        raise KeyboardInterrupt

    monkeypatch.setattr("maia.spark.launch.start_spark", press_late)
    ran = maia(*flags, "--publication", "monday")
    assert (ran.code, "interrupted; this stands: publication monday, 1 commit" in ran.err) == (130, True)


OUTCOMES: dict[str, tuple[dict[str, Any], int]] = {
    "something published": ({"events": 1, "refused": {("ROW_MALFORMED", ""): 5}}, 0),
    "nothing came": ({}, 0),
    "all rows malformed": ({"refused": {("ROW_MALFORMED", ""): 5}}, 1),
    "all rows refused": ({"refused": {("CONSTRAINT_VIOLATED", "ward"): 5}}, 3),
    "refused and malformed": ({"refused": {("CONSTRAINT_VIOLATED", "ward"): 5, ("ROW_MALFORMED", ""): 1}}, 3),
}


@pytest.mark.parametrize("facts, code", OUTCOMES.values(), ids=OUTCOMES)
def test_exit_code_of_an_outcome(facts: dict[str, Any], code: int) -> None:
    """A publication of which nothing went out has failed."""
    none = Published(publication="p", commit=None, events=0)
    made = Total(none)
    made.add(replace(none, events=facts.get("events", 0), refused=facts.get("refused", {})))
    assert made.exit_code() == code


# -- standard input


class Fake:
    """Standard input without a descriptor."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)

    def fileno(self) -> int:
        """Have none."""
        raise io.UnsupportedOperation


@given(lines=st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b" ")), max_size=40))
def test_stretches_hold_every_line_once_and_in_order(lines: list[bytes]) -> None:
    """Whatever comes, nothing but empty lines is lost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", Fake(b"\n".join(lines)))
        patch.setattr(stdin_lines, "MAX_LINES", 3)
        patch.setattr(stdin_lines, "_READ", 7)
        found = list(stretches(by_time=False))
    assert [line for stretch in found for line in stretch] == [line for line in lines if line.strip()]
    assert all(len(stretch) <= 3 for stretch in found[:-1])


def test_slow_input_is_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that came is given out although no more follow; the end comes later."""
    reading, writing = os.pipe()
    monkeypatch.setattr(stdin_lines, "_PATIENCE", 0.01)
    with os.fdopen(reading) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        os.write(writing, b"one\ntw")
        found = stretches(by_time=True)
        assert next(found) == [b"one"]
        os.write(writing, b"o\n")
        os.close(writing)
        assert list(found) == [[b"two"]]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory has a bound."""
    monkeypatch.setattr(stdin_lines, "MAX_OCTETS", 100)
    monkeypatch.setattr(stdin_lines, "_READ", 10)
    monkeypatch.setattr(sys, "stdin", Fake(b"x" * 1000))
    with pytest.raises(MalformedError, match="INPUT_LINE"):
        list(stretches(by_time=False))


# -- errors from inside Spark


def test_errors_of_maia_come_out_of_spark_as_themselves() -> None:
    """Class, code and message are found in the traceback that Spark passes on."""
    text = "[PYTHON_DATA_SOURCE_ERROR] x\nTraceback …:\nmaia.errors.ChainError: [NO_X] no `x`\n SQLSTATE: 38000"
    found = unwrap(text)
    assert (type(found), found.code, found.message) == (ChainError, "NO_X", "no `x`")


def test_errors_of_spark_are_named_without_their_details() -> None:
    """The condition is kept; values that stand behind it are not."""
    found = unwrap("[CAST_INVALID_INPUT] The value 'Ada' cannot be cast")
    assert type(found) is UnavailableError
    assert found.code == "SPARK_FAILED"
    assert "CAST_INVALID_INPUT" in found.message
    assert "Ada" not in found.message
    java = "An error occurred while calling o80.load.\n: org.apache.spark.SparkException: Job of Ada aborted\n\tat x"
    for text, said in (
        (java, "SparkException"),
        (f"{java}\nCaused by: org.apache.spark.SparkError: [DATA_SOURCE_NOT_FOUND] Ada", "DATA_SOURCE_NOT_FOUND"),
    ):
        assert unwrap(text).message.startswith(f"Spark failed: {said};")
        assert "Ada" not in unwrap(text).message


LINE_BREAKS = {
    "no quotes": (b"a,b\n1,2\n", False),
    "quotes that close on their line": (b'a,b\n"1, or 2","say ""x"""\n', False),
    "a value over two lines": (b'a,b\n"1\n2",3\n', True),
    "a value over two lines of an old system": (b'a,b\r"1\r2",3\r', True),
    "a quote that never closes": (b'a,b\n1,2\n"3', False),
    "a value longer than a chunk": (b'a\n"' + b"x" * 3_000_000 + b'\ny"\n', True),
}


@pytest.mark.parametrize("data, breaks", LINE_BREAKS.values(), ids=LINE_BREAKS)
def test_values_over_several_lines_are_seen_before_spark_reads(tmp_path: Path, data: bytes, breaks: bool) -> None:
    """Only a file that needs it is read as a whole."""
    (tmp_path / "in.csv").write_bytes(data)
    assert breaks_lines(tmp_path / "in.csv") is breaks
