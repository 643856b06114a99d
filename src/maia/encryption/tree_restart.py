"""Going on after a backup: who is inside by the messages that a restored manager did not make itself.

A manager that comes back from an old backup lacks the secrets of the epochs since, but the log shows their messages.
Rules kept here:

- the messages must follow each other without a gap; otherwise nobody is shown to be inside;
- inside is whoever had a place and kept it, or was placed under a key that the backup knows. Everybody else is out:
  one who was evicted meanwhile does not come back with the backup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from maia.encryption.rekeys import Rekey, VerifiedRekey
from maia.encryption.tree_keys import TreeNode, WrapKind, binding_of, group_context, unwrap
from maia.errors import SealError


def survivors(
    slots: Mapping[int, bytes], keys: Mapping[bytes, bytes], messages: Sequence[VerifiedRekey]
) -> dict[bytes, bytes]:
    """Tell who is inside after the messages under a key that is known, and the key.

    Args:
        slots: Who sat where before the first message.
        keys: By name, the newest key shared with the manager then.
        messages: Of one group, oldest first, following the state that ``slots`` tell.

    >>> from maia.encryption import KeyGroupId, KeyTree, verify_rekey
    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> manager, tree = KeySigner(bytes(32)), KeyTree(KeyGroupId(TypeId(bytes(32)), b"3265"))
    >>> keys = {b"ann": b"A" * 32, b"bob": b"B" * 32}
    >>> _ = tree.rekey(manager, start=100, joins=keys)
    >>> later = verify_rekey(tree.rekey(manager, start=200, leaves=[b"bob"]), manager.public_key)
    >>> sorted(survivors({0: b"ann", 1: b"bob"}, keys, [later]))
    [b'ann']
    """
    for before, after in pairwise(messages):
        if after.rekey.previous != before.message.digest:
            return {}
    inside = dict(slots)
    for message in messages:
        rekey = message.rekey
        placed = dict(rekey.placed)
        inside = {
            slot: name
            for slot, name in inside.items()
            if not slot >> rekey.height
            and slot not in placed
            and name not in placed.values()
            and not any(node.above(slot) for node in rekey.vacant)
        }
        inside |= {slot: name for slot, name in placed.items() if _fits(rekey, slot, keys.get(name))}
    return {name: keys[name] for name in inside.values() if name in keys}


def empty_from(first: int, height: int) -> tuple[TreeNode, ...]:
    """Name the largest empty subtrees of a tree whose slots are taken up to ``first``, which is the first empty one.

    >>> [(node.level, node.index) for node in empty_from(5, 3)]
    [(0, 5), (1, 3)]
    """
    found: list[TreeNode] = []
    slot = first
    while slot < 1 << height or not (found or slot):
        level = min((slot & -slot).bit_length() - 1, height) if slot else height
        found.append(TreeNode(level, slot >> level))
        slot += 1 << level
    return tuple(sorted(found))


def _fits(rekey: Rekey, slot: int, key: bytes | None) -> bool:
    node = TreeNode(0, slot)
    sealed = {item.node: item.sealed for item in rekey.keys if item.kind is WrapKind.LEAF}.get(node)
    if key is None or sealed is None:
        return False
    try:
        unwrap(key, sealed, WrapKind.LEAF, node, binding_of(group_context(rekey.group), rekey.number, rekey.salt))
    except SealError:
        return False
    return True
