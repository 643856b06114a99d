"""The `maia` command in this process, with a home: what a user types, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one object that ``--json`` wrote."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The objects that were written one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Command:
    """`maia` with a home of its own, without colours and without the variables of whoever runs the tests.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Command(Path(folder))("key", "new", "smith", "--no-passphrase").code
    0
    """

    def __init__(self, home: Path) -> None:
        """Work in a home, which need not exist yet."""
        self.home = home
        self._environment: Mapping[str, str | None] = {
            "MAIA_HOME": str(home), "NO_COLOR": "1", "FORCE_COLOR": None, "COLUMNS": "200", "MAIA_PASSPHRASE": None,
        }  # fmt: skip

    def __call__(self, *args: str, stdin: str | bytes | None = None) -> Ran:
        """Run a command line, whatever its exit code."""
        from typer.testing import CliRunner  # noqa: PLC0415 - for those who run commands

        from maia.cli import app  # noqa: PLC0415

        result = CliRunner().invoke(app, list(args), input=stdin, env=self._environment)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    def do(self, *args: str) -> dict[str, Any]:
        """Run a command line that must succeed, with ``--json``; return what it said.

        Raises:
            AssertionError: It ended with another code than 0.
        """
        ran = self(*args, "--json")
        if ran.code != 0:
            raise AssertionError(f"`maia {' '.join(args)}` ended with {ran.code}: {ran.out}{ran.err}")
        return ran.data

    def refused(self, *args: str) -> tuple[int, str]:
        """Run a command line that must not succeed, with ``--json``; return its exit code and the error's code.

        Raises:
            AssertionError: It succeeded.
        """
        ran = self(*args, "--json")
        if ran.code == 0:
            raise AssertionError(f"`maia {' '.join(args)}` was not refused: {ran.out}")
        return ran.code, str(ran.data["error"])

    def keys(self, *names: str) -> None:
        """Make unsealed keys."""
        for name in names:
            self.do("key", "new", name, "--no-passphrase")

    def grant(self, *args: str) -> str:
        """Issue a capability and return its id."""
        return str(self.do("grant", *args, "--yes")["id"])
