"""Between batches and parcels: what is checked before anything is opened, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from kernel_world import BROKER, EVE, NUMBERPLATE, OWNER, clause, events, full_ring

from maia.encryption import EpochId, KeyGroupId, ParcelHeader, Tolerance, parse_parcel, seal, sign_parcel
from maia.errors import (
    DeniedError,
    EncodingError,
    MalformedError,
    SealError,
    SignatureError,
    UnavailableError,
    UncheckedError,
    UsageError,
)
from maia.events import AttributeType, EncryptionMode, EventType, TypeName, Version, batch_to_transit, check_batch
from maia.kernel import (
    MAX_LEAD,
    Descent,
    Sealing,
    event_ids,
    event_name,
    milliseconds,
    open_batch,
    require_heard_of,
    reserve_stamps,
    seal_batch,
)
from maia.testing import at

KINDS = {item.uid: item.type for item in NUMBERPLATE.attributes}
TOLERANCE = Tolerance(grace=30, skew=5)


class OnlyKeys:
    """A key provider that does not count."""

    def __init__(self, ring):
        self.epochs, self.key = ring.epochs, ring.key


def sealed(mode=EncryptionMode.ATTRIBUTE, *, ring=None, stamp=150, signer=BROKER, rows=None, **options):
    """One parcel of sightings."""
    batch = rows or events(numberplate=["AE05 XYZ", None], timestamp=[1, 2], location=["Victoria", "Kent"])
    transit = batch_to_transit(NUMBERPLATE, check_batch(NUMBERPLATE, batch))
    sealing = Sealing(type_id=NUMBERPLATE.type_id, mode=mode, evidence=bytes(32), **options)
    ring = ring or full_ring(NUMBERPLATE, 100, 200)
    return seal_batch(transit, sealing, signer, ring, stamp=stamp, parcel_id=bytes(16), event_base=bytes([1]) * 16)


def opened(parcel, *, ring=None, arrives=150, check=lambda _: None, kinds=KINDS, tolerance=TOLERANCE, **options):
    """The rows that a broker with these keys sees."""
    ring = ring or full_ring(NUMBERPLATE, 100, 200)
    data = parcel if isinstance(parcel, bytes) else parcel.to_bytes()
    return open_batch(data, kinds, ring, arrives=arrives, tolerance=tolerance, check_origin=check, **options)


def rows(found):
    """Rows as tuples."""
    return [tuple(row.values()) for row in found.batch.to_pylist()]


def test_three_modes_live_together():
    """A plain, an event-level and an attribute-level parcel of one network open to the same rows."""
    expected = [("AE05 XYZ", 1, "Victoria"), (None, 2, "Kent")]
    assert [rows(opened(sealed(mode))) for mode in EncryptionMode] == [expected] * 3
    for provider in (OnlyKeys(full_ring(NUMBERPLATE, 100)), full_ring(NUMBERPLATE, 100)):
        assert rows(opened(sealed(ring=provider), ring=provider)) == expected


def test_closed_attributes_are_null():
    """A broker with one key sees one attribute; the rest is null, as if nobody had set it."""
    found = opened(sealed(), ring=full_ring(NUMBERPLATE, 100, only={"9058"}))
    assert rows(found) == [(None, 1, None), (None, 2, None)]


def test_one_key_serves_all_versions():
    """An event of one version opens at a subscriber of another: keys belong to uids and type ids, not to versions."""
    other = EventType(
        name=TypeName(OWNER.public_key, "uk.gov.pito.Numberplate", Version("4799")),
        attributes=NUMBERPLATE.attributes[:2],
    )
    assert other.type_id == NUMBERPLATE.type_id
    for mode in (EncryptionMode.EVENT, EncryptionMode.ATTRIBUTE):
        found = opened(sealed(mode), ring=full_ring(other, 100, 200), kinds={i.uid: i.type for i in other.attributes})
        assert rows(found) == [("AE05 XYZ", 1), (None, 2)]


def test_the_epoch_in_the_header_is_the_one_of_the_stamp():
    """The header names the epoch; stamps on both sides of a refresh get keys of their own."""
    assert [sealed(stamp=stamp).header.epoch for stamp in (150, 199, 200)] == [100, 100, 200]
    assert sealed(EncryptionMode.PLAIN).header.epoch == 0
    assert sealed().header.network is None


def test_groups_that_turned_at_different_times_travel_together():
    """Each block has the key of its own group at the stamp; the header names the latest turn."""
    ring = full_ring(NUMBERPLATE, 100)
    ring.add(KeyGroupId(NUMBERPLATE.type_id, b"3265"), EpochId(140), bytes([9]) * 32)
    parcel = sealed(ring=ring)
    assert parcel.header.epoch == 140
    assert rows(opened(parcel, ring=ring))[0] == ("AE05 XYZ", 1, "Victoria")
    with pytest.raises(SealError):
        opened(parcel, ring=full_ring(NUMBERPLATE, 100))


def test_an_epoch_that_was_not_heard_of_is_a_doubt():
    """What cannot be opened yet waits; what an unchanged group holds opens, and a wrong key is no doubt."""
    heard, later = full_ring(NUMBERPLATE, 100), sealed(stamp=250).to_bytes()
    with pytest.raises(UncheckedError, match="EPOCH_UNHEARD"):
        require_heard_of(later, heard, descent=Descent(type_id=NUMBERPLATE.type_id), tolerance=TOLERANCE)
    require_heard_of(
        later, full_ring(NUMBERPLATE, 100, 200), descent=Descent(type_id=NUMBERPLATE.type_id), tolerance=TOLERANCE
    )
    require_heard_of(
        sealed(stamp=150).to_bytes(), heard, descent=Descent(type_id=NUMBERPLATE.type_id), tolerance=TOLERANCE
    )
    require_heard_of(
        sealed(ring=full_ring(NUMBERPLATE, 90)).to_bytes(),
        heard,
        descent=Descent(type_id=NUMBERPLATE.type_id),
        tolerance=TOLERANCE,
    )


def test_who_is_in_some_groups_waits_for_those_alone():
    """A turn of another group is none of a broker's business."""
    turned, mine = full_ring(NUMBERPLATE, 100), full_ring(NUMBERPLATE, 100, only=("3265",))
    turned.add(KeyGroupId(NUMBERPLATE.type_id, b"3467"), EpochId(140), bytes([9]) * 32)
    require_heard_of(
        sealed(ring=turned).to_bytes(), mine, descent=Descent(type_id=NUMBERPLATE.type_id), tolerance=TOLERANCE
    )
    with pytest.raises(UncheckedError, match="EPOCH_UNHEARD"):
        require_heard_of(
            sealed(ring=turned).to_bytes(),
            full_ring(NUMBERPLATE, 100),
            descent=Descent(type_id=NUMBERPLATE.type_id),
            tolerance=TOLERANCE,
        )


