"""Choosing the members that meet a threshold, each key counted once.

A slot of a threshold is met by one key (its own, or one that its name stands for) or, when it is a threshold itself, by
members of its own. Over the whole tree no key is used twice: a key under two names, or as itself and by its hash, is
one member. Choosing disjoint keys is a packing problem, so the search is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from maia.authority.budget import Budget
from maia.authority.tuples import PrincipalNode, ThresholdNode
from maia.principals import KeyId

Choice = tuple[tuple[PrincipalNode, KeyId], ...]


def choose_members(
    threshold: ThresholdNode, willing: Callable[[PrincipalNode], frozenset[KeyId]], budget: Budget
) -> Choice | None:
    """Find distinct keys, one per leaf used, that together meet the threshold.

    Args:
        threshold: The threshold, perhaps nested.
        willing: For a leaf, the keys of it that pass the right on.
        budget: What is left to the decision.

    Returns:
        Pairs of leaf and key, or ``None`` when the threshold cannot be met.

    Raises:
        UncheckedError: The search exceeds its budget.

    >>> two = ThresholdNode(2, (KeyId(b"a"), KeyId(b"a"), KeyId(b"b")))
    >>> budget = Budget(steps=100, signatures=1)
    >>> choose_members(two, lambda leaf: frozenset({leaf}), budget)
    ((b'a', b'a'), (b'b', b'b'))
    >>> choose_members(two, lambda leaf: frozenset({leaf} & {b"a"}), budget) is None
    True
    """
    if not _could_meet(threshold, willing, budget):
        return None
    return next(_choices(threshold, willing, frozenset(), budget), None)


def _could_meet(node: PrincipalNode, willing: Callable[[PrincipalNode], frozenset[KeyId]], budget: Budget) -> bool:
    """Rule out quickly what fails even when keys may be used twice."""
    budget.spend(2)
    if isinstance(node, ThresholdNode):
        return sum(_could_meet(member, willing, budget) for member in node.members) >= node.k
    return bool(willing(node))


def _choices(
    node: PrincipalNode,
    willing: Callable[[PrincipalNode], frozenset[KeyId]],
    used: frozenset[KeyId],
    budget: Budget,
) -> Iterator[Choice]:
    budget.spend(2 + len(used) // 16)
    if not isinstance(node, ThresholdNode):
        for key in sorted(willing(node) - used):
            yield ((node, key),)
        return
    yield from _fill(node, 0, node.k, willing, used, budget)


def _fill(
    node: ThresholdNode,
    start: int,
    needed: int,
    willing: Callable[[PrincipalNode], frozenset[KeyId]],
    used: frozenset[KeyId],
    budget: Budget,
) -> Iterator[Choice]:
    """Meet ``needed`` of the slots from ``start`` on."""
    budget.spend()
    if needed == 0:
        yield ()
        return
    for index in range(start, len(node.members) - needed + 1):
        for choice in _choices(node.members[index], willing, used, budget):
            taken = used | {key for _, key in choice}
            for rest in _fill(node, index + 1, needed - 1, willing, taken, budget):
                yield choice + rest


def met_slots(threshold: ThresholdNode, willing: Callable[[PrincipalNode], frozenset[KeyId]]) -> int:
    """Count the distinct keys or inner thresholds that are ready, for the explanation of a denial."""
    ready: set[object] = set()
    for member in threshold.members:
        if isinstance(member, ThresholdNode):
            if met_slots(member, willing) >= member.k:
                ready.add(member)
        else:
            ready.update(willing(member))
    return min(len(ready), len(threshold.members))
