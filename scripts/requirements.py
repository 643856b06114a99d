"""Say which rows of docs/reference the last test run showed.

Joins the rows of requirements.md with the marked tests recorded by ``pytest --record-marks`` under .build/marks. A
requirement row counts only by a test under tests/acceptance, which goes through a door. A row is

- shown: at least one such test passed and none failed,
- missed: it demands a number that docs/reference/missed.toml says is not met, with the figure,
- failing: a marked test failed,
- not shown: no marked test, or every one of them was skipped; docs/reference/left_out.toml says of which that is meant
  to be so, and why.

With --threats the rows of threats.md, for which any test counts. Exits 1 when a row is failing, when a record names a
row that does not exist, when a row is claimed outside tests/acceptance, or when a row that is missed or left out is
claimed as shown; 2 when there is no record.

With --stated it needs no record: it prints the sentence that README and the page of the house hold, by the marks of
the tests. With --whole the record is of all tests, and every row of that sentence has to be shown by it; a row whose
tests were all skipped is let pass outside CI only.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
RECORDS = ROOT / ".build" / "marks"
MISSED = REFERENCE / "missed.toml"
LEFT_OUT = REFERENCE / "left_out.toml"
DOORS = "tests/acceptance/"
ROW = r"\d+\.\d+"
STATES = ("shown", "missed", "failing", "not shown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a reference page."""

    id: str
    group: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the last run says of one row."""

    row: Row
    state: str
    tests: tuple[str, ...]
    figure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the records hold: row -> test -> outcome, and the claims that do not count, made outside the doors."""

    outcomes: dict[str, dict[str, str]]
    outside: tuple[tuple[str, str], ...] = ()


def read_rows(path: Path, form: str) -> list[Row]:
    """Read the rows whose id has the given form, with the heading they stand under."""
    rows, group = [], ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("## "):
            group = line[3:]
        elif match := re.match(rf"\| ({form}) \| (.*?) \|", line):
            rows.append(Row(id=match[1], group=group, text=match[2]))
    return rows


def read_missed(path: Path) -> dict[str, str]:
    """Read the rows whose number is not met: row id -> figure, wanted and measured."""
    if not path.is_file():
        return {}
    table = tomllib.loads(path.read_text("utf-8"))
    return {row: f"{entry['figure']} instead of {entry['wanted']}" for row, entry in table.items()}


def read_left_out(path: Path) -> dict[str, str]:
    """Read the rows that are not shown on purpose: row id -> reason, with the decision that says more."""
    if not path.is_file():
        return {}
    table = tomllib.loads(path.read_text("utf-8"))
    return {row: f"{entry['reason']} (decision {entry['decision']})" for row, entry in table.items()}


def read_record(marks: tuple[str, ...], *, doors: str = "") -> Record:
    """Read the records; with ``doors`` only tests under that folder count."""
    outcomes: dict[str, dict[str, str]] = {}
    outside = []
    for path in sorted(RECORDS.glob("*.json")):
        for test, entry in json.loads(path.read_text("utf-8"))["tests"].items():
            for row in (row for mark in marks for row in entry.get(mark, ())):
                if test.startswith(doors):
                    outcomes.setdefault(row, {})[test] = entry["outcome"]
                else:
                    outside.append((row, test))
    return Record(outcomes=outcomes, outside=tuple(outside))


def judge(rows: list[Row], outcomes: dict[str, dict[str, str]], missed: dict[str, str]) -> list[Result]:
    """Give every row its state."""
    results = []
    for row in rows:
        tests = outcomes.get(row.id, {})
        seen = set(tests.values())
        if "failed" in seen:
            state = "failing"
        elif row.id in missed:
            state = "missed"
        else:
            state = "shown" if "passed" in seen else "not shown"
        results.append(Result(row=row, state=state, tests=tuple(sorted(tests)), figure=missed.get(row.id, "")))
    return results


def read_claims(folder: Path) -> set[str]:
    """Read which rows the tests of a folder are marked with, without running them."""
    found: set[str] = set()
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                found.update(ast.literal_eval(argument) for argument in node.args)
    return found


def stated(rows: list[Row], claimed: set[str], missed: dict[str, str]) -> str:
    """Say in a sentence how many rows are shown, for README and the page of the house."""
    shown = len(claimed - set(missed))
    return (
        f"{shown} of {len(rows)} requirement rows are shown through a door; {len(missed)} miss the number that they "
        f"demand ({', '.join(sorted(missed))}), and {len(rows) - shown - len(missed)} are not shown."
    )


