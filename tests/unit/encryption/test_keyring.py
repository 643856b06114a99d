"""Keys by group and epoch: chosen by the stamp, counted, capped, retired, and stored sealed."""

from __future__ import annotations

import copy
import pickle

import pyarrow as pa
import pytest
from sealing_world import TYPE, key_of

from maia.encoding import encode
from maia.encryption import (
    EpochId,
    KeyGroupId,
    Keyring,
    Tolerance,
    keyring_secret,
    open_keyring,
    seal_keyring,
    select_epoch,
)
from maia.errors import EncodingError, SealError, UsageError
from maia.events import AttributeType, EncryptionMode
from maia.kernel import Sealing, open_batch, seal_batch
from maia.principals import KeySigner

GROUP = KeyGroupId(TYPE, b"3265")
EPOCHS = (EpochId(100), EpochId(200))


def ring_of(*epochs, groups=(GROUP,), cap=1 << 30):
    """A keyring with keys for these epochs."""
    ring = Keyring(cap=cap)
    for group in groups:
        for epoch in epochs:
            ring.add(group, EpochId(epoch), key_of(group.label, epoch))
    return ring


ARRIVALS = {
    "within grace": (199, 225, 100, None),
    "at the end of grace": (199, 230, 100, None),
    "after grace": (199, 240, None, "KEY_RETIRED"),
    "the current key needs no grace": (200, 10**6, 200, None),
    "ahead within skew": (205, 200, 200, None),
    "ahead beyond skew": (206, 200, None, "STAMP_AHEAD"),
}


@pytest.mark.threat("T41")
@pytest.mark.parametrize("stamp, arrives, epoch, code", ARRIVALS.values(), ids=ARRIVALS)
def test_grace_and_skew(stamp, arrives, epoch, code):
    """Grace 30, skew 5: late within grace opens, later is refused; nobody dates an event back or far ahead."""
    tolerance = Tolerance(grace=30, skew=5)
    if code is None:
        assert select_epoch(EPOCHS, stamp=stamp, arrives=arrives, tolerance=tolerance) == epoch
    else:
        with pytest.raises(SealError) as caught:
            select_epoch(EPOCHS, stamp=stamp, arrives=arrives, tolerance=tolerance)
        assert caught.value.code == code


def test_epochs_out_of_order_and_negative_times_are_refused():
    """Wrong calls are told."""
    with pytest.raises(UsageError):
        select_epoch((EpochId(200), EpochId(100)), stamp=250, arrives=250, tolerance=Tolerance())
    for wrong in ({"grace": -1}, {"skew": -1}):
        with pytest.raises(UsageError):
            Tolerance(**wrong)


@pytest.mark.threat("T41")
def test_a_retired_key_is_gone_and_its_events_stay_refused():
    """After grace the key is erased, not only unused; an event of its time is refused, not shown with nulls."""
    ring, tolerance = ring_of(100, 200, 300), Tolerance(grace=30, skew=5)
    assert ring.retire(now=230, tolerance=tolerance) == 0
    assert ring.retire(now=231, tolerance=tolerance) == 1
    assert ring.retire(now=231, tolerance=tolerance) == 0
    assert ring.key(GROUP, EpochId(100)) is None
    assert key_of(GROUP.label, 100) not in ring.to_bytes()
    assert ring.epochs(GROUP) == (100, 200, 300)
    with pytest.raises(SealError) as caught:
        select_epoch(ring.epochs(GROUP), stamp=150, arrives=231, tolerance=tolerance)
    assert caught.value.code == "KEY_RETIRED"
    with pytest.raises(UsageError):
        ring.add(GROUP, EpochId(100), key_of(GROUP.label, 100))


