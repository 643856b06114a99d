"""Say which rows of docs/reference the last test run showed.

Joins the rows of requirements.md (or, with --threats, threats.md) with the marked tests recorded by
``pytest --record-marks`` under .build/marks. A row is

- shown: at least one marked test passed and none failed,
- failing: a marked test failed,
- not shown: no marked test, or every one of them was skipped.

Exits 1 when a row is failing or a record names a row that does not exist, 2 when there is no record.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
RECORDS = ROOT / ".build" / "marks"
STATES = ("shown", "failing", "not shown")


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


def read_rows(path: Path, form: str) -> list[Row]:
    """Read the rows whose id has the given form, with the heading they stand under."""
    rows, group = [], ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("## "):
            group = line[3:]
        elif match := re.match(rf"\| ({form}) \| (.*?) \|", line):
            rows.append(Row(id=match[1], group=group, text=match[2]))
    return rows


def read_outcomes(marks: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Read the records: row id -> test -> outcome."""
    outcomes: dict[str, dict[str, str]] = {}
    for path in sorted(RECORDS.glob("*.json")):
        for test, entry in json.loads(path.read_text("utf-8"))["tests"].items():
            for mark in marks:
                for row in entry.get(mark, ()):
                    outcomes.setdefault(row, {})[test] = entry["outcome"]
    return outcomes


def judge(rows: list[Row], outcomes: dict[str, dict[str, str]]) -> list[Result]:
    """Give every row its state."""
    results = []
    for row in rows:
        tests = outcomes.get(row.id, {})
        seen = set(tests.values())
        state = "failing" if "failed" in seen else "shown" if "passed" in seen else "not shown"
        results.append(Result(row=row, state=state, tests=tuple(sorted(tests))))
    return results


def print_table(results: list[Result]) -> None:
    """Print every row with its state and the number of its tests."""
    group = None
    for result in results:
        if result.row.group != group:
            group = result.row.group
            print(f"\n{group}")
        count = f"{len(result.tests):4d}" if result.tests else "   -"
        print(f"  {result.row.id:<6} {result.state:<9} {count}  {result.row.text[:100]}")


def print_counts(results: list[Result]) -> None:
    """Print how many rows of each group are shown, failing and not shown."""
    groups: dict[str, dict[str, int]] = {}
    for result in results:
        groups.setdefault(result.row.group, dict.fromkeys(STATES, 0))[result.state] += 1
    total = {state: sum(counts[state] for counts in groups.values()) for state in STATES}
    print(f"\n{'group':<62} {'shown':>7} {'failing':>8} {'not shown':>10}")
    for group, counts in [*groups.items(), ("all", total)]:
        print(f"{group[:62]:<62} {counts['shown']:>7} {counts['failing']:>8} {counts['not shown']:>10}")


def main(arguments: list[str] | None = None) -> int:
    """Print the table (or --json) and tell by the exit code whether a row is failing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threats", action="store_true", help="threats and faults in place of requirements")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quiet", action="store_true", help="counts only")
    options = parser.parse_args(arguments)

    if not any(RECORDS.glob("*.json")):
        print("no record of a test run; run `make test` first", file=sys.stderr)
        return 2
    if options.threats:
        rows = read_rows(REFERENCE / "threats.md", r"[TF]\d+")
        outcomes = read_outcomes(("threat", "fault"))
    else:
        rows = read_rows(REFERENCE / "requirements.md", r"\d+\.\d+")
        outcomes = read_outcomes(("requirement",))
    results = judge(rows, outcomes)
    unknown = sorted(set(outcomes) - {row.id for row in rows})

    if options.json:
        listed = [{"id": r.row.id, "group": r.row.group, "state": r.state, "tests": list(r.tests)} for r in results]
        print(json.dumps({"rows": listed, "unknown": unknown}, indent=1))
    else:
        if not options.quiet:
            print_table(results)
        print_counts(results)
    for row in unknown:
        print(f"a test is marked with `{row}`, which is no row", file=sys.stderr)
    return 1 if unknown or any(result.state == "failing" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
