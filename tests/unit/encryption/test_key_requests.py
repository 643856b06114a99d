"""Requests to a key manager and its answers: one spelling, one sender, one reader; trees that go on after a backup."""

from __future__ import annotations

import pickle

import pytest

from maia.encoding import encode
from maia.encryption import (
    CountUse,
    GroupPlace,
    GroupRequest,
    JoinGroups,
    KeyGroupId,
    KeyTree,
    LeaveGroups,
    TreeMember,
    VerifiedGroupRequest,
    join_public_key,
    make_welcome,
    new_join_key,
    open_join_answer,
    seal_place,
    sign_group_request,
    sign_join_answer,
    verify_group_request,
    verify_rekey,
)
from maia.errors import (
    EncodingError,
    MaiaError,
    SealError,
    SignatureError,
    UsageError,
    VerificationError,
)
from maia.events import TypeId
from maia.principals import KeySigner, Kind

MANAGER, BROKER, EVE = (KeySigner(bytes([number]) * 32) for number in (1, 2, 3))
KEY, ME = MANAGER.public_key, BROKER.public_key.key_id
TYPE = TypeId(bytes([7]) * 32)
GROUP = KeyGroupId(TYPE, b"3265")
PRIVATE = new_join_key()
WHATS = {
    "join": JoinGroups(key=join_public_key(PRIVATE)),
    "leave everything": LeaveGroups(),
    "leave two": LeaveGroups(labels=(b"1", b"*")),
    "count": CountUse(uses=((b"1", 7, 100), (b"*", 1, 0))),
}


def request(what, *, manager=KEY.key_id, stamp=100):
    """Make a request."""
    return GroupRequest(manager=manager, type_id=TYPE, stamp=stamp, what=what)


@pytest.mark.parametrize("what", WHATS.values(), ids=WHATS)
def test_a_request_arrives_as_it_was_signed(what):
    """And names its sender."""
    verified = verify_group_request(sign_group_request(request(what), BROKER), KEY.key_id)
    assert (verified.request, verified.sender) == (request(what), BROKER.public_key)


@pytest.mark.parametrize("what", WHATS.values(), ids=WHATS)
def test_one_flipped_bit_refuses_a_request(what):
    """Wherever it is."""
    signed = sign_group_request(request(what), BROKER)
    for place in range(len(signed)):
        flipped = signed[:place] + bytes([signed[place] ^ 1]) + signed[place + 1 :]
        with pytest.raises(MaiaError):
            verify_group_request(flipped, KEY.key_id)


def signed_body(body):
    """Sign any body as a request."""
    octets = encode(body)
    return encode((b"signed", octets, BROKER.public_key.raw, BROKER.sign(Kind.REQUEST, octets)))


HEAD = (b"key-group-request", (b"manager", KEY.key_id), (b"type", TYPE), (b"stamp", b"100"))
SHAPES = {
    "no what": HEAD,
    "an unknown what": (*HEAD, (b"give", b"1")),
    "a short key": (*HEAD, (b"join", b"1")),
    "an empty label": (*HEAD, (b"leave", b"")),
    "a list for a label": (*HEAD, (b"leave", (b"1",))),
    "a count without a number": (*HEAD, (b"use", (b"1", b"7"))),
    "a count that is no number": (*HEAD, (b"use", (b"1", b"7", b"x"))),
    "a number with a zero in front": (*HEAD, (b"use", (b"1", b"07", b"1"))),
    "a short type": (*HEAD[:2], (b"type", b"1"), HEAD[3], (b"leave",)),
    "a stamp of too many digits": (*HEAD[:3], (b"stamp", b"1" * 17), (b"leave",)),
    "one field more": (*HEAD, (b"leave",), (b"more",)),
}


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_a_request_has_one_shape(body):
    """A good signature makes nothing else a request."""
    with pytest.raises(EncodingError) as refused:
        verify_group_request(signed_body(body), KEY.key_id)
    assert refused.value.code == "GROUP_REQUEST_SHAPE"


def test_a_request_is_meant_for_one_manager_and_verified_in_one_place():
    """Another manager refuses it, and nobody makes a verified one by hand."""
    with pytest.raises(VerificationError) as refused:
        verify_group_request(sign_group_request(request(LeaveGroups()), BROKER), EVE.public_key.key_id)
    assert refused.value.code == "WRONG_AUDIENCE"
    with pytest.raises(UsageError):
        VerifiedGroupRequest(request(LeaveGroups()), BROKER.public_key, None)


def answer(*, signer=MANAGER, member=ME, manager=KEY, private=PRIVATE, group=GROUP, welcome=b""):
    """Answer a join."""
    public = join_public_key(private)
    sealed = seal_place(b"I" * 32, public, group=GROUP, member=member, manager=manager)
    places = [GroupPlace(group=group, number=3, sealed=sealed, welcome=welcome)]
    return sign_join_answer(places, public, member=member, signer=signer)


def welcome(**more):
    """Make a welcome."""
    fields = {"number": 3, "start": 100, "key": b"K" * 32, "signer": MANAGER} | more
    return make_welcome(fields.pop("group", GROUP), fields.pop("member", ME), b"I" * 32, **fields).to_bytes()