DEAF = Tolerance(grace=30, skew=5, deaf=60)


@pytest.mark.parametrize("stamp, opens", [(260, True), (261, False)])
def test_what_a_publisher_sealed_that_was_kept_deaf_opens_for_a_while(stamp, opens):
    """Its key was replaced at 200, and it may not know for 60; what comes later is refused as before."""
    late = sealed(ring=full_ring(NUMBERPLATE, 100), stamp=stamp)
    if opens:
        assert rows(opened(late, arrives=270, tolerance=DEAF))[0] == ("AE05 XYZ", 1, "Victoria")
    else:
        with pytest.raises(SealError):
            opened(late, arrives=270, tolerance=DEAF)
    with pytest.raises(SealError):
        opened(late, arrives=270)


def test_who_is_out_of_an_epoch_opens_nothing_of_its_time_with_the_key_before():
    """Neither a broker that was put out, nor one that was let in again."""
    late = sealed(ring=full_ring(NUMBERPLATE, 100), stamp=210)
    for later in ((), (205,)):
        ring = full_ring(NUMBERPLATE, 100)
        for uid in KINDS:
            ring.close(KeyGroupId(NUMBERPLATE.type_id, uid.encode()), EpochId(200))
            for epoch in later:
                ring.add(KeyGroupId(NUMBERPLATE.type_id, uid.encode()), EpochId(epoch), bytes([epoch % 256]) * 32)
        with pytest.raises(SealError):
            opened(late, ring=ring, arrives=215, tolerance=DEAF)


