"""The Merkle tree over an audit's entries, hashed as RFC 6962 says; pure functions, no files.

A leaf is the digest of an entry: 32 octets that tell nothing, since every entry holds the digest of the one before it.
``leaf = SHA-256(00 digest)``, ``node = SHA-256(01 left right)``, and the root of no leaves is SHA-256 of nothing.

Rules kept here:

- a proof has exactly the hashes that its sizes ask for; one more or one less does not verify;
- whoever checks a proof needs the leaf, its index, two sizes and two roots, and no tree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

EMPTY_ROOT = hashlib.sha256(b"").digest()
HASH_SIZE = 32
MAX_SIZE = 1 << 62
TILE_WIDTH = 256
"""The hashes of a full tile: eight levels of the tree."""


def leaf_hash(digest: bytes) -> bytes:
    """Hash the digest of an entry."""
    return hashlib.sha256(b"\0" + digest).digest()


def missing_leaf(number: int) -> bytes:
    """Stand for an entry that was lost before the tree was made; no entry has this hash."""
    return hashlib.sha256(b"\0maia/1 missing audit entry %d" % number).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two nodes."""
    return hashlib.sha256(b"\1" + left + right).digest()


@dataclass(frozen=True, slots=True)
class Frontier:
    """The right edge of a tree: the roots of its whole subtrees, largest first; enough to go on and to know the root.

    >>> edge = Frontier().extend([leaf_hash(b"a"), leaf_hash(b"b"), leaf_hash(b"c")])
    >>> edge.size, edge.root() == node_hash(node_hash(leaf_hash(b"a"), leaf_hash(b"b")), leaf_hash(b"c"))
    (3, True)
    """

    size: int = 0
    nodes: tuple[bytes, ...] = ()

    def extend(self, leaves: Iterable[bytes]) -> Frontier:
        """Add leaves at the end."""
        size, nodes = self.size, list(self.nodes)
        for leaf in leaves:
            nodes.append(leaf)
            size += 1
            for _ in range((size & -size).bit_length() - 1):
                right = nodes.pop()
                nodes.append(node_hash(nodes.pop(), right))
        return Frontier(size, tuple(nodes))

    def is_whole(self) -> bool:
        """Tell whether there is a node for each whole subtree of that many leaves."""
        return len(self.nodes) == self.size.bit_count() and all(len(node) == HASH_SIZE for node in self.nodes)

    def root(self) -> bytes:
        """Give the root of the whole tree."""
        if not self.nodes:
            return EMPTY_ROOT
        found = self.nodes[-1]
        for node in reversed(self.nodes[:-1]):
            found = node_hash(node, found)
        return found


class MerkleTree:
    """A tree in memory, for proofs over it."""

    def __init__(self, leaves: Iterable[bytes]) -> None:
        """Hash all whole subtrees once."""
        self.rows = [list(leaves)]
        while len(self.rows[-1]) > 1:
            below = self.rows[-1]
            self.rows.append([node_hash(below[at], below[at + 1]) for at in range(0, len(below) - 1, 2)])

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return len(self.rows[0])

    def root(self, size: int | None = None) -> bytes:
        """Give the root over the first leaves."""
        return self._root(0, self.size if size is None else size)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Prove that a leaf is among the first ``size``."""
        found: list[bytes] = []
        start, end = 0, size
        while end - start > 1:
            middle = start + _split(end - start)
            if index < middle:
                found.append(self._root(middle, end))
                end = middle
            else:
                found.append(self._root(start, middle))
                start = middle
        return found[::-1]

    def consistency(self, old: int, size: int) -> list[bytes]:
        """Prove that the first ``size`` leaves begin with the first ``old``."""
        if not 0 < old < size:
            return []
        found: list[bytes] = []
        start, end, whole = 0, size, True
        while old != end:
            middle = start + _split(end - start)
            if old <= middle:
                found.append(self._root(middle, end))
                end = middle
            else:
                found.append(self._root(start, middle))
                start, whole = middle, False
        return ([] if whole else [self._root(start, end)]) + found[::-1]

    def _root(self, start: int, end: int) -> bytes:
        count = end - start
        if count <= 0:
            return EMPTY_ROOT
        if count & (count - 1) == 0 and start % count == 0:
            return self.rows[count.bit_length() - 1][start // count]
        middle = start + _split(count)
        return node_hash(self._root(start, middle), self._root(middle, end))


def inclusion_root(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """Compute the root that a proof of inclusion leads to; nothing when it has not the shape for these numbers."""
    if not 0 <= index < size:
        return None
    found, at, last = leaf, index, size - 1
    for one in proof:
        if last == 0:
            return None
        if at & 1 or at == last:
            found = node_hash(one, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, one)
        at, last = at >> 1, last >> 1
    return found if last == 0 else None


def is_consistent(old: int, size: int, old_root: bytes, root: bytes, proof: Sequence[bytes]) -> bool:
    """Tell whether a proof shows that a tree of ``size`` leaves begins with an older one of ``old``."""
    if not 0 <= old <= size:
        return False
    if old in (0, size):
        return not proof and (old_root == EMPTY_ROOT if old == 0 else old_root == root)
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path:
        return False
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = path[0]
    for one in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node_hash(one, first), node_hash(one, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = node_hash(second, one)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_root and second == root


def tiles_of(tree: MerkleTree, digests: Sequence[bytes]) -> Iterable[tuple[str, Callable[[], bytes], bool]]:
    """Lay a tree out in tiles, by the paths of C2SP tlog-tiles: each path, what it holds, and whether it is full."""
    for level in range(0, len(tree.rows), 8):
        row = tree.rows[level]
        for start in range(0, len(row), TILE_WIDTH):
            part = row[start : start + TILE_WIDTH]
            yield (
                _tile_path(str(level // 8), start // TILE_WIDTH, len(part)),
                part_octets(part),
                len(part) == TILE_WIDTH,
            )
    for start in range(0, len(digests), TILE_WIDTH):
        part = [len(one).to_bytes(2, "big") + one for one in digests[start : start + TILE_WIDTH]]
        path = _tile_path("entries", start // TILE_WIDTH, len(part))
        yield path, part_octets(part), len(part) == TILE_WIDTH


def part_octets(part: Sequence[bytes]) -> Callable[[], bytes]:
    """Join hashes when they are asked for."""
    return lambda: b"".join(part)


def _tile_path(level: str, number: int, width: int) -> str:
    """Name a tile; one that is not full has its width behind it.

    >>> _tile_path("0", 1234067, 256), _tile_path("1", 0, 3)
    ('tile/0/x001/x234/067', 'tile/1/000.p/3')
    """
    rest, words = divmod(number, 1000)[0], [f"{number % 1000:03d}"]
    while rest:
        words.append(f"x{rest % 1000:03d}")
        rest //= 1000
    path = f"tile/{level}/{'/'.join(reversed(words))}"
    return path if width == TILE_WIDTH else f"{path}.p/{width}"


def _split(count: int) -> int:
    """Give the largest power of two below a number."""
    return 1 << ((count - 1).bit_length() - 1)
