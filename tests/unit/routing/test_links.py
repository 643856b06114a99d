"""Conversations: in order, once, or afresh."""

from __future__ import annotations

import pytest

from maia.errors import UsageError
from maia.routing import FixedRoutes, Identifier, Links, NeighbourTable, Packet, Patience
from maia.routing.messages import Ask, Confirm

A, B = Identifier(1), Identifier(2)
HASTY = Patience(beat=1.0, again=0.5, lost=4.0)


def pair() -> tuple[Links, Links]:
    """Two that talk to each other."""
    return Links(A, life=1, patience=HASTY), Links(B, life=1, patience=HASTY)


def word(number: int) -> Confirm:
    """A message that tells itself from others."""
    return Confirm(Identifier(7), number)


def carry(source: Links, target: Links, now: float = 0.0) -> list[int]:
    """Let everything arrive; give the numbers of what was said."""
    packets, source.out = source.out, []
    return [
        message.version
        for packet in packets
        for message in target.receive(packet, now=now).messages
        if isinstance(message, Confirm)
    ]


def test_what_overtakes_waits_and_what_comes_twice_counts_once() -> None:
    """Packets in the wrong order and doubled are one conversation in order."""
    a, b = pair()
    for number in (1, 2, 3):
        a.send(B, word(number), now=0.0)
    one, two, three = a.out
    heard = [b.receive(packet, now=0.0).messages for packet in (three, two, two, one, one)]
    assert [len(messages) for messages in heard] == [0, 0, 0, 3, 0]
    a.out = []
    carry(b, a)
    assert not a.busy


def test_what_was_lost_is_sent_again_until_it_is_acknowledged() -> None:
    """Nothing is said twice to the reader, however often it is sent."""
    a, b = pair()
    a.send(B, word(1), now=0.0)
    a.out = []
    assert a.tick([], now=0.6) == []
    assert carry(a, b) == [1]
    b.out = []
    assert a.tick([], now=1.2) == []
    assert carry(a, b) == []
    carry(b, a, now=1.3)
    assert not a.busy


def test_silence_loses_a_neighbour_and_the_next_word_begins_afresh() -> None:
    """Who was lost hears of it by the epoch, forgets what it received, and answers in the new conversation."""
    a, b = pair()
    a.send(B, word(1), now=0.0)
    carry(a, b)
    b.out = []
    for now in (1.0, 2.0, 3.0):
        assert a.tick([B], now=now) == []
    assert a.tick([B], now=5.1) == [B]
    a.out = []
    a.send(B, word(2), now=6.0)
    (packet,) = a.out
    heard = b.receive(packet, now=6.0)
    assert heard.afresh
    assert [message.version for message in heard.messages if isinstance(message, Confirm)] == [2]


def test_another_life_ends_the_conversation_and_the_old_one_is_not_heard() -> None:
    """What a broker said before it began anew does not count any more."""
    a, b = pair()
    b.send(A, Ask(), now=0.0)
    (old,) = b.out
    again = Links(B, life=2, patience=HASTY)
    again.send(A, word(1), now=0.0)
    assert not a.receive(old, now=0.0).afresh
    first = a.receive(again.out[0], now=0.1)
    assert first.afresh
    assert not a.receive(old, now=0.2).counts
    # The newcomer adopts the epoch, and says it again.
    answer = a.out[-1]
    assert again.receive(answer, now=0.3).afresh
    again.send(A, word(2), now=0.3)
    assert [len(a.receive(packet, now=0.4).messages) for packet in again.out[-1:]] == [1]


def test_a_flood_of_early_packets_is_not_kept() -> None:
    """What lies far ahead of what was received is dropped."""
    a, _ = pair()
    for number in range(2, 10_000):
        a.receive(Packet(B, A, 1, 0, number, 0, word(number)), now=0.0)
    assert a.size < 200


LINKS = {
    "a circle": [(1, 2), (2, 3), (3, 1)],
    "somebody left out": [(1, 2), (3, 4)],
    "a link twice": [(1, 2), (2, 1)],
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS.keys())
def test_fixed_links_form_a_tree(links: list[tuple[int, int]]) -> None:
    """Anything else is refused."""
    with pytest.raises(UsageError, match="FIXED_LINKS"):
        FixedRoutes(Identifier(1), [(Identifier(a), Identifier(b)) for a, b in links])


def test_a_leaf_set_is_even() -> None:
    """Half of the leaves are on either side."""
    for leaves in (0, 1, 3):
        with pytest.raises(UsageError):
            NeighbourTable(Identifier(1), leaves=leaves)
