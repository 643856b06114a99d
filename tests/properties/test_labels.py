"""Non-interference: whoever cannot tell two inputs apart cannot tell the results apart, whatever the program does."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import labelled_programs
import pytest
from labelled_programs import READERS, changes, draw, like, make, view

from maia.labels import How, RelationLabel, SymbolicLabel, join_relations, project

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
PROGRAMS = 120_000 if LONG else 4_000
EXHAUSTIVE = 4_000 if LONG else 120


def leaks(programs: int, seed: int = 17) -> list[str]:
    """Run random programs on pairs of inputs that look the same to a reader; name those that it tells apart."""
    rng = random.Random(seed)
    found = []
    for _ in range(programs):
        program, reader, data = make(rng, rng.randint(1, 4)), rng.choice(READERS), draw(rng)
        other, label = like(rng, data, reader), program.label()
        if view(program.run(data), label, reader) != view(program.run(other), label, reader):
            found.append(f"{sorted(reader)}: {program.text}")
    return found


def test_a_reader_that_sees_no_difference_before_sees_none_after() -> None:
    """Select, where, join of every kind, union, group, window, explode and limit, in any order."""
    assert leaks(PROGRAMS) == []


def test_whatever_truly_influences_a_result_is_in_its_label() -> None:
    """The slow reference: each secret cell is changed to each other value, and every reader without it is asked."""
    rng = random.Random(5)
    asked = 0
    for _ in range(EXHAUSTIVE):
        program, data = make(rng, rng.randint(1, 3)), draw(rng)
        label, rows = program.label(), program.run(data)
        for other, name, index, column in changes(data):
            changed = program.run(other)
            if changed == rows:
                continue
            tags = label_of_cell(name, column, data[name][index]["p"])
            for reader in READERS:
                if not tags <= reader:
                    asked += 1
                    assert view(rows, label, reader) == view(changed, label, reader), (sorted(reader), program.text)
    assert asked > 20 * EXHAUSTIVE


def label_of_cell(source: str, column: str, person: str) -> frozenset[str]:
    """Say which tags a secret cell has, written down once more and by hand."""
    return {
        ("open", "s"): frozenset({f"f({person})"}), ("open", "x"): frozenset({f"f({person})", "t"}),
        ("shut", "s"): frozenset({f"f({person})"}), ("shut", "x"): frozenset({"t"}),
    }[source, column]  # fmt: skip


def forget(self: SymbolicLabel, names: Mapping[str, str]) -> SymbolicLabel:
    """Follow carriers to their columns, and forget those that are gone."""
    kept = (replace(item, column=names[item.column]) for item in self.carriers if item.column in names)
    return replace(self, carriers=frozenset(kept))


def without_missing(
    left: RelationLabel, right: RelationLabel, on: Sequence[str], how: How = How.INNER
) -> RelationLabel:
    """Join, and think of every way as an inner one."""
    found = join_relations(left, right, on)
    return replace(found, columns=left.columns) if how in (How.SEMI, How.ANTI) else found


PLANTS = {
    "pending left out": (
        RelationLabel, "together", lambda self, keys=(), gathered=None: self.rows.within(keys, gathered)
    ),
    "carriers whose column is gone forgotten": (SymbolicLabel, "renamed", forget),
    "a condition that only counts for the rows it kept": (
        labelled_programs, "where",
        lambda relation, reads: replace(relation, rows=relation.rows.join(relation.reads(reads))),
    ),
    "matches that are missing tell nothing": (labelled_programs, "join_relations", without_missing),
    "a window that sees its own row": (
        labelled_programs, "window", lambda relation, name, *, reads, partition, order=(): project(
            relation, {**{column: column for column in relation.columns}, name: [*reads, *partition, *order]})
    ),
    "a limit that tells nothing of the others": (labelled_programs, "limit", lambda relation, order=(): relation),
}  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_a_planted_leak_is_found(monkeypatch: pytest.MonkeyPatch, plant: tuple[type, str, object]) -> None:
    """The property has teeth: without one of its rules, a reader tells inputs apart."""
    monkeypatch.setattr(*plant)
    assert leaks(2_000)
