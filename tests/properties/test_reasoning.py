"""Laws of reasoning: whoever is said to read a cell is shown it, and nobody else; and what ends is what is gone."""

from __future__ import annotations

import os
import random

import pytest
from reasoning_worlds import KEYS, ROWS, key, really_shown, scenario, staged_world

from maia.errors import UncheckedError
from maia.events import type_id
from maia.reasoning import Cell, ends, who_can

TORTURE = bool(os.environ.get("MAIA_TORTURE"))
WORLDS = 10_000 if TORTURE else 64
BLOCKS = 8 if TORTURE else 2
TYPE = type_id(key("o"), "T")


@pytest.mark.parametrize("block", range(BLOCKS))
def test_whoever_is_said_to_read_a_cell_is_shown_it_and_nobody_else(block: int) -> None:
    """For every key of a world, with a row and without: `who_can` says yes exactly when a subscription is shown it."""
    readers = strangers = assumed = 0
    for seed in range(block, WORLDS, BLOCKS):
        chosen = random.Random(-seed)
        world, staged = staged_world(scenario(seed))
        seen = {name: really_shown(staged, key(name)) for name in KEYS}
        for uid in ("1", "2", "3"):
            some = who_can(world, Cell(type_id=TYPE, uid=uid))
            assert not some.doubts, seed
            numbers = [number for number, row in enumerate(ROWS) if uid in row]
            for name in KEYS:
                shown = any((uid, number) in seen[name] for number in numbers)
                holder = next((one for one in some.holders if one.key == key(name).key_id), None)
                if holder is not None and holder.assumed:
                    assumed += 1
                    continue
                if holder is not None and not shown:  # in a row that is none of those that were tried
                    shown = (uid, 0) in really_shown(staged, key(name), [holder.row])
                assert (holder is not None) == shown, (seed, uid, name)
                readers, strangers = readers + shown, strangers + (not shown)
            for number in chosen.sample(numbers, 2):
                answer = who_can(world, Cell(type_id=TYPE, uid=uid, row=ROWS[number]))
                said = {name for name in KEYS if key(name).key_id in answer}
                assert said == {name for name in KEYS if (uid, number) in seen[name]}, (seed, uid, ROWS[number])
    assert readers
    assert strangers
    assert assumed < readers / 10, "conditions on events are mostly met by a row that is found"


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_ends_with_a_certificate_is_what_nobody_is_shown_without_it(block: int) -> None:
    """Somebody who is shown an attribute, in some row, loses it with a certificate exactly when `ends` says so."""
    lost = kept = 0
    for seed in range(block, WORLDS // 2, BLOCKS):
        made = scenario(seed, certificates=6)
        for one in made["certificates"]:
            one.pop("conditions", None)
        world, staged = staged_world(made)
        number = random.Random(seed).randrange(len(staged.identities))
        left = {**made, "certificates": [one for one in made["certificates"] if one != made["certificates"][number]]}
        left["statements"] = [_renumbered(item, made, left) for item in made["statements"]]
        _, without = staged_world(left)
        try:
            done = ends(world, [staged.identities[number]])
        except UncheckedError:
            continue
        said = {(item.key, item.uid) for item in done.ended if item.action == "subscribe"}
        for name in KEYS:
            before, after = ({uid for uid, _ in really_shown(one, key(name))} for one in (staged, without))
            gone = {uid for identity, uid in said if identity == key(name).key_id}
            assert gone == before - after, (seed, name)
            lost, kept = lost + len(before - after), kept + len(before & after)
        for change in done.narrowed:
            assert change.held.uid not in {uid for uid in said if change.held in done.ended}
    assert lost
    assert kept


def _renumbered(statement: dict, made: dict, left: dict) -> dict:
    """Let a list name the same certificates, in a scenario that has fewer."""
    kept = [made["certificates"][number] for number in statement["certificates"]]
    return {
        **statement,
        "certificates": [left["certificates"].index(one) for one in kept if one in left["certificates"]],
    }
