"""The house rules that no other linter knows, each a pattern over tracked and new files.

Prints every offending line and exits 1 when there is one.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A pattern that may not occur in certain files, and why."""

    why: str
    pattern: re.Pattern[str]
    globs: tuple[str, ...]
    excepted: tuple[str, ...] = ()
    allowed_where_defined: bool = False


RULES = (
    Rule(
        why="a bypass is used outside tests and the module that defines it",
        pattern=re.compile(r"(?<!def )\b(unsafe_\w+)\s*\("),
        allowed_where_defined=True,
        globs=("src/**/*.py", "scripts/*.py", "examples/**/*.py", "benchmarks/*.py"),
        excepted=("src/maia/conformance/", "src/maia/testing/"),  # they make the forgeries that must be refused
    ),
    Rule(
        why="unfinished work",
        pattern=re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|NotImplemented" + r"Error|pass  # " + r"stub"),
        globs=("src/**/*.py", "tests/**/*.py", "scripts/*.py"),
    ),
    Rule(
        why="a test that asserts nothing, or hides that it fails",
        pattern=re.compile(r"assert Tru" + r"e\b|pytest\.skip\(\)|xfai" + r"l"),
        globs=("src/**/*.py", "tests/**/*.py"),
    ),
    Rule(
        why="a log handler or logging set-up inside the library",
        pattern=re.compile(r"logging\.basicConfig|\.addHandler\("),
        globs=("src/**/*.py",),
        excepted=("src/maia/cli/", "src/maia/spark/launch.py"),  # how a command starts, and how it starts Spark
    ),
    Rule(
        why="the library ends the process",
        pattern=re.compile(r"\bsys\.exit\(|\bos\._exit\("),
        globs=("src/**/*.py",),
        excepted=("src/maia/cli/", "src/maia/__main__.py"),
    ),
    Rule(
        why="pickle reads data from outside",
        pattern=re.compile(r"\bpickle\.(loads?\(|Unpickler\b)"),
        globs=("src/**/*.py",),
        # It reads plans that the worker's own broker signed, and of them nothing but values.
        excepted=("src/maia/domain/plan_octets.py",),
    ),
)


def offences() -> list[str]:
    """Find every line that breaks a rule."""
    found = []
    for rule in RULES:
        files = sorted({path for glob in rule.globs for path in ROOT.glob(glob)})
        for path in files:
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(rule.excepted or ("\0",)):
                continue
            text = path.read_text("utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                match = rule.pattern.search(line)
                if match and not (rule.allowed_where_defined and f"def {match[1]}(" in text):
                    found.append(f"{name}:{number}: {rule.why}: {line.strip()[:100]}")
    return found


def main() -> int:
    """Print the offences; 0 when there are none."""
    found = offences()
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
