"""A member's side of a key group: its path through the tree, and how it follows the manager's messages.

A member keeps the secrets of its leaf and of every node above it, and the blinded secrets beside that path: at most
2·height + 1 keys. It reads messages from the log, whenever and as often as it likes.

Rules kept here:

- a message is applied whole or not at all: the new path is worked out first, compared with the message's check, and
  taken over only then;
- exactly the next epoch is applied. One that was applied is passed over (so messages may come twice), a later one is
  refused until those between are here, and one that does not continue what was applied is refused for good;
- whoever is put out forgets the path at once. It takes part again only when it is placed again.
"""

from __future__ import annotations

import hmac

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption.epochs import EpochId
from maia.encryption.keyring import KEY_LENGTH, KeyGroupId
from maia.encryption.rekeys import Rekey, VerifiedRekey
from maia.encryption.tree_keys import (
    EMPTY,
    MAX_HEIGHT,
    TreeNode,
    WrapKind,
    above,
    binding_of,
    group_context,
    group_key,
    key_check,
    unwrap,
)
from maia.encryption.welcomes import EpochKey
from maia.errors import EncodingError, SealError, UnavailableError, UsageError, VerificationError
from maia.events import TypeId

_LIMITS = SexpLimits(max_bytes=1 << 16, max_depth=4, max_atom=1024)
_Wrapped = dict[tuple[WrapKind, TreeNode], bytes]


