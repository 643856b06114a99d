"""Sealed filters: keys apart from those of events, blocks bound to what they stand under, octets that are no filter."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.encryption import (
    EpochId,
    KeyGroupId,
    Keyring,
    ParcelHeader,
    SealedFilter,
    may_match,
    open_filter,
    parse_sealed_filter,
    seal,
    seal_filter,
)
from maia.encryption import sealed_filters as inside
from maia.errors import MaiaError, SealError, UsageError
from maia.events import AttributeType, EncryptionMode, TypeId
from maia.filters import TypedFilter, compile_filter
from maia.principals import KeySigner

TYPE, BROKER = TypeId(b"t" * 32), KeySigner(bytes(32))
ID, EPOCH = b"i" * 16, EpochId(100)
UIDS = {"price": b"7", "name": b"8"}
ATTRIBUTES = {b"7": ("price", AttributeType.INTEGER), b"8": ("name", AttributeType.STRING)}
KINDS = {"price": "integer", "name": "string"}
BOTH = compile_filter("price > 5 and price < 10 and name = 'ore'", KINDS)


def ring(*labels: bytes) -> Keyring:
    """Give the keys of some attributes."""
    made = Keyring()
    for label in labels:
        made.add(KeyGroupId(TYPE, label), EPOCH, (label * 32)[:32])
    return made


def sealed(filter_: TypedFilter = BOTH, *, mode: EncryptionMode = EncryptionMode.ATTRIBUTE) -> SealedFilter:
    """Seal a filter with all keys."""
    return seal_filter(
        filter_, UIDS, ring(b"7", b"8", b"*"), group=TYPE, type_id=TYPE, origin=BROKER.public_key.key_id, mode=mode,
        filter_id=ID, stamp=150,
    )  # fmt: skip


def test_a_filter_and_an_event_of_one_id_share_no_key() -> None:
    """Even if an id of a filter were one of a parcel, in one epoch and on one attribute, their keys are others."""
    header = ParcelHeader(
        type_id=TYPE, origin=BROKER.public_key.key_id, parcel_id=ID, event_base=bytes(16), stamp=150, count=1,
        epoch=EPOCH, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"7",),
    )  # fmt: skip
    parcel = seal({b"7": (AttributeType.INTEGER, pa.array([7]))}, header, BROKER, lambda label: (label * 32)[:32])
    (block, _) = sealed().blocks
    assert bytes(parcel.blocks[0][:32]) != block.octets[:32]


def test_all_that_is_asked_of_an_attribute_is_one_block() -> None:
    """Attributes one by one in attribute mode, all together in event mode; both come back as they were."""
    for mode, labels in ((EncryptionMode.ATTRIBUTE, [b"7", b"8"]), (EncryptionMode.EVENT, [b"*"])):
        made = parse_sealed_filter(sealed(mode=mode).to_bytes())
        assert [block.label for block in made.blocks] == labels
        opened = open_filter(made, ring(b"7", b"8", b"*"), ATTRIBUTES, group=TYPE)
        assert opened.whole == BOTH
        assert open_filter(made, Keyring(), ATTRIBUTES, group=TYPE).unread == {b"7", b"8"}


def test_under_the_key_of_one_attribute_nothing_is_asked_about_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may read a price asks about a name under the price's key: a holder of both does not take it."""
    tag = inside.to_tag(compile_filter("name = 'ore'", KINDS).constraints)
    asked = inside.encode((b"asked", (b"8", tag)))
    real = inside.encode
    with monkeypatch.context() as patch:
        patch.setattr(inside, "encode", lambda item: asked if item[0] == b"asked" else real(item))
        made = sealed(compile_filter("price > 5", KINDS))
    opened = open_filter(made, ring(b"7", b"8"), ATTRIBUTES, group=TYPE)
    assert (opened.forged, opened.read, opened.whole) == (True, {}, None)