def test_who_is_deaf_in_one_group_alone_is_no_doubt():
    """The header names the turn of the other group; the block of the first opens with the key before."""
    deaf, reader = full_ring(NUMBERPLATE, 100), full_ring(NUMBERPLATE, 100)
    for ring in (deaf, reader):
        ring.add(KeyGroupId(NUMBERPLATE.type_id, b"3467"), EpochId(145), bytes([9]) * 32)
    reader.add(KeyGroupId(NUMBERPLATE.type_id, b"3265"), EpochId(140), bytes([8]) * 32)
    parcel = sealed(ring=deaf)
    require_heard_of(parcel.to_bytes(), reader, descent=Descent(type_id=NUMBERPLATE.type_id), tolerance=DEAF)
    assert rows(opened(parcel, ring=reader, tolerance=DEAF))[0] == ("AE05 XYZ", 1, "Victoria")
    with pytest.raises(UncheckedError, match="EPOCH_UNHEARD"):
        require_heard_of(parcel.to_bytes(), reader, descent=Descent(type_id=NUMBERPLATE.type_id), tolerance=TOLERANCE)


@pytest.mark.threat("T41")
def test_stamps_out_of_bounds_are_refused():
    """Beyond skew ahead, after the grace of its key, and after the key was erased."""
    for stamp, arrives, code in ((156, 150, "STAMP_AHEAD"), (199, 231, "KEY_RETIRED")):
        with pytest.raises(SealError) as caught:
            opened(sealed(stamp=stamp), arrives=arrives)
        assert caught.value.code == code
    ring = full_ring(NUMBERPLATE, 100, 200)
    late = sealed(stamp=199)
    ring.retire(now=231, tolerance=TOLERANCE)
    with pytest.raises(SealError) as caught:
        opened(late, ring=ring, arrives=231)
    assert caught.value.code == "KEY_RETIRED"


@pytest.mark.threat("T41")
def test_an_event_dated_back_onto_an_old_key_does_not_open():
    """Who kept an old key and seals with it under a new stamp, or with the new key under an old stamp, is refused."""
    columns = {b"3265": (AttributeType.STRING, pa.array(["forged"]))}
    base = ParcelHeader(
        type_id=NUMBERPLATE.type_id, origin=BROKER.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
        stamp=205, count=1, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"3265",),
    )  # fmt: skip
    ring = full_ring(NUMBERPLATE, 100, 200)
    group = KeyGroupId(NUMBERPLATE.type_id, b"3265")
    for key_epoch, header in (
        (100, base),
        (200, base),
        (200, replace(base, stamp=150)),
        (100, replace(base, epoch=200)),
    ):
        forged = seal(columns, header, BROKER, lambda _, e=key_epoch: ring.key(group, EpochId(e)))
        with pytest.raises(SealError) as caught:
            opened(forged, arrives=206)
        assert str(caught.value) == "[SEAL] the parcel cannot be opened"


def test_the_origin_is_asked_about_after_the_signature_and_before_the_keys():
    """A forged parcel never reaches the question of rights; one without a right never reaches the keys."""
    asked = []

    def refuse(header):
        asked.append(header.origin)
        raise DeniedError("no", code="ORIGIN_NOT_PROVEN")

    parcel = sealed()
    with pytest.raises(SignatureError):
        opened(replace(parcel, header=replace(parcel.header, stamp=151)), check=refuse)
    assert asked == []

    class NoKeys:
        def epochs(self, group):
            raise AssertionError(group)

        key = epochs

    with pytest.raises(DeniedError):
        opened(parcel, ring=NoKeys(), check=refuse)
    assert asked == [BROKER.public_key.key_id]


