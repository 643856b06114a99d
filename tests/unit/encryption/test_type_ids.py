"""Keyed type ids: nothing to guess for outsiders, and every id that matters for members."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.encryption import EpochId, KeyGroupId, Keyring, Tolerance, TypeIds, keyed_type_id
from maia.errors import SealError
from maia.events import TypeId

NETWORK = KeyGroupId(TypeId(b"n" * 32), b"*")
TYPE, OTHER = TypeId(b"t" * 32), TypeId(b"o" * 32)
TOLERANCE = Tolerance(grace=30, skew=5)


def ids(*epochs: int, closed: tuple[int, ...] = ()) -> TypeIds:
    """Hold the keys of some epochs."""
    ring = Keyring()
    for epoch in sorted((*epochs, *closed)):
        if epoch in closed:
            ring.close(NETWORK, EpochId(epoch))
        else:
            ring.add(NETWORK, EpochId(epoch), bytes([epoch // 100]) * 32)
    return TypeIds(ring, NETWORK)


def test_ids_differ_by_type_key_and_epoch() -> None:
    """No two of them are alike, and none is the plain id."""
    found = {
        keyed_type_id(type_id, key, EpochId(epoch))
        for type_id in (TYPE, OTHER)
        for key in (b"a" * 32, b"b" * 32)
        for epoch in (100, 200)
    }
    assert len(found) == 8
    assert not found & {TYPE, OTHER}


@given(st.integers(1, 9), st.integers(0, 2000))
def test_published_id_is_always_read(epochs: int, stamp: int) -> None:
    """Whatever the instant: under which id one publishes, under that the others read."""
    held = ids(*(100 * number for number in range(1, epochs + 1)))
    if stamp < 100:
        with pytest.raises(SealError, match="NO_KEY"):
            held.at(TYPE, stamp)
        return
    wire = held.at(TYPE, stamp)
    assert wire in held.known(TYPE)


def test_epochs_without_a_key_give_no_id() -> None:
    """Who was put out of the network publishes nothing, and recognises nothing that is new."""
    held = ids(100, closed=(200,))
    with pytest.raises(SealError, match="NO_KEY"):
        held.at(TYPE, 250)
    assert held.known(TYPE) == {keyed_type_id(TYPE, bytes([1]) * 32, EpochId(100))}


def test_evidence_is_sealed_once_an_epoch_and_opens_for_members_only() -> None:
    """The same certificates give the same octets in an epoch, others in the next; damage and strangers open nothing."""
    held, stranger = ids(100, 200), ids(100)
    first, second = held.seal_evidence([b"cert"], 150), held.seal_evidence([b"cert"], 250)
    assert first == held.seal_evidence([b"cert"], 199) != second
    assert held.open_evidence(first) == held.open_evidence(second) == (b"cert",)
    assert stranger.open_evidence(second) == ()
    for position in range(len(first)):
        broken = bytearray(first)
        broken[position] ^= 1
        assert held.open_evidence(bytes(broken)) == ()
    for data in (b"", b"(8:evidence)", b"(15:sealed-evidence1:x0:0:)"):
        assert held.open_evidence(data) == ()


def test_ids_never_travel() -> None:
    """Keys are not pickled."""
    with pytest.raises(TypeError):
        pickle.dumps(ids(100))