def test_what_was_not_read_stops_nothing() -> None:
    """A constraint that was read and fails stops an event; a closed column, and an unread constraint, do not."""
    some = open_filter(sealed(), ring(b"7"), ATTRIBUTES, group=TYPE)
    assert some.whole is None
    prices, names = pa.array([7, 70]), pa.array(["tin", "tin"])
    both, one, none = dict.fromkeys((b"7", b"8"), EPOCH), {b"7": EPOCH}, frozenset[bytes]()
    assert may_match(some, {b"7": prices, b"8": names}, both, none, 2).tolist() == [True, False]
    whole = open_filter(sealed(), ring(b"7", b"8"), ATTRIBUTES, group=TYPE)
    assert may_match(whole, {b"7": prices, b"8": names}, both, none, 2).tolist() == [False, False]
    assert may_match(whole, {b"7": prices}, one, none, 2).tolist() == [True, False]
    assert may_match(whole, {}, {}, none, 2).tolist() == [True, True]
    assert may_match(whole, {b"7": prices}, both, none, 2).tolist() == [False, False]
    assert may_match(whole, {b"7": prices}, one, frozenset((b"8",)), 2).tolist() == [False, False]


def test_a_block_speaks_of_its_own_epoch_and_an_author_seals_one_for_each_that_it_holds() -> None:
    """Events sealed in another epoch are admitted, whatever they say; two blocks that differ are no whole filter."""
    keys, later = ring(b"7"), EpochId(200)
    keys.add(KeyGroupId(TYPE, b"7"), later, bytes(32))
    asked, prices = compile_filter("price > 5", KINDS), pa.array([1])
    made = {
        stamp: seal_filter(
            asked, UIDS, keys, group=TYPE, type_id=TYPE, origin=BROKER.public_key.key_id,
            mode=EncryptionMode.ATTRIBUTE, filter_id=ID, stamp=stamp,
        )
        for stamp in (150, 250)
    }  # fmt: skip
    for stamp, epochs in ((150, {EPOCH}), (250, {EPOCH, later})):
        opened = open_filter(parse_sealed_filter(made[stamp].to_bytes()), keys, ATTRIBUTES, group=TYPE)
        assert (set(opened.read), opened.whole) == ({(b"7", epoch) for epoch in epochs}, asked)
        for epoch in (EPOCH, later):
            found = may_match(opened, {b"7": prices}, {b"7": epoch}, frozenset(), 1)
            assert found.tolist() == [epoch not in epochs]
    partly = open_filter(made[250], ring(b"7"), ATTRIBUTES, group=TYPE)
    assert (set(partly.read), partly.unread, partly.whole) == ({(b"7", EPOCH)}, {b"7"}, None)


def test_what_cannot_be_sealed_is_refused() -> None:
    """Nothing asked, a type that is plain, a key that is not held."""
    for filter_, mode in ((TypedFilter(), EncryptionMode.ATTRIBUTE), (BOTH, EncryptionMode.PLAIN)):
        with pytest.raises(UsageError, match="FILTER_NOT_SEALED"):
            sealed(filter_, mode=mode)
    with pytest.raises(SealError, match="NO_KEY"):
        seal_filter(
            BOTH, UIDS, ring(b"7"), group=TYPE, type_id=TYPE, origin=BROKER.public_key.key_id,
            mode=EncryptionMode.ATTRIBUTE, filter_id=ID, stamp=150,
        )  # fmt: skip


@given(st.binary(max_size=200), st.integers(0, 600))
def test_octets_that_are_no_filter_are_refused_as_such(data: bytes, at: int) -> None:
    """Whatever is sent, and wherever a filter is changed, the answer is one of Maia's errors or nothing is read."""
    good = sealed().to_bytes()
    for raw in (data, good[:at], good[:at] + data[:1] + good[at + 1 :]):
        try:
            opened = open_filter(parse_sealed_filter(raw), ring(b"7", b"8"), ATTRIBUTES, group=TYPE)
        except MaiaError:
            continue
        assert raw == good or opened.unread or opened.forged