@pytest.mark.threat("T69")
def test_what_the_origin_may_not_set_becomes_null():
    """A domain that may publish `timestamp` only, and read all, cannot forge plates for others."""
    found = opened(sealed(signer=EVE), check=lambda _: (clause("9058"),))
    assert rows(found) == [(None, 1, None), (None, 2, None)]
    assert rows(opened(sealed(), check=lambda _: (clause(),)))[0] == ("AE05 XYZ", 1, "Victoria")
    with pytest.raises(DeniedError) as caught:
        opened(sealed(), check=lambda _: ())
    assert caught.value.code == "ORIGIN_BROKE_RIGHT"


def test_a_mode_that_the_type_does_not_have_is_refused():
    """The owner of the type chooses the mode; an origin cannot turn sealing off."""
    with pytest.raises(DeniedError) as caught:
        opened(sealed(EncryptionMode.PLAIN), modes=(EncryptionMode.ATTRIBUTE,))
    assert caught.value.code == "MODE_REFUSED"


@pytest.mark.threat("T53")
def test_a_small_parcel_does_not_claim_many_events():
    """A header without blocks that claims millions of events is refused before anything is allocated."""
    header = replace(sealed().header, labels=(), count=1 << 24)
    with pytest.raises(EncodingError) as caught:
        opened(sign_parcel(header, (), BROKER))
    assert caught.value.code == "PARCEL_COUNT"
    with pytest.raises(EncodingError):
        opened(sealed(), max_events=1)
    for size in (0, 2):
        with pytest.raises(UsageError):
            sealed(rows=events(numberplate=["A"] * size), max_events=1)


def test_a_uid_of_another_type_is_refused():
    """An attribute keeps its type for ever; a column of another one is no value of it."""
    with pytest.raises(MalformedError) as caught:
        opened(sealed(), kinds={"3265": AttributeType.INTEGER})
    assert caught.value.code == "UID_REUSED"


def test_missing_keys_refuse_the_whole_batch():
    """Nothing goes out half sealed."""
    for ring in (full_ring(NUMBERPLATE, 100, only={"3265"}), OnlyKeys(full_ring(NUMBERPLATE, 100, only={"3265"}))):
        with pytest.raises(SealError) as caught:
            sealed(ring=ring)
        assert caught.value.code == "NO_KEY"
    with pytest.raises(SealError):
        sealed(ring=OnlyKeys(full_ring(NUMBERPLATE, 200)), stamp=150)


def test_what_the_origin_may_not_set_needs_no_key():
    """A column that is null throughout and of a group that this broker was never in travels without a block (B11)."""
    partly = full_ring(NUMBERPLATE, 100, only={"3265", "9058"})
    empty = events(numberplate=["AE05 XYZ", "B"], timestamp=[1, None], location=[None, None])
    for ring in (partly, OnlyKeys(partly)):
        parcel = sealed(ring=ring, rows=empty)
        assert parcel.header.labels == (b"3265", b"9058")
        assert rows(opened(parcel)) == [("AE05 XYZ", 1, None), ("B", None, None)]
    assert sealed(rows=empty).header.labels == (b"3265", b"9058", b"3467"), "whoever has the key hides that it is null"
    refused = {
        "a value without a key": (partly, {"location": [None, "Kent"]}, {}),
        "a group whose key is not yet in force": (full_ring(NUMBERPLATE, 200), {}, {}),
        "no key at all": (
            full_ring(NUMBERPLATE, 100, only={"*"}),
            {"numberplate": [None] * 2, "timestamp": [None] * 2},
            {},
        ),
        "the key of whole events": (full_ring(NUMBERPLATE, 100, only={"3265"}), {}, {"mode": EncryptionMode.EVENT}),
    }
    for case, (ring, more, options) in refused.items():
        columns = {"numberplate": ["A", "B"], "timestamp": [1, 2], "location": [None, None]} | more
        with pytest.raises(SealError) as caught:
            sealed(ring=ring, rows=events(**columns), **options)
        assert caught.value.code == "NO_KEY", case


