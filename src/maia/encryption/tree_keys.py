"""The functions of a one-way function tree: blinding, mixing, wrapping, and the group key at the root.

A node is known by its level above the leaves and its index within the level, so a tree grows at the top without
renaming anything. Every function binds the group and the node: a value of one place means nothing at another.

Rules kept here:

- ``blind``, ``mix`` and ``lift`` are one-way (HMAC-SHA-256), and ``mix`` knows left from right;
- above a node whose sibling's subtree is empty the secret is lifted from the node's own, not from its blinded secret:
  a newcomer beside it learns the blinded one, and would otherwise find the secret from before it came;
- what wraps a key is derived from a node's secret, the message's number and its salt, and used once; the nonce can
  therefore be constant;
- the group key is derived from the root's secret with the epoch's number and start. Who learns a group key learns no
  secret of the tree, and so no other group key.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from enum import Enum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import encode
from maia.encryption.keyring import KeyGroupId
from maia.errors import SealError

MAX_HEIGHT = 32
EMPTY = b""
"""What stands for the blinded secret of an empty subtree."""
_NONCE = bytes(12)


@dataclass(frozen=True, slots=True, order=True)
class TreeNode:
    """A place in the tree. Level 0 are the leaves."""

    level: int
    index: int

    @property
    def parent(self) -> TreeNode:
        """The node above."""
        return TreeNode(self.level + 1, self.index >> 1)

    @property
    def sibling(self) -> TreeNode:
        """The other child of the node above."""
        return TreeNode(self.level, self.index ^ 1)

    def above(self, slot: int) -> bool:
        """Tell whether a leaf lies at or below this node."""
        return slot >> self.level == self.index

    def octets(self) -> bytes:
        """Name the place in a derivation."""
        return self.level.to_bytes(1, "big") + self.index.to_bytes(8, "big")


class WrapKind(Enum):
    """What a wrapped key is, and whose secret opens it."""

    LEAF = b"leaf"
    """A leaf's secret, for the member placed there, under the key it shares with the manager."""
    NODE = b"node"
    """A node's new secret, under its old one."""
    BLIND = b"blind"
    """A node's blinded secret, under the secret of its sibling."""


def group_context(group: KeyGroupId) -> bytes:
    """Give the octets that bind every derivation to one group."""
    return hashlib.sha256(encode((b"maia/1 key tree", group.type_id, group.label))).digest()


def blind(secret: bytes, node: TreeNode, context: bytes) -> bytes:
    """Blind a node's secret, for those below its sibling."""
    return hmac.digest(secret, b"maia/1 tree blind" + context + node.octets(), hashlib.sha256)


def mix(left: bytes, right: bytes, node: TreeNode, context: bytes) -> bytes:
    """Make a node's secret from its children's blinded secrets."""
    return hmac.digest(left + right, b"maia/1 tree mix" + context + node.octets(), hashlib.sha256)


def lift(secret: bytes, node: TreeNode, context: bytes) -> bytes:
    """Make a node's secret from that of its only child."""
    return hmac.digest(secret, b"maia/1 tree lift" + context + node.octets(), hashlib.sha256)


def above(secret: bytes, beside: bytes, child: TreeNode, context: bytes) -> bytes:
    """Make the secret above ``child`` from its own and its sibling's blinded one, or `EMPTY`."""
    if beside == EMPTY:
        return lift(secret, child.parent, context)
    mine = blind(secret, child, context)
    left, right = (beside, mine) if child.index & 1 else (mine, beside)
    return mix(left, right, child.parent, context)


def group_key(root: bytes, *, number: int, start: int, context: bytes) -> bytes:
    """Derive an epoch's key from the root's secret."""
    return hmac.digest(root, encode((b"maia/1 group key", context, b"%d" % number, b"%d" % start)), hashlib.sha256)


def key_check(key: bytes) -> bytes:
    """Commit to a group key, so that everybody sees whether they arrived at the same."""
    return hmac.digest(key, b"maia/1 group key check", hashlib.sha256)


def wrap(secret: bytes, value: bytes, kind: WrapKind, node: TreeNode, binding: bytes) -> bytes:
    """Wrap a key. ``binding`` names the message: context, number and salt."""
    key = hmac.digest(secret, b"maia/1 tree wrap" + kind.value + node.octets() + binding, hashlib.sha256)
    return AESGCM(key).encrypt(_NONCE, value, None)


def unwrap(secret: bytes, sealed: bytes, kind: WrapKind, node: TreeNode, binding: bytes) -> bytes:
    """Open a wrapped key.

    Raises:
        SealError: It does not open.
    """
    key = hmac.digest(secret, b"maia/1 tree wrap" + kind.value + node.octets() + binding, hashlib.sha256)
    try:
        return AESGCM(key).decrypt(_NONCE, sealed, None)
    except InvalidTag as error:
        raise SealError("the rekey message cannot be opened") from error


def binding_of(context: bytes, number: int, salt: bytes) -> bytes:
    """Name one message in the derivation of its wrapping keys."""
    return context + number.to_bytes(8, "big") + salt
