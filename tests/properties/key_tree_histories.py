"""Histories of a key group on the real tree and messages, and what pooled knowledge finds in them.

The closure is Dolev and Yao's: two members start from the keys they ever shared with the manager, hear every message,
and do whatever the functions of the tree allow until nothing new comes out. Values are the real octets. A mixture is
kept only when the manager once had it at that node; any other is a fresh hash that nothing is wrapped under, so leaving
it out loses nothing and keeps the closure finite.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from maia.encryption import (
    KeyGroupId,
    KeyTree,
    RekeyMessage,
    TreeMember,
    TreeNode,
    Welcome,
    WrapKind,
    open_welcome,
    parse_rekey,
    verify_rekey,
)
from maia.encryption.tree_keys import binding_of, blind, group_context, group_key, lift, mix, unwrap
from maia.encryption.tree_secrets import TreeSecrets
from maia.errors import SealError
from maia.events import TypeId
from maia.principals import KeySigner

MANAGER = KeySigner(bytes([9]) * 32)
GROUP = KeyGroupId(TypeId(bytes(32)), b"3265")
CONTEXT = group_context(GROUP)


class PlainSecrets(TreeSecrets):
    """Secrets without the cure: only the nearest neighbours of the evicted change, as first published."""

    __slots__ = ()

    def _exposed(self, evicted: Iterable[int], height: int) -> frozenset[TreeNode]:
        nearest = set()
        for slot in evicted:
            beside = (TreeNode(level, slot >> level).sibling for level in range(height))
            nearest |= {next((node for node in beside if self.get(node) is not None), TreeNode(0, slot))}
        return frozenset(nearest)


class PlainTree(KeyTree):
    """The tree without the cure."""

    __slots__ = ()

    def _begin(self, *arguments, **options) -> RekeyMessage:
        self._secrets = PlainSecrets(self._context, dict(self._secrets.items()))
        return super()._begin(*arguments, **options)


@dataclass
class History:
    """A group as it went: the messages, who had a right to which epoch, and what the manager ever knew."""

    tree: KeyTree
    messages: list[RekeyMessage] = field(default_factory=list)
    welcomes: list[Welcome] = field(default_factory=list)
    keys: dict[int, bytes] = field(default_factory=dict)
    entitled: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    individual: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    followers: dict[str, TreeMember] = field(default_factory=dict)
    real: dict[TreeNode, set[bytes]] = field(default_factory=lambda: defaultdict(set))

    def new_key(self, name: str) -> bytes:
        """Make the key that a newcomer shares with the manager, new for each membership."""
        key = hashlib.sha256(f"{name} {len(self.individual[name])}".encode()).digest()
        self.individual[name].append(key)
        self.followers[name] = TreeMember(GROUP, name.encode(), key)
        return key

    @property
    def inside(self) -> set[str]:
        """The members' names."""
        return {member.decode() for member in self.tree.members}

    def rekey(self, joins: Iterable[str] = (), leaves: Iterable[str] = ()) -> RekeyMessage:
        """Begin an epoch and remember everything about it."""
        new = {name.encode(): self.new_key(name) for name in sorted(set(joins))}
        start = 100 * (self.tree.number + 1)
        return self.record(self.tree.rekey(MANAGER, start=start, joins=new, leaves=[name.encode() for name in leaves]))

    def restore(self, backup: bytes) -> RekeyMessage | None:
        """Bring the manager back from a backup, and let it go on after the messages that it does not know."""
        tree = type(self.tree).from_bytes(backup)
        later = [heard(message) for message in self.messages if message.rekey.number > tree.number]
        if not later:
            return None  # what it admitted meanwhile it would not know; a manager that lost nothing else has no sign
        self.tree = tree
        return self.record(tree.restart(MANAGER, later, start=later[-1].rekey.start + 100))

    def record(self, message: RekeyMessage) -> RekeyMessage:
        """Remember everything about an epoch that was begun."""
        self.messages.append(message)
        self.keys[message.rekey.number] = self.tree.key
        for name in self.inside:
            self.entitled[name].add(message.rekey.number)
        for node, secret in self.tree._secrets.items():
            self.real[node].add(secret)
        return message

    def admit(self, name: str) -> Welcome:
        """Let one in without a new epoch, or in again when it lost what it knew."""
        let_in = self.tree.readmit if name in self.inside else self.tree.admit
        welcome = let_in(name.encode(), self.new_key(name), MANAGER)
        self.welcomes.append(welcome)
        self.entitled[name].add(self.tree.number)
        return welcome

    def toggle(self, names: Iterable[str]) -> RekeyMessage:
        """Put out the members among the names and take in the others."""
        chosen, inside = set(names), self.inside
        return self.rekey(joins=chosen - inside, leaves=chosen & inside)

    def found_by(self, *names: str) -> set[int]:
        """List the epochs whose keys these members find together."""
        pool = Closure([key for name in names for key in self.individual[name]], self.real)
        pool.saturate(self.messages)
        found = {number for number, key in pool.group_keys(self.messages) if key == self.keys[number]}
        for welcome in self.welcomes:
            for key in pool.individual:
                try:
                    opened = open_welcome(welcome, key, MANAGER.public_key)
                except SealError:
                    continue
                if opened.key == self.keys[opened.number]:
                    found.add(opened.number)
        return found

    def owed_to(self, *names: str) -> set[int]:
        """List the epochs that these members have a right to."""
        return set().union(*(self.entitled[name] for name in names))