def test_events_keep_their_names_over_retries():
    """The name of an event comes from its base and position, not from the sealing."""
    one, two = opened(sealed()), opened(sealed(EncryptionMode.EVENT))
    assert one.event_ids(range(2)) == two.event_ids(range(2))
    assert len({*one.event_ids(range(2))}) == 2


@pytest.mark.threat("T48")
def test_two_origins_never_share_the_id_of_an_event():
    """A broker that calls its events what another calls its own gets other ids: the signed origin is part of them."""
    ours, theirs = opened(sealed()), opened(sealed(signer=EVE))
    assert ours.header.event_base == theirs.header.event_base
    assert not {*ours.event_ids(range(2))} & {*theirs.event_ids(range(2))}
    assert ours.event_ids([1]) == event_ids(event_name(BROKER.public_key.key_id, bytes([1]) * 16), [1])


def test_a_batch_without_columns_travels():
    """Events without attributes are counted on the other side too."""
    batch = pa.RecordBatch.from_struct_array(pa.nulls(3, pa.struct([])))
    sealing = Sealing(type_id=NUMBERPLATE.type_id, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32))
    parcel = seal_batch(
        batch, sealing, BROKER, full_ring(), stamp=150, parcel_id=bytes(16), event_base=bytes(16)
    )  # fmt: skip
    assert opened(parcel, kinds={}).batch.num_rows == 3
    assert rows(opened(parcel, ring=full_ring())) == [(None, None, None)] * 3
    assert parse_parcel(parcel.to_bytes()).header.count == 3


def test_stamps_are_milliseconds_and_only_rise():
    """Two parcels in one millisecond get t and t+1; a clock set back five seconds changes nothing."""
    now = milliseconds(at("2026-06-01T09:00:00.123456"))
    assert now == 1780304400123
    first = reserve_stamps(-1, now=now, count=1)
    second = reserve_stamps(first.end - 1, now=now, count=1)
    third = reserve_stamps(second.end - 1, now=now - 5_000, count=2)
    assert [first.first, second.first, third.first, third.end] == [now, now + 1, now + 2, now + 4]
    with pytest.raises(UsageError):
        reserve_stamps(-1, now=now, count=0)
    with pytest.raises(UsageError):
        milliseconds(at("2026-06-01T09:00").replace(tzinfo=None))


def test_a_clock_that_was_far_ahead_stops_the_stamping_and_says_what_to_do():
    """Within a day stamps go on from where they were; beyond that nothing is stamped that readers would refuse."""
    now = milliseconds(at("2026-06-01T09:00"))
    assert reserve_stamps(now + MAX_LEAD - 1, now=now, count=1).first == now + MAX_LEAD
    for high in (now + MAX_LEAD, now + 20 * 365 * MAX_LEAD, 1 << 63):
        with pytest.raises(UnavailableError, match="a new key") as refused:
            reserve_stamps(high, now=now, count=1)
        assert refused.value.code == "STAMPS_AHEAD"
    assert reserve_stamps(now + MAX_LEAD, now=now + 1, count=1).first == now + MAX_LEAD + 1  # waiting helps
    assert reserve_stamps(-1, now=now, count=1).first == now  # a new key too


def test_no_stamp_repeats_after_crashes_and_clock_steps():
    """A hundred crashes, each with the clock set back as far as is allowed: stamps rise from the mark that was kept."""
    high, seen = -1, set()
    for crash in range(100):
        now = 10_000_000 - crash * 3_600_000
        stamps = reserve_stamps(high, now=max(0, now), count=3, lead=20_000_000)
        high = stamps.end - 1  # kept before sealing, so a crash after this line loses nothing
        found = set(range(stamps.first, stamps.end))
        assert not found & seen
        assert not seen or min(found) > max(seen)
        seen |= found
    assert len(seen) == 300