def test_an_answer_opens_for_who_asked():
    """With the key of the membership, and the current key when it is given along."""
    for octets in (b"", welcome()):
        (place,) = open_join_answer(answer(welcome=octets), PRIVATE, member=ME, manager=KEY)
        assert (place.group, place.number, place.individual) == (GROUP, 3, b"I" * 32)
        assert (place.welcome is None) == (octets == b"")
        assert "I" * 8 not in repr(place)
        with pytest.raises(TypeError):
            pickle.dumps(place)


ANSWERS = {
    "signed by somebody else": (answer(signer=EVE), PRIVATE, SignatureError),
    "for another broker": (answer(member=EVE.public_key.key_id), PRIVATE, VerificationError),
    "to another join": (answer(private=new_join_key()), PRIVATE, VerificationError),
    "sealed by another manager": (answer(manager=EVE.public_key), PRIVATE, SealError),
    "sealed for another group": (answer(group=KeyGroupId(TYPE, b"1")), PRIVATE, SealError),
    "with another group's welcome": (answer(welcome=welcome(group=KeyGroupId(TYPE, b"1"))), PRIVATE, VerificationError),
    "with another's welcome": (answer(welcome=welcome(member=b"x")), PRIVATE, VerificationError),
    "with a welcome that somebody else signed": (answer(welcome=welcome(signer=EVE)), PRIVATE, SignatureError),
    "with octets for a welcome": (answer(welcome=b"x"), PRIVATE, EncodingError),
}


@pytest.mark.parametrize("data, private, error", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_is_not_for_this_request_is_refused(data, private, error):
    """Whatever of it is somebody else's."""
    with pytest.raises(error):
        open_join_answer(data, private, member=ME, manager=KEY)


def test_one_flipped_bit_refuses_an_answer():
    """Wherever it is."""
    good = answer()
    for place in range(0, len(good), 3):
        with pytest.raises(MaiaError):
            open_join_answer(
                good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :], PRIVATE, member=ME, manager=KEY
            )


KEYS = {name: name * 32 for name in (b"a", b"b", b"c", b"d")}


def heard(message):
    """Verify a message."""
    return verify_rekey(message, KEY)


def test_a_member_that_lost_its_keys_gets_a_new_place_and_the_old_one_leads_nowhere():
    """The current key at once, the next with a new place; whoever has the old state is out."""
    tree = KeyTree(GROUP)
    first = heard(tree.rekey(MANAGER, start=1, joins={name: KEYS[name] for name in (b"a", b"b", b"c")}))
    old, other = (TreeMember(GROUP, name, KEYS[name]) for name in (b"b", b"a"))
    old.apply(first)
    other.apply(first)
    tree.readmit(b"b", b"N" * 32, MANAGER)
    assert tree.individual(b"b") == b"N" * 32
    tree = KeyTree.from_bytes(tree.to_bytes())
    second = heard(tree.rekey(MANAGER, start=2))
    new = TreeMember(GROUP, b"b", b"N" * 32)
    assert new.apply(second).key == other.apply(second).key == tree.key
    assert old.apply(second) is None
    for name, key in ((b"b", b"N" * 32), (b"x", b"X" * 32), (b"a", b"")):
        with pytest.raises(UsageError):
            tree.readmit(name, key, MANAGER)


def test_a_restart_keeps_who_is_inside_and_puts_everybody_else_out():
    """Evicted meanwhile: out. Joined meanwhile: out, told so, and must join again. Numbers go on."""
    tree = KeyTree(GROUP)
    first = heard(tree.rekey(MANAGER, start=1, joins={name: KEYS[name] for name in (b"a", b"b", b"c")}))
    backup = tree.to_bytes()
    later = [
        heard(tree.rekey(MANAGER, start=2, leaves=[b"b"])),
        heard(tree.rekey(MANAGER, start=3, joins={b"d": KEYS[b"d"]})),
    ]
    members = {name: TreeMember(GROUP, name, key) for name, key in KEYS.items()}
    for member in members.values():
        for message in (first, *later):
            member.apply(message)
    restored = KeyTree.from_bytes(backup)
    with pytest.raises(UsageError):
        restored.restart(MANAGER, later, start=3)
    last = heard(restored.restart(MANAGER, later, start=4, keep={b"a", b"b"}))
    assert last.rekey.number == 4
    assert restored.members == {b"a"}
    assert members[b"a"].apply(last).key == restored.key
    assert [members[name].apply(last) for name in (b"b", b"c", b"d")] == [None, None, None]


def test_a_restart_without_all_messages_puts_everybody_out():
    """Nobody can be shown to be inside; all are told so, even the one at the first leaf."""
    tree = KeyTree(GROUP)
    first = heard(tree.rekey(MANAGER, start=1, joins={b"a": KEYS[b"a"], b"b": KEYS[b"b"]}))
    backup = tree.to_bytes()
    later = [heard(tree.rekey(MANAGER, start=start)) for start in (2, 3)]
    member = TreeMember(GROUP, b"a", KEYS[b"a"])
    for message in (first, *later):
        member.apply(message)
    restored = KeyTree.from_bytes(backup)
    last = heard(restored.restart(MANAGER, later[1:], start=4))
    assert restored.members == frozenset()
    assert member.apply(last) is None
    assert member.slot is None
    for messages in ([], [last]):
        with pytest.raises(UsageError):
            restored.restart(MANAGER, messages, start=9)
