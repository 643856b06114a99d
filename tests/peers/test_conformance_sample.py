"""The sample of the conformance suite, through `maia conformance` and the suite's own runner."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maia.conformance import FAMILIES

PROGRAM = Path(__file__).resolve().parents[2] / "src" / "maia" / "conformance"


def answered() -> list[str]:
    """List the verbs that Maia answers; the others belong to floors that are not built yet."""
    modules = {module for module in FAMILIES.values() if (PROGRAM / f"{module}.py").is_file()}
    return sorted(verb for module in modules for verb in importlib.import_module(f"maia.conformance.{module}").VERBS)


@pytest.fixture(scope="module")
def runner(shared: Path) -> Path:
    """Give the suite's runner."""
    found = shared / "peers" / "run.py"
    if not found.is_file():
        pytest.skip("the conformance sample is not beside the repository")
    return found


@pytest.mark.parametrize("family", sorted({verb.partition(".")[0] for verb in answered()}))
def test_sample_passes(runner: Path, family: str, tmp_path: Path) -> None:
    """Every check of the verbs that Maia answers passes."""
    cases = runner.parent / "conformance-sample.jsonl"
    lines = [line for line in cases.read_text("utf-8").splitlines() if line.strip()]
    verbs = {verb for verb in answered() if verb.startswith(f"{family}.")}
    chosen = [line for line in lines if verb_of(line) in verbs]
    if not chosen:
        pytest.skip(f"the sample has no case for {family}")
    assert_passes(runner, chosen, tmp_path)


def assert_passes(runner: Path, chosen: list[str], tmp_path: Path) -> None:
    """Run cases through the suite's runner and expect all of them to pass."""
    (tmp_path / "cases.jsonl").write_text("\n".join(chosen) + "\n", "utf-8")
    adapter = f"{sys.executable} -m maia.cli conformance"
    ran = subprocess.run(
        [sys.executable, str(runner), "--cases", str(tmp_path / "cases.jsonl"), "--cmd", adapter],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(rf"\b{len(chosen)}\b", ran.stdout), ran.stdout


def test_trust_types_and_filters_are_answered() -> None:
    """The verbs of the first issues are there."""
    wanted = {"sexp.parse", "tag.intersect", "tag.permits", "name.resolve", "authority.decide"}
    assert wanted <= set(answered())


def verb_of(line: str) -> str:
    """Read the verb of a case; one that is raw text has none."""
    request = json.loads(line).get("request")
    return str(request.get("verb", "")) if isinstance(request, dict) else ""
