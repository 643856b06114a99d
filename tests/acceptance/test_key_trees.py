"""Key trees: who gets which key, what a message costs, and what is refused."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from itertools import pairwise

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encryption import (
    GroupPlace,
    GroupRequest,
    JoinGroups,
    KeyGroupId,
    KeyTree,
    TreeMember,
    join_public_key,
    make_welcome,
    new_join_key,
    open_join_answer,
    parse_rekey,
    seal_place,
    sign_group_request,
    sign_join_answer,
    verify_group_request,
    verify_rekey,
)
from maia.errors import SignatureError, VerificationError
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


@pytest.mark.requirement("16.03")
def test_state_and_messages_grow_with_the_logarithm():
    """1024 members: at most 21 keys each, a leave costs a few keys a level; doubling the group adds a constant."""
    leaves, joins = [], []
    for size in (256, 512, 1024):
        group = Group(size, followed={0, 6, 7, size - 1})
        levels = size.bit_length() - 1
        assert group.tree.height == levels
        assert max(member.keys_held for member in group.members.values()) == 2 * levels + 1
        group.rekey(leaves=[b"m7"])
        leaves.append(group.cost())
        group.rekey(joins=[b"new"])
        joins.append(group.cost())
        assert group.members[b"m0"].number == group.members[b"new"].number == 3
        assert leaves[-1] <= 3 * levels
        assert joins[-1] == 2 * levels + 1
    assert [later - sooner for sooner, later in pairwise(leaves)] == [3, 3]
    assert [later - sooner for sooner, later in pairwise(joins)] == [2, 2]


@pytest.mark.threat("T43")
def test_a_message_that_the_manager_did_not_sign_moves_nobody():
    """Eve makes a tree of her own and sends its message: under her name, under the manager's, and as an altered one."""
    group, eves = Group(3), KeyTree(GROUP)
    made = eves.rekey(EVE, start=100, joins={b"m0": individual(b"m0")})
    genuine = group.tree.rekey(MANAGER, start=200, leaves=[b"m2"])
    later = replace(genuine, rekey=replace(genuine.rekey, start=999))
    for forged in (made, replace(made, signer=MANAGER.public_key), later, replace(genuine, signature=bytes(64))):
        with pytest.raises(SignatureError):
            heard(forged)
    assert group.members[b"m0"].apply(heard(genuine)).start == 200


@pytest.mark.threat("T26")
def test_requests_answers_and_welcomes_bear_the_signature_of_whom_they_name():
    """Eve asks in Ann's name and answers in the manager's; what Ann asked of one manager she did not ask of another."""
    ann, private = KeySigner(bytes([3]) * 32), new_join_key()
    member, manager = ann.public_key.key_id, MANAGER.public_key
    asked = GroupRequest(
        manager=manager.key_id, type_id=GROUP.type_id, stamp=100, what=JoinGroups(key=join_public_key(private))
    )
    genuine = sign_group_request(asked, ann)
    assert verify_group_request(genuine, manager.key_id).request == asked
    with pytest.raises(SignatureError):
        verify_group_request(stolen(sign_group_request(asked, EVE), ann), manager.key_id)
    with pytest.raises(VerificationError, match="WRONG_AUDIENCE"):
        verify_group_request(genuine, EVE.public_key.key_id)

    def welcome(by):
        return make_welcome(GROUP, member, b"I" * 32, number=7, start=100, key=b"K" * 32, signer=by).to_bytes()

    def answered(by, welcomed):
        sealed = seal_place(b"I" * 32, join_public_key(private), group=GROUP, member=member, manager=manager)
        place = GroupPlace(group=GROUP, number=7, sealed=sealed, welcome=welcomed)
        return sign_join_answer([place], join_public_key(private), member=member, signer=by)

    def opened(answer, *, key=private):
        return open_join_answer(answer, key, member=member, manager=manager)

    good = welcome(MANAGER)
    assert [place.number for place in opened(answered(MANAGER, good))] == [7]
    eves = answered(EVE, good)
    forged = (
        eves,
        stolen(eves, MANAGER),
        *(answered(MANAGER, w) for w in (welcome(EVE), stolen(welcome(EVE), MANAGER))),
    )
    for answer in forged:
        with pytest.raises(SignatureError):
            opened(answer)
    with pytest.raises(VerificationError, match="WRONG_ANSWER"):
        opened(answered(MANAGER, good), key=new_join_key())


def stolen(signed, owner):
    """Put another's key where Eve's stands, and leave her signature."""
    assert EVE.public_key.raw in signed
    return signed.replace(EVE.public_key.raw, owner.public_key.raw)


@pytest.mark.requirement("16.09")
def test_neither_older_nor_newer_events_open():
    """A newcomer has no key from before, an evicted member none from after: sealed bytes of those times stay closed."""
    group = Group(5)
    sealed = {1: AESGCM(group.tree.key).encrypt(bytes(12), b"AE05 XYZ", None)}
    held = {b"new": [], b"m3": [group.rekey()[b"m3"].key]}
    for epoch in (group.rekey(joins=[b"new"])[b"new"], group.rekey()[b"new"]):
        held[b"new"].append(epoch.key)
    assert group.rekey(leaves=[b"m3"])[b"m3"] is None
    sealed[5] = AESGCM(group.tree.key).encrypt(bytes(12), b"AE05 XYZ", None)
    for name, number in ((b"new", 1), (b"m3", 5)):
        for key in held[name]:
            with pytest.raises(InvalidTag):
                AESGCM(key).decrypt(bytes(12), sealed[number], None)
    assert group.members[b"m3"].keys_held == 0


@pytest.fixture(scope="module")
def bench(benchmark):
    """Load the benchmark of the key trees."""
    return benchmark("bench_keys")


@pytest.mark.slow
@pytest.mark.requirement("21.08")
def test_costs_fit_the_logarithm(bench):
    """From 2 to 4096 members: keys stored, wrapped keys and octets follow log n with R² of at least 0.98."""
    rows = [bench.measure(1 << power, 2) for power in range(1, 13)]
    for value in (
        lambda row: row.state,
        lambda row: row.join.keys,
        lambda row: row.leave.keys,
        lambda row: row.join.octets,
        lambda row: row.leave.octets,
    ):
        _, slope, quality = bench.fit(rows, value)
        assert slope > 0
        assert quality >= 0.98
    assert all(row.plain.keys <= 2 * math.log2(row.size) for row in rows)


@pytest.mark.requirement("21.11")
def test_the_rules_save_refreshes_under_churn(bench):
    """Thirty runs of churn: with 95 % confidence most refreshes of the naive policy are saved."""
    for _, naive, rules, share, half in bench.saved(brokers=15, days=10):
        assert rules < naive
        assert share - half > 0.5
