"""The manager's side of a key group: a one-way function tree (Sherman and McGrew), one message an epoch.

Members sit at leaves. A node's secret is mixed from its children's blinded secrets; a member knows the secrets on its
path to the root and the blinded secrets beside it, so it stores at most 2·height + 1 keys. A slot stays with its
member; newcomers take the lowest free one. Beside an empty subtree a secret is lifted instead of mixed.
The height follows the highest taken slot, so a group that shrank stays as high until its high slots are free.

Rules kept here:

- what an epoch changes, so that who is out or not yet in learns nothing of it, is kept in `tree_secrets` (T40);
- numbers and starts only grow, and a message names the one before.

A join that needs no refresh (16.04) is `KeyTree.admit`: the newcomer gets the current key alone and is placed with the
next epoch. A member that lost what it knew is readmitted: it gets the current key under a new key of its own and a new
place with the next epoch, where its old place counts as an eviction. A leave that can wait (16.05) is simply a later
``leaves``. A manager that comes back from an old backup goes on with `KeyTree.restart`, in an epoch after all that the
log shows.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Container, Iterable, Mapping, Sequence

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption.epochs import EpochId
from maia.encryption.keyring import KEY_LENGTH, KeyGroupId
from maia.encryption.rekeys import MAX_NAME, SALT_LENGTH, Rekey, RekeyMessage, VerifiedRekey, sign_rekey
from maia.encryption.tree_keys import (
    MAX_HEIGHT,
    TreeNode,
    binding_of,
    group_context,
    group_key,
    key_check,
)
from maia.encryption.tree_restart import empty_from, survivors
from maia.encryption.tree_secrets import EpochWork, TreeSecrets
from maia.encryption.tree_slots import Slots
from maia.encryption.welcomes import Welcome, make_welcome
from maia.errors import EncodingError, UsageError
from maia.events import TypeId
from maia.principals import Signer

NO_MESSAGE = bytes(32)
_LIMITS = SexpLimits(max_bytes=512 << 20, max_depth=4, max_atom=1024)


class KeyTree:
    """The tree of one key group, with all its secrets. Never travels, never shows them."""

    __slots__ = (
        "_context", "_individual", "_previous", "_root", "_secrets", "_slots", "_waiting", "group", "number", "start",
    )  # fmt: skip

    def __init__(self, group: KeyGroupId) -> None:
        """Start without members and without a key."""
        self.group = group
        self.number = 0
        self.start = EpochId(-1)
        self._context = group_context(group)
        self._slots = Slots()
        self._secrets = TreeSecrets(self._context)
        self._individual: dict[bytes, bytes] = {}
        self._waiting: dict[bytes, bytes] = {}
        self._previous = NO_MESSAGE
        self._root = b""

    def __repr__(self) -> str:
        """Count, never show."""
        return f"KeyTree({len(self._individual)} members, epoch {self.number})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("a key tree cannot be pickled")

    @property
    def members(self) -> frozenset[bytes]:
        """Those who follow the group: placed, or admitted and waiting for a place."""
        return frozenset(self._individual) | frozenset(self._waiting)

    @property
    def places(self) -> tuple[tuple[int, bytes], ...]:
        """Who sits at which leaf, in order; those who wait for a place are not among them."""
        return tuple(self._slots.items())

    @property
    def digest(self) -> bytes:
        """The digest of the newest message, or zeros before the first."""
        return self._previous

    @property
    def height(self) -> int:
        """How many levels lie between a leaf and the root."""
        return self._slots.height

    @property
    def key(self) -> bytes:
        """The current epoch's key.

        Raises:
            UsageError: There was no epoch yet.
        """
        if not self.number:
            raise UsageError("a group without an epoch has no key", code="NO_EPOCH")
        return group_key(self._root, number=self.number, start=self.start, context=self._context)

    def admit(self, member: bytes, individual: bytes, signer: Signer) -> Welcome:
        """Give a newcomer the current key alone, without a new epoch; it is placed with the next.

        Only for one who was authorised when the current epoch began.

        Raises:
            UsageError: It is a member already, its key is unusable, or there is no epoch yet.
        """
        if self._has(member):
            raise UsageError("a member joins once", code="ALREADY_MEMBER")
        return self._welcome(member, individual, signer)

    def readmit(self, member: bytes, individual: bytes, signer: Signer) -> Welcome:
        """Give a member that lost what it knew the current key under a new key; its new place comes with the next.

        Raises:
            UsageError: It is no member, its key is unusable or not new, or there is no epoch yet.
        """
        held = self.individual(member)
        if held is None:
            raise UsageError("only a member can lose its keys", code="NOT_A_MEMBER")
        if hmac.compare_digest(held, individual):
            raise UsageError("a key serves one membership", code="MEMBER_KEY")
        return self._welcome(member, individual, signer)

    def _has(self, member: bytes) -> bool:
        return member in self._individual or member in self._waiting

    def _welcome(self, member: bytes, individual: bytes, signer: Signer) -> Welcome:
        _check_newcomer(member, individual)
        made = make_welcome(
            self.group, member, individual, number=self.number, start=self.start, key=self.key, signer=signer
        )
        self._waiting[member] = individual
        return made

    def individual(self, member: bytes) -> bytes | None:
        """Return the key that a member shares with the manager, the newest when it lost an older one."""
        return self._waiting.get(member) or self._individual.get(member)

    def rekey(
        self, signer: Signer, *, start: int, joins: Mapping[bytes, bytes] | None = None, leaves: Iterable[bytes] = ()
    ) -> RekeyMessage:
        """Begin the next epoch: put out, take in, and change whatever must change, in one message.

        Args:
            signer: The group's manager.
            start: When the epoch begins, later than the one before.
            joins: By newcomer, the key it shares with the manager; used for this membership only.
            leaves: Members to put out.

        Raises:
            UsageError: A leaver is no member, a newcomer is one, a key is unusable, or time does not go on. Nothing
                has changed then.

        >>> from maia.encryption import TreeMember, verify_rekey
        >>> from maia.events import TypeId
        >>> from maia.principals import KeySigner
        >>> manager, group = KeySigner(bytes(32)), KeyGroupId(TypeId(bytes(32)), b"3265")
        >>> tree, ann, bob = KeyTree(group), TreeMember(group, b"ann", b"A" * 32), TreeMember(group, b"bob", b"B" * 32)
        >>> first = verify_rekey(
        ...     tree.rekey(manager, start=100, joins={b"ann": b"A" * 32, b"bob": b"B" * 32}), manager.public_key)
        >>> ann.apply(first).key == bob.apply(first).key == tree.key
        True
        >>> second = verify_rekey(tree.rekey(manager, start=200, leaves=[b"bob"]), manager.public_key)
        >>> ann.apply(second).key == tree.key, bob.apply(second)
        (True, None)
        """
        leavers = frozenset(leaves)
        self._check(leavers, joins or {}, start)
        newcomers = {name: key for name, key in self._waiting.items() if name not in leavers} | dict(joins or {})
        before = self._slots.height
        evicted = [
            self._slots.free(member) for member in sorted((leavers | newcomers.keys()) & self._individual.keys())
        ]
        for member in leavers:
            self._individual.pop(member, None)
        return self._begin(signer, start=start, newcomers=newcomers, evicted=evicted, before=before)

    def restart(
        self, signer: Signer, messages: Sequence[VerifiedRekey], *, start: int, keep: Container[bytes] | None = None
    ) -> RekeyMessage:
        """Begin an epoch after messages that this tree did not make: it comes from a backup older than they are.

        The tree is built anew. Members that the messages show inside, under the keys known here, are placed again;
        whoever joined meanwhile, or cannot be shown to be inside, is out and must join again.

        Args:
            signer: The group's manager.
            messages: What followed, oldest first; those before the last may be missing, which puts everybody out.
            start: When the epoch begins, later than all of them.
            keep: Who may stay at all; everybody when it is absent.

        Raises:
            UsageError: The messages are another group's or what this tree made itself, or time does not go on.
        """
        if not messages or any(item.rekey.group != self.group for item in messages):
            raise UsageError("a restart goes on from the group's own messages", code="REKEY_GROUP")
        last = messages[-1]
        if last.message.digest == self._previous or start <= last.rekey.start:
            raise UsageError("an epoch begins later than the one before", code="EPOCH_ORDER")
        newcomers: dict[bytes, bytes] = {}
        if messages[0].rekey.previous == self._previous:
            inside = survivors(dict(self._slots.items()), self._individual | self._waiting, messages)
            newcomers = {name: key for name, key in inside.items() if keep is None or name in keep}
        self._slots, self._secrets, self._individual = Slots(), TreeSecrets(self._context), {}
        self.number, self._previous = last.rekey.number, last.message.digest
        return self._begin(signer, start=start, newcomers=newcomers, evicted=(), before=0, anew=True)

    def _begin(
        self,
        signer: Signer,
        *,
        start: int,
        newcomers: Mapping[bytes, bytes],
        evicted: Sequence[int],
        before: int,
        anew: bool = False,
    ) -> RekeyMessage:
        """Place newcomers, change what must change, and sign."""
        placed = {self._slots.take(member): member for member in sorted(newcomers)}
        self._individual |= newcomers
        self._waiting = {}

        salt, number = secrets.token_bytes(SALT_LENGTH), self.number + 1
        work = EpochWork(binding_of(self._context, number, salt), self._slots.height)
        taken = {slot: self._individual[member] for slot, member in placed.items()}
        self._secrets.climb(work, evicted, taken, before)
        self._secrets.hand_out(work)
        self.number, self.start = number, EpochId(start)
        root = self._secrets.get(TreeNode(work.height, 0))
        self._root = secrets.token_bytes(KEY_LENGTH) if root is None else root  # a key for nobody, when nobody is left
        message = sign_rekey(
            Rekey(
                group=self.group, number=number, start=start, previous=self._previous, salt=salt,
                check=key_check(self.key), height=work.height, placed=tuple(sorted(placed.items())),
                vacant=empty_from(len(placed), work.height) if anew else self._secrets.vacant(evicted, self.height),
                keys=tuple(sorted(work.keys, key=lambda key: (key.kind.value, key.node))),
            ),
            signer,
        )  # fmt: skip
        self._previous = message.digest
        return message

    def to_bytes(self) -> bytes:
        """Write everything, in the clear, for sealing and for nothing else.

        Written together with the message that `rekey` returned, it lets a manager go on after a crash without a second
        key for any epoch.
        """
        slots = self._slots.items()
        return encode(
            (
                b"key-tree",
                (b"group", self.group.type_id, self.group.label),
                (b"epoch", b"%d" % self.number, b"%d" % (self.start + 1), self._previous, self._root),
                (b"members", *((b"%d" % slot, name, self._individual[name]) for slot, name in slots)),
                (b"waiting", *((name, key) for name, key in sorted(self._waiting.items()))),
                (b"secrets", *((b"%d" % n.level, b"%d" % n.index, s) for n, s in self._secrets.items())),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> KeyTree:
        """Read what `to_bytes` wrote.

        Raises:
            EncodingError: It is something else.
        """
        try:
            match parse_canonical(data, limits=_LIMITS):
                case (
                    b"key-tree",
                    (b"group", bytes(type_id), bytes(label)),
                    (b"epoch", bytes(number), bytes(start), bytes(previous), bytes(root)),
                    (b"members", *members),
                    (b"waiting", *waiting),
                    (b"secrets", *nodes),
                ):
                    tree = cls(KeyGroupId(TypeId(type_id), label))
                    tree.number, tree.start = int(number), EpochId(int(start) - 1)
                    tree._previous, tree._root = previous, root
                    tree._slots = Slots((_number(slot), name) for slot, name, _ in members)  # type: ignore[misc]
                    tree._individual = {name: key for _, name, key in members}  # type: ignore[misc]
                    tree._waiting = dict(waiting)  # type: ignore[arg-type]
                    tree._secrets = TreeSecrets(
                        tree._context,
                        {TreeNode(_number(a), _number(b)): key for a, b, key in nodes},  # type: ignore[misc]
                    )
                    return tree
        except (TypeError, ValueError) as error:
            raise EncodingError("not a key tree", code="KEY_TREE_SHAPE") from error
        raise EncodingError("not a key tree", code="KEY_TREE_SHAPE")

    def _check(self, leavers: frozenset[bytes], joins: Mapping[bytes, bytes], start: int) -> None:
        if start <= self.start:
            raise UsageError("an epoch begins later than the one before", code="EPOCH_ORDER")
        # One by one: the set of all members is large, and a change must not cost more than its own size.
        if not all(self._has(member) for member in leavers):
            raise UsageError("only a member can leave", code="NOT_A_MEMBER")
        if any(self._has(member) and member not in leavers for member in joins):
            raise UsageError("a member joins once", code="ALREADY_MEMBER")
        for member, individual in joins.items():
            _check_newcomer(member, individual)
        if len(self._individual) + len(self._waiting) + len(joins) > 1 << (MAX_HEIGHT - 1):
            raise UsageError("more members than a group holds", code="GROUP_FULL")


def _check_newcomer(member: bytes, individual: bytes) -> None:
    if not 0 < len(member) <= MAX_NAME:
        raise UsageError(f"a member's name has 1 to {MAX_NAME} octets", code="MEMBER_NAME")
    if len(individual) != KEY_LENGTH:
        raise UsageError(f"a newcomer's key has {KEY_LENGTH} octets", code="MEMBER_KEY")


def _number(text: object) -> int:
    """Read a number as `to_bytes` wrote it."""
    if not isinstance(text, bytes):
        raise TypeError("a number is an octet string")
    return int(text)
