"""The secrets at the nodes of a key tree, and how an epoch changes them.

A node's secret is mixed from its children's blinded secrets; beside an empty subtree it is lifted instead of mixed.
Rules kept here:

- a newcomer gets a fresh leaf, so everything on its path changes and nothing of the past follows from it;
- every epoch has a new root secret: by what changed below it, or else by a fresh one under the old;
- T40: with an eviction, every secret the evicted one knew changes, also the blinded ones *beside* its path. Otherwise
  an evicted member and a later newcomer together find the keys in between. A node beside the path is replaced by a
  fresh secret wrapped once under its old one, so the cure costs two more wrapped keys a level, not a path each.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from maia.encryption.keyring import KEY_LENGTH
from maia.encryption.rekeys import WrappedKey
from maia.encryption.tree_keys import EMPTY, TreeNode, WrapKind, above, blind, wrap


@dataclass(slots=True)
class EpochWork:
    """One epoch in the making: what binds its wrapped keys, the height of its tree, and what has changed so far."""

    binding: bytes
    height: int
    keys: list[WrappedKey] = field(default_factory=list)
    touched: set[TreeNode] = field(default_factory=set)
    fresh: set[TreeNode] = field(default_factory=set)
    """Leaves with a newcomer, and every node above one."""


class TreeSecrets:
    """The secrets of one group's tree, by node. Never shows them."""

    __slots__ = ("_by_node", "_context")

    def __init__(self, context: bytes, by_node: Mapping[TreeNode, bytes] | None = None) -> None:
        """Start with what a tree was written with, or with nothing."""
        self._context = context
        self._by_node: dict[TreeNode, bytes] = dict(by_node or {})

    def __repr__(self) -> str:
        """Count, never show."""
        return f"TreeSecrets({len(self._by_node)})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("a key tree cannot be pickled")

    def get(self, node: TreeNode) -> bytes | None:
        """Return the secret of a node; ``None`` where nobody sits below it."""
        return self._by_node.get(node)

    def items(self) -> list[tuple[TreeNode, bytes]]:
        """List nodes and secrets, in order."""
        return sorted(self._by_node.items())

    def climb(self, work: EpochWork, evicted: Sequence[int], placed: Mapping[int, bytes], before: int) -> None:
        """Change the secrets level by level, leaves first.

        Args:
            work: The epoch in the making.
            evicted: The slots that were left.
            placed: By slot that was taken, the key that the newcomer shares with the manager.
            before: The height of the tree in the epoch before.
        """
        for slot in evicted:
            self._by_node.pop(TreeNode(0, slot), None)
        for slot, individual in placed.items():
            node = TreeNode(0, slot)
            self._by_node[node] = secrets.token_bytes(KEY_LENGTH)
            sealed = wrap(individual, self._by_node[node], WrapKind.LEAF, node, work.binding)
            work.keys.append(WrappedKey(WrapKind.LEAF, node, sealed))
        exposed = self._exposed(evicted, before)
        level = {TreeNode(0, slot) for slot in (*evicted, *placed)}
        work.fresh = {TreeNode(0, slot) for slot in placed}
        fresh = set(work.fresh)
        for height in range(max(before, work.height) + 1):
            if height:
                level = {node.parent for node in level}
                fresh = {node.parent for node in fresh}
                if height > before:
                    level.add(TreeNode(height, 0))  # the tree grew: the old root has a parent now
                for node in level:
                    self._recompute(node, within=work.height)
                work.fresh |= fresh
            if height > work.height:
                self._by_node.pop(TreeNode(height, 0), None)  # the tree shrank
                continue
            replaced = {node for node in exposed if node.level == height and node in self._by_node} - level
            root = TreeNode(work.height, 0)
            if height == work.height and root not in level and root in self._by_node:
                replaced.add(root)  # nothing below it changed
            for node in replaced:
                self._replace(node, work)
            level |= replaced
            work.touched |= level

    def _exposed(self, evicted: Iterable[int], height: int) -> frozenset[TreeNode]:
        """List the nodes beside the paths of the evicted, whose blinded secrets they knew."""
        return frozenset(TreeNode(level, slot >> level).sibling for slot in evicted for level in range(height))

    def _recompute(self, node: TreeNode, *, within: int) -> None:
        left, right = (TreeNode(node.level - 1, 2 * node.index + side) for side in (0, 1))
        if left not in self._by_node:
            left, right = right, left
        if node.level > within or left not in self._by_node:
            self._by_node.pop(node, None)
        else:
            self._by_node[node] = above(self._by_node[left], self._blinded(right), left, self._context)

    def _replace(self, node: TreeNode, work: EpochWork) -> None:
        new = secrets.token_bytes(KEY_LENGTH)
        work.keys.append(
            WrappedKey(WrapKind.NODE, node, wrap(self._by_node[node], new, WrapKind.NODE, node, work.binding))
        )
        self._by_node[node] = new

    def _blinded(self, node: TreeNode) -> bytes:
        secret = self._by_node.get(node)
        return EMPTY if secret is None else blind(secret, node, self._context)

    def hand_out(self, work: EpochWork) -> None:
        """Tell those below a node what is beside it, when that is new or they are."""
        targets = work.touched | {node.sibling for node in work.fresh}
        for node in targets:
            if node.level >= work.height or node not in self._by_node:
                continue
            opener = self._by_node.get(node.sibling)
            if opener is not None:
                sealed = wrap(opener, self._blinded(node), WrapKind.BLIND, node, work.binding)
                work.keys.append(WrappedKey(WrapKind.BLIND, node, sealed))

    def vacant(self, evicted: Iterable[int], height: int) -> tuple[TreeNode, ...]:
        """Name the largest subtrees that are empty now, in a tree of this height."""
        found: set[TreeNode] = set()
        for slot in evicted:
            node = TreeNode(0, slot)
            if node in self._by_node or slot >> height:
                continue  # taken again, or outside of what is left of the tree
            while node.level < height and node.parent not in self._by_node:
                node = node.parent
            found.add(node)
        return tuple(sorted(found))
