"""What every test may use: fixtures, hypothesis profiles, and the record of marked tests.

Fixtures:
    repository: the root of the repository.
    shared: the folder of reference documents beside the repository; skips with a reason where it is absent.
    script: loads one of the programs of scripts/.
    benchmark: loads one of the programs of benchmarks/, with what stands beside it.
    require_tool: finds a program, skips with a reason where it is missing, and fails in CI, where none may be missing.
    require_package: does so for a package.
    s3: a local emulator of S3, with faults that a test asks for; see s3.py.
    kafka: a real Kafka node that the tests start; see kafka.py.
    postgres: the address of a fresh database of a real PostgreSQL that the tests start; see postgres.py.
    database_url: the address of a fresh database, SQLite and PostgreSQL in turn.

Profiles: ``dev`` (default), ``ci`` (when ``CI`` is set: same examples every time), ``long``; chosen by
``HYPOTHESIS_PROFILE``.

Marks: ``requirement``, ``threat`` and ``fault`` name rows of docs/reference. A name that is no row fails its test.
``--record-marks FILE`` writes every marked test with its outcome, for ``make requirements``; it works under xdist
because the marks travel as user properties of the reports. ``--one-in N`` takes a share of the long tests (sample.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kafka import kafka, kafka_node
from postgres import database_url, postgres, postgres_server
from s3 import s3, s3_server
from sample import drawn, left_to_chance

__all__ = ["database_url", "kafka", "kafka_node", "postgres", "postgres_server", "s3", "s3_server"]

REPOSITORY = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
ROW_FILES = {
    "requirement": REPOSITORY / "docs" / "reference" / "requirements.md",
    "threat": REPOSITORY / "docs" / "reference" / "threats.md",
    "fault": REPOSITORY / "docs" / "reference" / "threats.md",
}


def verbs_of_this_checkout() -> None:
    """Let `maia` find the verbs that pyproject.toml declares, also where the checkout was installed before it did."""
    found = metadata.entry_points

    def entry_points(**wanted: str) -> metadata.EntryPoints:
        points = found(**wanted)
        if wanted != {"group": "maia.verbs"} or points:
            return points
        declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
        return metadata.EntryPoints(
            metadata.EntryPoint(name, value, "maia.verbs") for name, value in declared["maia.verbs"].items()
        )

    metadata.entry_points = entry_points


verbs_of_this_checkout()
ROW_FORMS = {"requirement": r"\d+\.\d+", "threat": r"T\d+", "fault": r"F\d+"}

hypothesis.settings.register_profile("dev", deadline=None, max_examples=60)
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    max_examples=100,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """Give the root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """Give the folder of reference documents beside the repository."""
    folder = REPOSITORY.parent / "shared"
    if not (folder / "requirements.md").is_file():
        pytest.skip("the reference documents are not beside the repository")
    return folder


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], str]:
    """Give a function that finds a program, or skips (elsewhere) or fails (in CI) the test that needs it."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is not None:
            return path
        required = {word.strip() for word in os.environ.get("MAIA_REQUIRE", "").split(",")}
        if IN_CI or name in required:
            pytest.fail(f"`{name}` is missing and required here", pytrace=False)
        pytest.skip(f"`{name}` is not installed")

    return find


@pytest.fixture(scope="session")
def require_package() -> Callable[[str], None]:
    """Give a function that skips (elsewhere) or fails (in CI) the test that needs a package which is missing."""

    def find(name: str) -> None:
        if importlib.util.find_spec(name) is not None:
            return
        required = {word.strip() for word in os.environ.get("MAIA_REQUIRE", "").split(",")}
        if IN_CI or name in required:
            pytest.fail(f"the package `{name}` is missing and required here", pytrace=False)
        pytest.skip(f"the package `{name}` is not installed")

    return find


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """Give a function that loads one of the project's scripts afresh."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"maia_scripts_{name}", REPOSITORY / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        sys.path.insert(0, str(REPOSITORY / "scripts"))  # a script may use another, as when it is run
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.pop(0)
        return module

    return load


@pytest.fixture(scope="session")
def benchmark() -> Callable[[str], ModuleType]:
    """Give a function that loads one of the project's benchmarks, whose subjects may stand in files beside it."""

    def load(name: str) -> ModuleType:
        folder = str(REPOSITORY / "benchmarks")
        sys.path.insert(0, folder)
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(folder)

    return load


def known_rows() -> dict[str, frozenset[str]]:
    """Read the ids of all rows from the reference pages."""
    rows = {}
    for mark, path in ROW_FILES.items():
        text = path.read_text("utf-8") if path.is_file() else ""
        rows[mark] = frozenset(re.findall(rf"^\| ({ROW_FORMS[mark]}) \|", text, re.MULTILINE))
    return rows


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the record of marked tests, and a sample of the long ones."""
    parser.addoption("--record-marks", metavar="FILE", help="write marked tests and their outcomes to FILE")
    parser.addoption("--one-in", metavar="N", type=int, default=1, help="take one of N long tests; see sample.py")
    parser.addoption("--sample-seed", metavar="TEXT", default="", help="what chooses them, such as a commit")


def pytest_configure(config: pytest.Config) -> None:
    """Start the record in the process that sees all reports."""
    target = config.getoption("--record-marks")
    if target and not hasattr(config, "workerinput"):
        config.pluginmanager.register(MarkRecord(Path(config.rootpath, target)), "maia-mark-record")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a sample leaves out, and let the marks travel with the reports."""
    one_in, seed = config.getoption("--one-in"), config.getoption("--sample-seed")
    left = [item for item in items if left_to_chance(item) and not drawn(item.nodeid, one_in=one_in, seed=seed)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
    for item in items:
        for mark in ROW_FORMS:
            for row in {row for found in item.iter_markers(mark) for row in found.args}:
                item.user_properties.append((mark, str(row)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose mark names no row."""
    marked = [(mark, row) for mark, row in item.user_properties if mark in ROW_FORMS]
    if not marked:
        return
    rows = known_rows()
    for mark, row in marked:
        if row not in rows[mark]:
            pytest.fail(f"`{row}` is no {mark} row of docs/reference/{ROW_FILES[mark].name}", pytrace=False)


class MarkRecord:
    """Keeps the worst outcome of each marked test and writes them when the run ends."""

    RANK = ("passed", "skipped", "failed")

    def __init__(self, target: Path) -> None:
        self.target = target
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test."""
        marks = {mark: sorted({r for m, r in report.user_properties if m == mark}) for mark in ROW_FORMS}
        if report.outcome == "rerun" or not any(marks.values()):
            return
        test = self.tests.setdefault(report.nodeid.split("@")[0], {"outcome": "passed", **marks})
        test["outcome"] = max(test["outcome"], report.outcome, key=self.RANK.index)

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "tests": dict(sorted(self.tests.items())),
        }
        self.target.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
