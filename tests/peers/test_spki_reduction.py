"""The 91 public SPKI reduction cases, as they are and with their certificates in other orders."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

SHUFFLES = 100
CASES = tuple(range(1, 92))


@pytest.fixture(scope="module")
def harness() -> ModuleType:
    """Load the reader of the cases, which stands beside this file."""
    spec = importlib.util.spec_from_file_location("spki_cases", Path(__file__).with_name("spki_cases.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_case_of_the_folder_is_run(shared: Path):
    """The folder holds 91 cases with an answer, and this file runs each of them."""
    numbers = {int(path.stem) for path in (shared / "peers" / "spki-reduction").glob("*.out")}
    assert numbers == set(CASES)


@pytest.mark.threat("T13")
@pytest.mark.parametrize("number", CASES)
def test_reduction_case(number: int, shared: Path, harness: ModuleType):
    """The certificates prove exactly the expected ACL, in every order."""
    folder = shared / "peers" / "spki-reduction"
    case = harness.read_case((folder / f"{number}.in").read_bytes())
    expected = harness.read_acl((folder / f"{number}.out").read_bytes())
    assert harness.prove(case) == expected
    order = random.Random(number)
    for _ in range(SHUFFLES):
        assert harness.prove(harness.shuffled(case, order)) == expected