class TreeMember:
    """What one member of one group knows. Never travels, never shows it."""

    __slots__ = ("_beside", "_context", "_digest", "_individual", "_path", "group", "name", "number", "slot")

    def __init__(self, group: KeyGroupId, name: bytes, individual: bytes) -> None:
        """Wait to be placed. ``individual`` is the key shared with the manager for this membership."""
        if len(individual) != KEY_LENGTH:
            raise UsageError(f"a newcomer's key has {KEY_LENGTH} octets", code="MEMBER_KEY")
        self.group = group
        self.name = name
        self.number = 0
        self.slot: int | None = None
        self._individual = individual
        self._context = group_context(group)
        self._digest = b""
        self._path: tuple[bytes, ...] = ()
        self._beside: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        """Count, never show."""
        return f"TreeMember(slot {self.slot}, epoch {self.number}, {self.keys_held} keys)"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("a member's keys cannot be pickled")

    @property
    def keys_held(self) -> int:
        """How many keys of the tree this member stores."""
        return len(self._path) + sum(bool(other) for other in self._beside)

    def apply(self, verified: VerifiedRekey) -> EpochKey | None:
        """Follow one message.

        Returns:
            The epoch's key, or ``None`` when the message was applied before or gives this member no key: it is not
            placed yet, or is put out.

        Raises:
            UsageError: The message is another group's.
            UnavailableError: Messages in between are missing; nothing has changed.
            VerificationError: The message does not continue the history that was applied.
            SealError: The message does not open, or not to the key it promises; nothing has changed.

        >>> from maia.encryption import KeyTree, verify_rekey
        >>> from maia.principals import KeySigner
        >>> manager, group = KeySigner(bytes(32)), KeyGroupId(TypeId(bytes(32)), b"3265")
        >>> tree, ann = KeyTree(group), TreeMember(group, b"ann", b"A" * 32)
        >>> first = verify_rekey(tree.rekey(manager, start=100, joins={b"ann": b"A" * 32}), manager.public_key)
        >>> ann.apply(first), ann.apply(first)
        (EpochKey(number=1, start=100), None)
        """
        rekey, digest = verified.rekey, verified.message.digest
        if rekey.group != self.group:
            raise UsageError("a rekey message of another group", code="REKEY_GROUP")
        if rekey.number <= self.number:
            if rekey.number == self.number and digest != self._digest:
                raise VerificationError("two rekey messages for one epoch", code="REKEY_FORK")
            return None
        inside = self.slot is not None
        if inside and rekey.number != self.number + 1:
            raise UnavailableError("rekey messages in between are missing", code="REKEY_GAP")
        if inside and rekey.previous != self._digest:
            raise VerificationError("a rekey message of another history", code="REKEY_FORK")
        slot, leaf = self._place_after(rekey)
        key: bytes | None = None
        path: tuple[bytes, ...] = ()
        beside: tuple[bytes, ...] = ()
        if slot is not None:
            path, beside = self._climb(rekey, slot, leaf)
            key = group_key(path[-1], number=rekey.number, start=rekey.start, context=self._context)
            if not hmac.compare_digest(key_check(key), rekey.check):
                raise SealError("the rekey message cannot be opened")
        self.slot, self.number, self._digest, self._path, self._beside = slot, rekey.number, digest, path, beside
        return None if key is None else EpochKey(number=rekey.number, start=EpochId(rekey.start), key=key)

    def _place_after(self, rekey: Rekey) -> tuple[int | None, bytes | None]:
        """Find the own slot after a message, and the leaf's secret when the place is new."""
        for slot, member in rekey.placed:
            if member != self.name:
                continue
            # Placed under another key: that was, or will be, another membership of the same name.
            leaf = self._new_leaf(rekey, TreeNode(0, slot))
            return (None if leaf is None or slot >> rekey.height else slot), leaf
        own = self.slot
        if own is None or own >> rekey.height or any(slot == own for slot, _ in rekey.placed):
            return None, None
        return (None if any(node.above(own) for node in rekey.vacant) else own), None

    def _new_leaf(self, rekey: Rekey, node: TreeNode) -> bytes | None:
        binding = binding_of(self._context, rekey.number, rekey.salt)
        keys = {key.node: key.sealed for key in rekey.keys if key.kind is WrapKind.LEAF}
        try:
            return unwrap(self._individual, keys.get(node, b""), WrapKind.LEAF, node, binding)
        except SealError:
            return None

    def _climb(self, rekey: Rekey, slot: int, leaf: bytes | None) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """Work out the new path, leaf first."""
        binding = binding_of(self._context, rekey.number, rekey.salt)
        keys: _Wrapped = {(key.kind, key.node): key.sealed for key in rekey.keys}
        empty = frozenset(rekey.vacant)
        old_path, old_beside = (self._path, self._beside) if leaf is None else ((), ())
        path: list[bytes] = []
        beside: list[bytes] = []
        changed = leaf is not None
        for level in range(rekey.height + 1):  # parsed, so at most 32
            node = TreeNode(level, slot >> level)
            if level == 0 and leaf is not None:
                secret = leaf
            elif (WrapKind.NODE, node) in keys and level < len(old_path):
                secret, changed = self._open(keys, old_path[level], WrapKind.NODE, node, binding), True
            elif changed or level >= len(old_path):
                child = TreeNode(level - 1, slot >> (level - 1))
                secret = above(path[-1], beside[-1], child, self._context)
                changed = True
            else:
                secret = old_path[level]
            path.append(secret)
            if level == rekey.height:
                break
            other = old_beside[level] if level < len(old_beside) else EMPTY
            if (WrapKind.BLIND, node.sibling) in keys:
                other, changed = self._open(keys, secret, WrapKind.BLIND, node.sibling, binding), True
            elif node.sibling in empty:
                other, changed = EMPTY, True
            beside.append(other)
        return tuple(path), tuple(beside)

    def _open(self, keys: _Wrapped, secret: bytes, kind: WrapKind, node: TreeNode, binding: bytes) -> bytes:
        sealed = keys.get((kind, node))
        if sealed is None:
            raise SealError("the rekey message cannot be opened")
        return unwrap(secret, sealed, kind, node, binding)

    def to_bytes(self) -> bytes:
        """Write everything, in the clear, for sealing and for nothing else."""
        place: tuple[bytes, ...] = () if self.slot is None else (b"%d" % self.slot,)
        return encode(
            (
                b"tree-member",
                (b"group", self.group.type_id, self.group.label),
                (b"name", self.name),
                (b"individual", self._individual),
                (b"number", b"%d" % self.number),
                (b"digest", self._digest),
                (b"slot", *place),
                (b"path", *self._path),
                (b"beside", *self._beside),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> TreeMember:
        """Read what `to_bytes` wrote.

        Raises:
            EncodingError: It is something else.
        """
        match parse_canonical(data, limits=_LIMITS):
            case (
                b"tree-member",
                (b"group", bytes(type_id), bytes(label)),
                (b"name", bytes(name)),
                (b"individual", bytes(individual)),
                (b"number", bytes(number)),
                (b"digest", bytes(digest)),
                (b"slot", *slot),
                (b"path", *path),
                (b"beside", *beside),
            ) if len(individual) == KEY_LENGTH and number.isdigit() and len(path) <= MAX_HEIGHT + 1 and len(slot) <= 1:
                made = cls(KeyGroupId(TypeId(type_id), label), name, individual)
            case _:
                raise EncodingError("not a member's keys", code="TREE_MEMBER_SHAPE")
        made.number, made._digest = int(number), digest
        made._path = tuple(item for item in path if isinstance(item, bytes))
        made._beside = tuple(item for item in beside if isinstance(item, bytes))
        made.slot = next((int(item) for item in slot if isinstance(item, bytes) and item.isdigit()), None)
        if made.slot is not None and len(made._path) != len(made._beside) + 1:
            raise EncodingError("not a member's keys", code="TREE_MEMBER_SHAPE")
        return made
