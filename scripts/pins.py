"""Write requirements/dev.txt: exact versions of every run-time and development package, no hashes, no addresses.

Resolves pyproject.toml (with its extras) and requirements/dev.in in a fresh environment with the newest versions
allowed, so that nothing left over from earlier work is pinned.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Exact versions of everything Maia runs on and is built with. Regenerate with `make pins`.\n"


def wanted() -> list[str]:
    """List what to resolve: the project's own dependencies, its extras, and the development tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {name: group for name, group in project.get("optional-dependencies", {}).items() if name != "java"}
    extras = [name for group in groups.values() for name in group]  # the Makefile adds Java where none is found
    tools = [line for line in (ROOT / "requirements" / "dev.in").read_text("utf-8").splitlines() if line[:1].isalnum()]
    return [*project["dependencies"], *extras, *tools]


def main() -> int:
    """Resolve in a throw-away environment and write the pins."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted()], check=True)
        frozen = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    pins = sorted((line for line in frozen.splitlines() if "==" in line), key=str.casefold)
    (ROOT / "requirements" / "dev.txt").write_text(HEADER + "\n".join(pins) + "\n", "utf-8")
    print(f"{len(pins)} packages pinned")
    return 0


if __name__ == "__main__":
    sys.exit(main())
