"""An attacker that tries whatever it likes finds nothing, and finds every law that is switched off."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attack import attempt, shrink
from moves import ON_HOMES, THEMES, Move, Publish, Sequence, draw
from planted import PLANTED, Planted
from regressions import FOUND
from stage import Fixed

HERE = Path(__file__).parent
SEQUENCES = 20_000
WINDOWS = 5
"""A commit plays one window of the sequences, which it chooses itself; `make adversary SEQUENCES=20000` plays all."""


def window() -> range:
    """Choose the sequences that this commit plays."""
    share = SEQUENCES // WINDOWS
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False)
    first = int(asked.stdout.strip() or "0", 16) % WINDOWS * share
    return range(first, first + share)


def search(planted: Planted) -> Sequence | None:
    """Play the sequences in which a law would matter until one breaks it; tell which."""
    fixed = Fixed.make()
    try:
        for seed in range(SEQUENCES):
            sequence = draw(seed)
            if sequence.theme in planted.themes and attempt(fixed, sequence) is not None:
                return sequence
    finally:
        fixed.close()
    return None


@pytest.mark.slow
@pytest.mark.always
@pytest.mark.timeout(3_600)
def test_no_sequence_breaks_a_law():
    """Random attacks of a coalition with random rights: nothing is known, set, lost or repeated that must not be."""
    seeds = window()
    command = [
        sys.executable, HERE / "run.py", "--seed", str(seeds.start), "--sequences", str(len(seeds)),
        "--jobs", str(os.cpu_count() or 1),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda item: item.law)
def test_a_law_that_is_switched_off_is_noticed(planted):
    """The same sequences find a violation as soon as one rule of the product is gone, and none while it stands."""
    with planted.planted():
        found = search(planted)
    assert found is not None, f"nothing found in the {SEQUENCES:,} sequences"
    fixed = Fixed.make()
    try:
        assert attempt(fixed, found) is None
    finally:
        fixed.close()


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_is_not_there_any_more(name):
    """Each violation that the adversary found stays closed."""
    fixed = Fixed.make()
    try:
        assert attempt(fixed, FOUND[name]) is None
    finally:
        fixed.close()


def test_a_sequence_is_the_same_for_the_same_seed():
    """A seed is all that is needed to play an attack again."""
    assert [draw(seed) for seed in range(50)] == [draw(seed) for seed in range(50)]
    assert {draw(seed).theme for seed in range(1_000)} == {*THEMES, *ON_HOMES, "upkeep"}


def test_a_failing_sequence_is_made_small():
    """What is left of a sequence is what it takes to fail."""
    sequence = next(item for seed in range(100) if len((item := draw(seed)).moves) > 5)
    small = shrink(sequence, lambda less: any(isinstance(move, Publish) for move in less.moves))
    assert [type(move) for move in small.moves] == [Publish]
    assert not small.given
    assert f"seed {sequence.seed}" in str(small)


def test_every_move_is_drawn():
    """No way to attack is forgotten."""
    drawn = {type(move) for seed in range(400) for move in draw(seed).moves}
    assert drawn == set(Move.__subclasses__())


@pytest.mark.parametrize("name", ["moves.py", "oracle.py"])
def test_the_oracle_knows_nothing_of_the_product(name):
    """What is expected is worked out from the laws, and from no code that could be wrong in the same way."""
    tree = ast.parse((HERE / name).read_text())
    found = {item.module or "" for item in ast.walk(tree) if isinstance(item, ast.ImportFrom)}
    found |= {alias.name for item in ast.walk(tree) if isinstance(item, ast.Import) for alias in item.names}
    assert not [module for module in found if module.split(".")[0] == "maia"]
