"""Key trees: who gets which key, what a message costs, and what is refused."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from dataclasses import replace

import pytest

from maia.encoding import encode
from maia.encryption import (
    ChangeKind,
    GroupChange,
    GroupState,
    KeyGroupId,
    Keyring,
    KeyTree,
    RefreshCause,
    TreeMember,
    TreeNode,
    VerifiedRekey,
    WrapKind,
    make_welcome,
    open_welcome,
    parse_rekey,
    parse_welcome,
    sign_rekey,
    step_group,
    verify_rekey,
)
from maia.errors import EncodingError, SealError, SignatureError, UnavailableError, UsageError, VerificationError
from maia.events import TypeId
from maia.principals import KeySigner

MANAGER, EVE = KeySigner(bytes([1]) * 32), KeySigner(bytes([2]) * 32)
GROUP = KeyGroupId(TypeId(bytes(32)), b"3265")


def individual(name):
    """The key that a newcomer shares with the manager."""
    return hashlib.sha256(name).digest()


class Group:
    """A tree, its messages, and members who follow them."""

    def __init__(self, size=0, followed=range(1000)):
        self.tree = KeyTree(GROUP)
        self.members = {}
        self.log = []
        if size:
            names = [b"m%d" % number for number in range(size)]
            deaf = [name for number, name in enumerate(names) if number not in followed]
            self.rekey(joins=names, deaf=deaf)
            self.members = {name: member for name, member in self.members.items() if name not in deaf}

    def rekey(self, joins=(), leaves=(), deaf=()):
        """Begin an epoch; all but the deaf follow."""
        self.members |= {name: TreeMember(GROUP, name, individual(name)) for name in joins}
        start = 100 * (self.tree.number + 1)
        made = self.tree.rekey(MANAGER, start=start, joins={name: individual(name) for name in joins}, leaves=leaves)
        self.log.append(heard(made))
        return {name: member.apply(self.log[-1]) for name, member in self.members.items() if name not in deaf}

    def cost(self):
        """How many wrapped keys the last message holds."""
        return len(self.log[-1].rekey.keys)


def heard(message):
    """A message as it arrives."""
    return verify_rekey(parse_rekey(message.to_bytes()), MANAGER.public_key)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_everybody_inside_derives_the_same_key(size):
    """And another with every epoch."""
    group = Group()
    first = group.rekey(joins=[b"m%d" % number for number in range(size)])
    assert {epoch.key for epoch in first.values()} == {group.tree.key}
    second = group.rekey()
    assert {epoch.key for epoch in second.values()} == {group.tree.key}
    assert first[b"m0"].key != second[b"m0"].key
    assert (second[b"m0"].number, second[b"m0"].start) == (2, 200)


def test_a_refresh_without_changes_is_one_wrapped_key():
    """Whatever the size."""
    group = Group(100)
    group.rekey()
    assert group.cost() == 1


def test_a_batch_costs_less_than_its_parts():
    """Eight leaves at once share what they change."""
    names = [b"m%d" % number for number in range(0, 64, 8)]
    together, apart = Group(64), Group(64)
    together.rekey(leaves=names)
    total = 0
    for name in names:
        apart.rekey(leaves=[name])
        total += apart.cost()
    assert together.cost() < total
    assert together.members[b"m1"].number == 2


@pytest.mark.threat("T40")
def test_an_eviction_changes_all_that_the_evicted_knew():
    """Eight leaves: the secrets on the path and the three beside it change, the others do not."""
    group = Group(8)
    before = dict(group.tree._secrets.items())
    group.rekey(leaves=[b"m5"])
    after = dict(group.tree._secrets.items())
    path = {TreeNode(level, 5 >> level) for level in range(4)}
    beside = {node.sibling for node in path if node.level < 3}
    same = {node for node in before if after.get(node) == before[node]}
    assert same == before.keys() - path - beside
    replaced = {key.node for key in group.log[-1].rekey.keys if key.kind is WrapKind.NODE}
    assert replaced == beside


def test_a_member_that_was_away_catches_up():
    """It reads what it missed in order and has every key of its time."""
    group = Group(4)
    keys = []
    for change in ({"joins": [b"x"]}, {"leaves": [b"m2"]}, {}, {"joins": [b"y", b"z"], "leaves": [b"m3", b"x"]}):
        group.rekey(**change, deaf=[b"m1"])
        keys.append(group.tree.key)
    late = group.members[b"m1"]
    with pytest.raises(UnavailableError) as caught:
        late.apply(group.log[-1])
    assert caught.value.code == "REKEY_GAP"
    assert [late.apply(message).key for message in group.log[1:]] == keys


def test_messages_may_come_twice_and_late():
    """What was applied is passed over and changes nothing."""
    group = Group(4)
    group.rekey()
    member = group.members[b"m1"]
    state = member.to_bytes()
    assert [member.apply(message) for message in group.log] == [None, None]
    assert member.to_bytes() == state


def test_a_second_history_is_refused():
    """Two messages for one epoch, or one that continues another message, are never applied."""
    group = Group(4)
    twin = KeyTree.from_bytes(group.tree.to_bytes())
    forked = heard(twin.rekey(MANAGER, start=250))
    after = heard(twin.rekey(MANAGER, start=350))
    group.rekey()
    for message in (forked, after):
        with pytest.raises(VerificationError) as caught:
            group.members[b"m0"].apply(message)
        assert caught.value.code == "REKEY_FORK"


@pytest.mark.threat("T43")
def test_a_message_cut_anywhere_changes_nothing():
    """A manager that dies while it sends leaves everybody in the old epoch or in the new one."""
    group = Group(4)
    member = group.members[b"m0"]
    state = member.to_bytes()
    octets = group.tree.rekey(MANAGER, start=200, leaves=[b"m3"]).to_bytes()
    for length in range(len(octets)):
        with pytest.raises(EncodingError):
            parse_rekey(octets[:length])
    assert member.to_bytes() == state
    assert member.apply(verify_rekey(parse_rekey(octets), MANAGER.public_key)).key == group.tree.key


def test_a_signed_message_that_lacks_a_key_changes_nothing():
    """A member takes over a path only when it leads to the promised key."""
    group = Group(4)
    rekey = group.tree.rekey(MANAGER, start=200, leaves=[b"m3"]).rekey
    member = group.members[b"m0"]
    state = member.to_bytes()
    for broken in (
        replace(rekey, keys=()),
        replace(rekey, check=bytes(32)),
        replace(rekey, keys=tuple(replace(key, sealed=bytes(48)) for key in rekey.keys)),
    ):
        with pytest.raises(SealError):
            member.apply(heard(sign_rekey(broken, MANAGER)))
    assert member.to_bytes() == state


def test_only_the_manager_rekeys():
    """Another signature, one bit, another group: refused."""
    group = Group(2)
    message = group.tree.rekey(MANAGER, start=200)
    with pytest.raises(SignatureError):
        verify_rekey(sign_rekey(message.rekey, EVE), MANAGER.public_key)
    with pytest.raises(SignatureError):
        verify_rekey(replace(message, rekey=replace(message.rekey, start=201)), MANAGER.public_key)
    other = TreeMember(KeyGroupId(TypeId(bytes(32)), b"1"), b"m0", individual(b"m0"))
    with pytest.raises(UsageError):
        other.apply(heard(message))
    with pytest.raises(UsageError):
        VerifiedRekey(message, object())
    with pytest.raises(TypeError):
        pickle.dumps(heard(message))


def test_admitted_without_an_epoch():
    """One authorised since the last refresh gets the current key alone, and a place with the next epoch."""
    group = Group(3)
    welcome = group.tree.admit(b"x", individual(b"x"), MANAGER)
    opened = open_welcome(parse_welcome(welcome.to_bytes()), individual(b"x"), MANAGER.public_key)
    assert (opened.key, opened.number) == (group.tree.key, 1)
    assert b"x" in group.tree.members
    for key, manager, error in ((b"m0", MANAGER, SealError), (b"x", EVE, SignatureError)):
        with pytest.raises(error):
            open_welcome(welcome, individual(key), manager.public_key)
    with pytest.raises(SignatureError):
        open_welcome(replace(welcome, start=7), individual(b"x"), MANAGER.public_key)
    group.members[b"x"] = TreeMember(GROUP, b"x", individual(b"x"))
    assert group.rekey()[b"x"].key == group.tree.key
    group.tree.admit(b"y", individual(b"y"), MANAGER)
    group.rekey(leaves=[b"y"])
    assert b"y" not in group.tree.members


def test_the_last_one_out_leaves_a_key_for_nobody():
    """An empty group has epochs too, and takes members again."""
    group = Group(3)
    assert set(group.rekey(leaves=[b"m0", b"m1", b"m2"]).values()) == {None}
    assert (group.tree.height, group.cost(), len(group.tree.members)) == (0, 0, 0)
    assert group.rekey(joins=[b"z"])[b"z"].key == group.tree.key


def test_the_tree_shrinks_with_its_top():
    """When the high slots are free again, paths are short again."""
    group = Group(9)
    assert group.tree.height == 4
    assert group.rekey(leaves=[b"m8"])[b"m0"].key == group.tree.key
    assert group.tree.height == 3
    assert group.rekey(leaves=[b"m%d" % number for number in range(2, 8)])[b"m1"].key == group.tree.key
    assert (group.tree.height, group.members[b"m1"].keys_held) == (1, 3)


def test_a_manager_goes_on_from_what_it_wrote_down():
    """Members follow it as if nothing had happened."""
    group = Group(6)
    group.tree.admit(b"x", individual(b"x"), MANAGER)
    group.tree = KeyTree.from_bytes(group.tree.to_bytes())
    group.members[b"x"] = TreeMember(GROUP, b"x", individual(b"x"))
    keys = {epoch.key for epoch in group.rekey(leaves=[b"m1"], joins=[b"y"], deaf=[b"m1"]).values()}
    assert keys == {group.tree.key}
    for junk in (b"(8:key-tree)", encode((b"key-tree", (b"group", b"a", b"b"), (b"epoch",) + 4 * (b"x",), (b"members",),
                                          (b"waiting",), (b"secrets",)))):  # fmt: skip
        with pytest.raises(EncodingError):
            KeyTree.from_bytes(junk)
        with pytest.raises(EncodingError):
            TreeMember.from_bytes(junk)


REFUSED = {
    "a stranger leaves": ({"leaves": [b"x"]}, "NOT_A_MEMBER"),
    "a member joins": ({"joins": {b"m0": bytes(32)}}, "ALREADY_MEMBER"),
    "a short key": ({"joins": {b"x": bytes(31)}}, "MEMBER_KEY"),
    "no name": ({"joins": {b"": bytes(32)}}, "MEMBER_NAME"),
    "the same start": ({"start": 100}, "EPOCH_ORDER"),
    "an earlier start": ({"start": 99}, "EPOCH_ORDER"),
}


@pytest.mark.parametrize("change, code", REFUSED.values(), ids=REFUSED)
def test_refused_changes_change_nothing(change, code):
    """The manager checks first."""
    group = Group(2)
    state = group.tree.to_bytes()
    with pytest.raises(UsageError) as caught:
        group.tree.rekey(MANAGER, **{"start": 200, **change})
    assert caught.value.code == code
    assert group.tree.to_bytes() == state


def test_admission_is_checked():
    """No epoch, no key; a member is not admitted twice."""
    with pytest.raises(UsageError):
        KeyTree(GROUP).admit(b"x", bytes(32), MANAGER)
    group = Group(2)
    for name, key in ((b"m0", bytes(32)), (b"x", b"")):
        with pytest.raises(UsageError):
            group.tree.admit(name, key, MANAGER)
    with pytest.raises(UsageError):
        TreeMember(GROUP, b"x", b"")


def test_no_key_is_shown_or_pickled():
    """Not by repr, not by pickle, and no message holds one in the clear."""
    group = Group(2)
    epoch = group.rekey()[b"m0"]
    secret = [group.tree.key, *dict(group.tree._secrets.items()).values(), individual(b"m0")]
    for thing in (group.tree, group.tree._secrets, group.members[b"m0"], epoch):
        assert not any(key.hex() in repr(thing) or repr(key)[2:-1] in repr(thing) for key in secret)
        with pytest.raises(TypeError):
            pickle.dumps(thing)
    octets = b"".join(message.message.to_bytes() for message in group.log)
    assert not any(key in octets for key in secret)


def mangled(**fields):
    """A message with some fields replaced, as octets."""
    group = Group(3)
    rekey = group.tree.rekey(MANAGER, start=200, joins={b"x": bytes(32)}, leaves=[b"m1"]).rekey
    values = {name: change(getattr(rekey, name)) for name, change in fields.items()}
    return sign_rekey(replace(rekey, **values), MANAGER).to_bytes()


SPELLINGS = {
    "keys out of order": {"keys": lambda keys: keys[::-1]},
    "a key twice": {"keys": lambda keys: (keys[0], *keys)},
    "a key too short": {"keys": lambda keys: (replace(keys[0], sealed=bytes(47)),)},
    "a node too high": {"keys": lambda keys: (replace(keys[0], node=TreeNode(33, 0)),)},
    "a node beside the tree": {"vacant": lambda _: (TreeNode(31, 2),)},
    "a member placed twice": {"placed": lambda _: ((0, b"x"), (1, b"x"))},
    "two in one place": {"placed": lambda _: ((0, b"x"), (0, b"y"))},
    "no name": {"placed": lambda _: ((0, b""),)},
    "a tree too high": {"height": lambda _: 33},
    "a short salt": {"salt": lambda _: b""},
    "a negative number": {"number": lambda _: -1},
}


@pytest.mark.parametrize("fields", SPELLINGS.values(), ids=SPELLINGS)
def test_a_message_has_one_spelling(fields):
    """Whatever else is signed is refused when read."""
    with pytest.raises(EncodingError):
        parse_rekey(mangled(**fields))


def test_a_welcome_has_one_spelling():
    """Numbers with zeros in front, other shapes and cut octets are refused."""
    welcome = make_welcome(GROUP, b"x", bytes(32), number=7, start=100, key=bytes(32), signer=MANAGER)
    octets = welcome.to_bytes()
    broken = [
        octets.replace(b"1:7", b"1:x"),
        octets.replace(b"7:welcome", b"7:Welcome"),
        *(octets[:n] for n in range(9)),
    ]
    padded = welcome.body().replace(b"3:100", b"4:0100")
    broken.append(encode((b"signed", padded, MANAGER.public_key.raw, bytes(64))))
    for data in broken:
        with pytest.raises(EncodingError):
            parse_welcome(data)


@pytest.mark.threat("T46")
def test_a_key_that_is_used_up_is_refreshed_and_nothing_is_lost():
    """With a cap of 1,000 uses, 2,500 events are sealed under three keys, none more than 1,000 times."""
    group, ring, state = Group(3), Keyring(cap=1000), GroupState(last=100)
    ring.add(GROUP, group.tree.start, group.tree.key)
    used, now = Counter(), 100
    for _ in range(2500):
        now += 1
        try:
            epoch = ring.sealing_epoch(GROUP, now)
        except SealError:
            exhausted = GroupChange(at=now, kind=ChangeKind.EXHAUST)
            state, refresh = step_group(state, [exhausted], at=now, period=None)
            assert refresh.causes == {RefreshCause.USE}
            message = heard(group.tree.rekey(MANAGER, start=refresh.at))
            opened = group.members[b"m0"].apply(message)
            ring.add(GROUP, opened.start, opened.key)
            epoch = ring.sealing_epoch(GROUP, now)
        used[epoch] += 1
    assert sorted(used.values()) == [500, 1000, 1000]
