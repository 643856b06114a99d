"""Keep what the README says of the program true: its help text, and how many requirement rows are shown.

The README holds what `maia --help` prints between ``<!-- help -->`` and ``<!-- /help -->``, and the sentence of
``scripts/requirements.py --stated`` between ``<!-- rows -->`` and ``<!-- /rows -->``; this script fills them in.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def help_text() -> str:
    """Run `maia --help` at a fixed width without colour."""
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "TERMINAL_WIDTH": "100"}
    environment = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "CI", "GITHUB_ACTIONS"}} | plain
    program = "import sys; sys.argv[0] = 'maia'; from maia.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True, env=environment, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"`maia --help` fails:\n{run.stderr}")
    return "\n".join(line.rstrip() for line in run.stdout.strip().splitlines())


def rows_text() -> str:
    """Say how many requirement rows are shown, by the marks of the tests."""
    command = [sys.executable, str(ROOT / "scripts" / "requirements.py"), "--stated"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def filled(readme: str, name: str, text: str) -> str:
    """Put a text between its markers.

    Raises:
        ValueError: The README has no such markers.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    new, count = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}{text}\n{end}", readme, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"the README has no place for `{name}`")
    return new


def main(arguments: list[str] | None = None) -> int:
    """Write the README, or with --check say whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the README is out of date")
    options = parser.parse_args(arguments)
    old = README.read_text("utf-8")
    new = filled(old, "rows", textwrap.fill(rows_text(), 120))
    new = filled(new, "help", f"```text\n$ maia --help\n{help_text()}\n```")
    if options.check:
        return 0 if new == old else 1
    if new != old:
        README.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