class Closure:
    """Everything that follows from some keys and all messages."""

    def __init__(self, individual: list[bytes], real: dict[TreeNode, set[bytes]]) -> None:
        self.individual = individual
        self.real = real
        self.secrets: dict[TreeNode, set[bytes]] = defaultdict(set)
        self.blinds: dict[TreeNode, set[bytes]] = defaultdict(set)

    def saturate(self, messages: list[RekeyMessage]) -> None:
        """Open and mix until nothing new comes out."""
        closed = [
            (key, binding_of(CONTEXT, message.rekey.number, message.rekey.salt))
            for message in messages
            for key in message.rekey.keys
        ]
        growing = True
        while growing:
            before, size = len(closed), sum(map(len, self.secrets.values()))
            closed = [(key, binding) for key, binding in closed if not self.open(key, binding)]
            for node, secrets in list(self.secrets.items()):
                self.blinds[node] |= {blind(secret, node, CONTEXT) for secret in secrets}
            self.mix()
            growing = len(closed) < before or sum(map(len, self.secrets.values())) > size

    def open(self, key, binding) -> bool:
        """Try every known secret on a wrapped key."""
        openers = {
            WrapKind.LEAF: self.individual,
            WrapKind.NODE: self.secrets[key.node],
            WrapKind.BLIND: self.secrets[key.node.sibling],
        }[key.kind]
        for opener in list(openers):
            try:
                value = unwrap(opener, key.sealed, key.kind, key.node, binding)
            except SealError:
                continue
            (self.blinds if key.kind is WrapKind.BLIND else self.secrets)[key.node].add(value)
            return True
        return False

    def mix(self) -> None:
        """Mix what is known of the two children of a node, of whatever time, and lift what is known of one."""
        for node, secrets in list(self.secrets.items()):
            lifted = {lift(secret, node.parent, CONTEXT) for secret in secrets}
            self.secrets[node.parent] |= lifted & self.real[node.parent]
        for parent in {node.parent for node in list(self.blinds)}:
            left, right = (TreeNode(parent.level - 1, 2 * parent.index + side) for side in (0, 1))
            for one in self.blinds[left]:
                for other in self.blinds[right]:
                    made = mix(one, other, parent, CONTEXT)
                    if made in self.real[parent]:
                        self.secrets[parent].add(made)

    def group_keys(self, messages: list[RekeyMessage]) -> Iterable[tuple[int, bytes]]:
        """Derive the group key of every epoch from every known secret of its root."""
        for message in messages:
            rekey = message.rekey
            for secret in self.secrets[TreeNode(rekey.height, 0)]:
                yield rekey.number, group_key(secret, number=rekey.number, start=rekey.start, context=CONTEXT)


def heard(message: RekeyMessage):
    """A message as a member receives it: parsed from octets and verified."""
    return verify_rekey(parse_rekey(message.to_bytes()), MANAGER.public_key)