def unshown(results: list[Result], claimed: set[str], record: Record) -> list[str]:
    """List the rows that are stated as shown and were not in a run of all tests."""
    lost = [result.row.id for result in results if result.row.id in claimed and result.state == "not shown"]
    if not os.environ.get("CI"):
        lost = [row for row in lost if row not in record.outcomes]
    return [f"{row} is stated as shown, and no test showed it in this run" for row in lost]


def print_table(results: list[Result]) -> None:
    """Print every row with its state and the number of its tests."""
    group = None
    for result in results:
        if result.row.group != group:
            group = result.row.group
            print(f"\n{group}")
        count = f"{len(result.tests):4d}" if result.tests else "   -"
        told = f"{result.figure}: " if result.state == "missed" else ""
        print(f"  {result.row.id:<6} {result.state:<9} {count}  {told}{result.row.text[:100]}")


def print_counts(results: list[Result], left_out: dict[str, str]) -> None:
    """Print the number of rows of each group in each state, the one number, what is missed and what is left out."""
    groups: dict[str, dict[str, int]] = {}
    for result in results:
        groups.setdefault(result.row.group, dict.fromkeys(STATES, 0))[result.state] += 1
    total = {state: sum(counts[state] for counts in groups.values()) for state in STATES}
    print(f"\n{'group':<62} " + " ".join(f"{state:>9}" for state in STATES))
    for group, counts in [*groups.items(), ("all", total)]:
        print(f"{group[:62]:<62} " + " ".join(f"{counts[state]:>9}" for state in STATES))
    print(
        f"\n{total['shown']} of {len(results)} rows are shown through a door; {total['missed']} missed, "
        f"{total['failing']} failing, {total['not shown']} not shown"
    )
    for result in results:
        if result.state == "missed":
            print(f"  missed {result.row.id}: {result.figure}")
        elif result.state == "not shown" and result.row.id in left_out:
            print(f"  not shown {result.row.id}: {left_out[result.row.id]}")


def complaints(record: Record, rows: list[Row], missed: dict[str, str], left_out: dict[str, str]) -> list[str]:
    """Say what is wrong with the claims themselves."""
    known = {row.id for row in rows}
    claimed = set(record.outcomes) | {row for row, _ in record.outside}
    found = [f"a test is marked with `{row}`, which is no row" for row in sorted(claimed - known)]
    found += [f"`{MISSED.name}` speaks of `{row}`, which is no row" for row in sorted(set(missed) - known)]
    found += [f"`{test}` claims {row} and goes through no door" for row, test in record.outside]
    found += [f"{row} is missed and marked as shown" for row in sorted(set(missed) & set(record.outcomes))]
    found += [f"`{LEFT_OUT.name}` speaks of `{row}`, which is no row" for row in sorted(set(left_out) - known)]
    found += [f"{row} is left out and marked as shown" for row in sorted(set(left_out) & set(record.outcomes))]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the table (or --json) and tell by the exit code whether a row is failing or wrongly claimed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threats", action="store_true", help="threats and faults in place of requirements")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quiet", action="store_true", help="counts only")
    parser.add_argument("--stated", action="store_true", help="the sentence of README, by the marks of the tests")
    parser.add_argument("--whole", action="store_true", help="demand that all rows of that sentence were shown")
    options = parser.parse_args(arguments)

    if options.stated:
        print(stated(read_rows(REFERENCE / "requirements.md", ROW), read_claims(ROOT / DOORS), read_missed(MISSED)))
        return 0
    if not any(RECORDS.glob("*.json")):
        print("no record of a test run; run `make test` first", file=sys.stderr)
        return 2
    missed: dict[str, str] = {}
    left_out: dict[str, str] = {}
    if options.threats:
        rows = read_rows(REFERENCE / "threats.md", r"[TF]\d+")
        record = read_record(("threat", "fault"))
    else:
        rows = read_rows(REFERENCE / "requirements.md", ROW)
        record = read_record(("requirement",), doors=DOORS)
        missed, left_out = read_missed(MISSED), read_left_out(LEFT_OUT)
    results = judge(rows, record.outcomes, missed)
    wrong = complaints(record, rows, missed, left_out)
    if options.whole:
        wrong += unshown(results, read_claims(ROOT / DOORS), record)

    if options.json:
        listed = [
            {
                "id": r.row.id,
                "group": r.row.group,
                "state": r.state,
                "figure": r.figure,
                "tests": list(r.tests),
                "reason": left_out.get(r.row.id, ""),
            }
            for r in results
        ]
        print(json.dumps({"rows": listed, "wrong": wrong}, indent=1))
    else:
        if not options.quiet:
            print_table(results)
        print_counts(results, left_out)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong or any(result.state == "failing" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
