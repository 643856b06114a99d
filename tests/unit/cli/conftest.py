"""What the tests of the command line use: the program in this process, with a home of its own."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maia.cli import app


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one object on standard output."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert found["code"] == self.code
        return found


class Program:
    """`maia` with a home and without colours."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment: dict[str, str | None] = {
            "MAIA_HOME": str(home), "NO_COLOR": "1", "FORCE_COLOR": None, "COLUMNS": "200", "MAIA_PASSPHRASE": None,
        }  # fmt: skip

    def __call__(self, *args: str, stdin: str | bytes | None = None, **environment: str | None) -> Ran:
        """Run a command line."""
        result = CliRunner().invoke(app, list(args), input=stdin, env={**self.environment, **environment})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    def keys(self, *names: str) -> None:
        """Make unsealed keys."""
        for name in names:
            assert self("key", "new", name, "--no-passphrase").code == 0

    def grant(self, *args: str) -> str:
        """Issue a capability and return its id."""
        ran = self("grant", *args, "--json")
        assert ran.code == 0, ran.err
        return str(ran.data["id"])


@pytest.fixture
def maia(tmp_path: Path) -> Program:
    """Give the program with an empty home."""
    return Program(tmp_path / "home")


TYPE = "pito/uk.gov.pito.Numberplate"


@pytest.fixture(scope="session")
def police_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the home of `police` once."""
    maia = Program(tmp_path_factory.mktemp("police") / "home")
    maia.keys("pito", "met", "smith", "jones", "mb")
    maia.grant("--from", "pito", "--to", "met", "--type", TYPE, "--action", "subscribe", "--delegate", "--irrevocable")
    maia.grant(
        *("--from", "met", "--to", "smith", "--type", TYPE, "--action", "subscribe"),
        *("--attribute", "3265='AE05 XYZ'", "--attribute", "9058", "--irrevocable"),
    )
    return maia.home


@pytest.fixture
def police(maia: Program, police_template: Path) -> Program:
    """Give a home where pito let met subscribe, and met let smith read one plate."""
    shutil.copytree(police_template, maia.home)
    return maia
