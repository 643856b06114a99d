"""Keep the README's help text equal to what `maia --help` prints.

The README holds the text between ``<!-- help -->`` and ``<!-- /help -->``; this script fills it in.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- help -->\n).*?(<!-- /help -->)", re.DOTALL)


def help_text() -> str | None:
    """Run `maia --help` at a fixed width without colour; nothing while there is no command line."""
    if not (ROOT / "src" / "maia" / "cli" / "__init__.py").is_file():
        return None
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "TERMINAL_WIDTH": "100"}
    environment = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "CI", "GITHUB_ACTIONS"}} | plain
    program = "import sys; sys.argv[0] = 'maia'; from maia.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True, env=environment, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"`maia --help` fails:\n{run.stderr}")
    return "\n".join(line.rstrip() for line in run.stdout.strip().splitlines())


def filled(readme: str, text: str) -> str:
    """Put the help text between the markers."""
    return BLOCK.sub(lambda match: f"{match[1]}```text\n$ maia --help\n{text}\n```\n{match[2]}", readme)


def main(arguments: list[str] | None = None) -> int:
    """Write the README, or with --check say whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the README is out of date")
    options = parser.parse_args(arguments)
    text = help_text()
    if text is None:
        return 0
    old = README.read_text("utf-8")
    new = filled(old, text)
    if options.check:
        return 0 if new == old and BLOCK.search(old) else 1
    if new != old:
        README.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
