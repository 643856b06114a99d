"""Keys by group and epoch: chosen by the stamp, counted, capped, retired, and stored sealed."""

from __future__ import annotations

import pytest
from sealing_world import COLUMNS, TYPE, header_of, key_of

from maia.encryption import (
    EpochId,
    KeyGroupId,
    Keyring,
    Tolerance,
    current_epoch,
    epoch_of,
    groups_of,
    replaced_epochs,
    select_epoch,
)
from maia.errors import SealError
from maia.events import EncryptionMode

GROUP = KeyGroupId(TYPE, b"3265")


EPOCHS = (EpochId(100), EpochId(200))


def ring_of(*epochs, groups=(GROUP,), cap=1 << 30):
    """A keyring with keys for these epochs."""
    ring = Keyring(cap=cap)
    for group in groups:
        for epoch in epochs:
            ring.add(group, EpochId(epoch), key_of(group.label, epoch))
    return ring


@pytest.mark.requirement("16.07")
@pytest.mark.parametrize("stamp, epoch", [(100, 100), (199, 100), (200, 200), (10**9, 200)])
def test_the_stamp_chooses_the_key(stamp, epoch):
    """Keys at 100 and 200: an event of 199 has the first, one of 200 the second."""
    assert epoch_of(EPOCHS, stamp) == epoch
    assert current_epoch(ring_of(100, 200), GROUP, stamp) == epoch


@pytest.mark.requirement("16.07")
def test_before_the_first_key_there_is_none():
    """An event of 99 has no key."""
    with pytest.raises(SealError) as caught:
        select_epoch(EPOCHS, stamp=99, arrives=99, tolerance=Tolerance())
    assert caught.value.code == "NO_KEY"
    assert current_epoch(ring_of(100), GROUP, 99) is None
    with pytest.raises(SealError):
        ring_of(100).sealing_epoch(GROUP, 99)


@pytest.mark.threat("T41")
@pytest.mark.parametrize("stamp, tried", [(199, ()), (200, (100,)), (260, (100,)), (261, ())])
def test_a_replaced_key_is_tried_while_its_publisher_may_be_deaf(stamp, tried):
    """Replaced at 200, and for 60 its publisher may not know: later nothing is opened with it."""
    deaf = Tolerance(grace=30, skew=5, deaf=60)
    assert replaced_epochs(EPOCHS, stamp=stamp, arrives=stamp, tolerance=deaf) == tried
    assert replaced_epochs(EPOCHS, stamp=stamp, arrives=291, tolerance=deaf) == (), "and nothing that arrives too late"


@pytest.mark.requirement("15.04")
def test_groups_follow_the_mode():
    """A plain type needs no key, an event-level type one, shared by all versions; an attribute-level type one each."""
    assert groups_of(TYPE, COLUMNS, EncryptionMode.PLAIN) == ()
    assert groups_of(TYPE, COLUMNS, EncryptionMode.EVENT) == (KeyGroupId(TYPE, b"*"),)
    assert [group.label for group in groups_of(TYPE, COLUMNS, EncryptionMode.ATTRIBUTE)] == list(COLUMNS)
    assert header_of().type_id == TYPE, "the id of a type leaves the version out"
