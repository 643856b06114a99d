"""The laws of key trees, over random histories of the real messages."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from key_tree_histories import GROUP, MANAGER, History, PlainTree, heard

from maia.encryption import KeyTree, TreeMember, parse_rekey, parse_welcome, verify_rekey
from maia.errors import MaiaError

NAMES = [f"b{number}" for number in range(10)]
STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(NAMES), max_size=1),
        st.lists(st.sampled_from(NAMES), max_size=5),
        st.sampled_from(NAMES).map(lambda name: f"admit {name}"),
        st.integers(1, 4),
    ),
    min_size=3,
    max_size=14,
)
MANY = settings(max_examples=3 * settings.default.max_examples)  # 15,000 histories in the long profile


def play(steps, kind=KeyTree, first=()):
    """Run a history: changes, admissions without an epoch, and backups from some steps ago."""
    history = History(kind(GROUP))
    history.rekey(joins=first)
    backups = [history.tree.to_bytes()]
    for step in steps:
        if isinstance(step, list):
            history.toggle(step)
        elif isinstance(step, int):
            history.restore(backups[-min(step, len(backups))])
        else:
            history.admit(step.removeprefix("admit "))
        backups.append(history.tree.to_bytes())
    return history


@pytest.mark.threat("T40")
@pytest.mark.timeout(3600)  # the long profile
@MANY
@given(
    first=st.sets(st.sampled_from(NAMES)), steps=STEPS, pair=st.lists(st.sampled_from(NAMES), min_size=2, max_size=2)
)
def test_two_who_pool_all_they_ever_heard_find_exactly_their_own_keys(first, steps, pair):
    """No key of a time when neither was a member, and each of a time when one was."""
    history = play(steps, first=first)
    assert history.found_by(*pair) == history.owed_to(*pair)


@given(first=st.sets(st.sampled_from(NAMES)), steps=STEPS)
def test_everybody_inside_derives_the_key_and_nobody_else(first, steps):
    """Members who read the whole log, some messages twice, agree with the manager on every epoch they may have."""
    history = play(steps, first=first)
    for name, member in history.followers.items():
        seen = {}
        for message in history.messages:
            for _ in range(2):
                epoch = member.apply(heard(message))
                if epoch is not None:
                    seen[epoch.number] = epoch.key
        last = {number for number in history.entitled[name] if number in seen}
        assert all(history.keys[number] == key for number, key in seen.items())
        assert set(seen) <= history.entitled[name]
        # One that was let in again after the backup shares a key that the manager no longer knows: it joins anew.
        known = history.tree._individual.get(name.encode()) == history.individual[name][-1]
        if known and name.encode() not in history.tree._waiting:
            assert max(last) == history.tree.number
            assert member.keys_held <= 2 * history.tree.height + 1


@given(first=st.sets(st.sampled_from(NAMES), min_size=1), steps=STEPS)
def test_a_member_that_was_away_catches_up_from_what_it_wrote_down(first, steps):
    """State written and read back between messages changes nothing."""
    history = play(steps, first=first)
    name = min(first)
    member = TreeMember(GROUP, name.encode(), history.individual[name][0])
    for message in history.messages:
        epoch = member.apply(heard(message))
        assert epoch is None or epoch.key == history.keys[epoch.number]
        member = TreeMember.from_bytes(member.to_bytes())


def random_history(seed, kind):
    """A history of single joins and leaves, where the attack lives."""
    rng = random.Random(seed)
    return play([[rng.choice(NAMES)] for _ in range(12)], kind, first=NAMES[:8])


@pytest.mark.threat("T40")
def test_the_checker_finds_the_attack_in_a_tree_without_the_cure():
    """Over random histories, some pair finds keys it has no right to; with the cure the same histories yield none."""

    def broken(seed, kind):
        history = random_history(seed, kind)
        pairs = [(one, other) for one in NAMES for other in NAMES if one < other]
        return any(history.found_by(*pair) - history.owed_to(*pair) for pair in pairs)

    assert any(broken(seed, PlainTree) for seed in range(10))
    assert not any(broken(seed, KeyTree) for seed in range(10))


@given(st.binary(max_size=300))
def test_readers_raise_only_maia_errors(data):
    """Whatever octets arrive as a message, a welcome or a stored state."""
    for read in (parse_rekey, parse_welcome, KeyTree.from_bytes, TreeMember.from_bytes):
        with pytest.raises(MaiaError):
            read(data)


@given(data=st.data(), first=st.sets(st.sampled_from(NAMES), min_size=2))
def test_one_flipped_bit_is_never_applied(data, first):
    """A message with a flipped bit is not read or not verified."""
    octets = bytearray(play([[]], first=first).messages[-1].to_bytes())
    bit = data.draw(st.integers(0, 8 * len(octets) - 1))
    octets[bit // 8] ^= 1 << bit % 8
    with pytest.raises(MaiaError):
        verify_rekey(parse_rekey(bytes(octets)), MANAGER.public_key)