@pytest.mark.threat("T46")
def test_a_key_that_was_used_too_often_is_refreshed_and_no_event_is_lost():
    """With a cap of 1,000 uses, 2,500 parcels force two refreshes; all of them open."""
    broker = KeySigner(bytes([1]) * 32)
    ring = ring_of(0, cap=1000)
    sealing = Sealing(type_id=TYPE, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32))
    batch = pa.RecordBatch.from_pydict({"3265": ["AE05 XYZ"]})
    codes, parcels = [], []
    for stamp in range(2_500):
        fresh = {"stamp": stamp, "parcel_id": stamp.to_bytes(16, "big"), "event_base": bytes(16)}
        try:
            parcels.append(seal_batch(batch, sealing, broker, ring, **fresh))
        except SealError as error:
            codes.append(error.code)
            ring.add(GROUP, EpochId(stamp), key_of(GROUP.label, stamp))
            parcels.append(seal_batch(batch, sealing, broker, ring, **fresh))
    assert codes == ["KEY_EXHAUSTED"] * 2
    assert len(parcels) == 2_500
    assert [ring.uses(GROUP, epoch) for epoch in ring.epochs(GROUP)] == [1000, 1000, 500]
    kinds, tolerance = {"3265": AttributeType.STRING}, Tolerance(grace=10_000)
    for parcel in parcels[::50]:
        found = open_batch(
            parcel.to_bytes(), kinds, ring, arrives=2_500, tolerance=tolerance, check_origin=lambda _: None
        )
        assert found.batch.column(0).to_pylist() == ["AE05 XYZ"]


def test_uses_are_kept_over_a_restart():
    """The count is stored with the key, so a restart is no way around the cap."""
    ring = ring_of(100, cap=3)
    for _ in range(3):
        ring.sealing_epoch(GROUP, 150)
    again = open_keyring(seal_keyring(ring, bytes(32), nonce=bytes(12)), bytes(32), cap=3)
    assert again.uses(GROUP, EpochId(100)) == 3
    with pytest.raises(SealError) as caught:
        again.sealing_epoch(GROUP, 150)
    assert caught.value.code == "KEY_EXHAUSTED"


def test_a_stored_keyring_is_sealed_to_its_broker():
    """No key lies in the file; another broker's secret, or one flipped bit, opens nothing."""
    ring, secret = ring_of(100, 200), keyring_secret(bytes([1]) * 32)
    stored = seal_keyring(ring, secret, nonce=bytes(12))
    assert key_of(GROUP.label, 100) not in stored
    assert open_keyring(stored, secret).to_bytes() == ring.to_bytes()
    wrong = [(stored, keyring_secret(bytes([2]) * 32)), (stored, b"short"), (b"", secret), (stored[:20], secret)]
    wrong += [(stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :], secret) for at in range(len(stored))]
    for data, key in wrong:
        with pytest.raises(SealError) as caught:
            open_keyring(data, key)
        assert str(caught.value) == "[SEAL] the keyring cannot be opened"
    with pytest.raises(UsageError):
        seal_keyring(ring, secret, nonce=bytes(11))


FORMS = {
    "another word": (b"keys", (b"version", b"1")),
    "another version": (b"keyring", (b"version", b"2")),
    "no group": (b"keyring", (b"version", b"1"), (b"grupp",)),
    "no key": (b"keyring", (b"version", b"1"), (b"group", bytes(32), b"1", b"100")),
    "a short key": (b"keyring", (b"version", b"1"), (b"group", bytes(32), b"1", (b"100", bytes(31), b"0"))),
    "an epoch that is no number": (
        b"keyring",
        (b"version", b"1"),
        (b"group", bytes(32), b"1", (b"x", bytes(32), b"0")),
    ),
}


@pytest.mark.parametrize("expression", FORMS.values(), ids=FORMS)
def test_octets_that_are_no_keyring_are_refused(expression):
    """The form is read strictly, sealed or not."""
    with pytest.raises(EncodingError):
        Keyring.from_bytes(encode(expression))


def test_an_epoch_has_one_key():
    """Adding the same key again is nothing; another key for the epoch, a short one or a negative start is refused."""
    ring = ring_of(100)
    ring.add(GROUP, EpochId(100), key_of(GROUP.label, 100))
    for epoch, key in ((100, bytes(32)), (200, bytes(31)), (-1, bytes(32))):
        with pytest.raises(UsageError):
            ring.add(GROUP, EpochId(epoch), key)
    assert ring.epochs(GROUP) == (100,)
    assert ring.groups() == (GROUP,)


def test_keys_do_not_travel_by_accident():
    """A keyring shows no key and refuses to be pickled or copied."""
    ring = ring_of(100)
    assert repr(ring) == "Keyring(1 groups)"
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            way(ring)
