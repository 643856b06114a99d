"""What a question about filters may cost, and of what a filter's keys speak."""

from __future__ import annotations

import pyarrow as pa

from maia.domain.links import unwanted
from maia.encryption import EpochId, KeyGroupId, Keyring, ParcelHeader, open_filter, seal, seal_filter
from maia.events import AttributeType, EncryptionMode, TypeId
from maia.filters import compile_filter
from maia.log import LogFile
from maia.principals import KeySigner

TYPE, BROKER, EPOCH = TypeId(b"t" * 32), KeySigner(bytes(32)), EpochId(100)
UID, WHOLE = b"7", b"*"


def test_a_question_ends_where_its_budget_does() -> None:
    """Segments, parcels, octets and time: each alone ends it."""
    now = [0.0]

    def count(file: LogFile, limit: int) -> int:
        budget = unwanted._Budget(lambda: now[0])
        return next(number for number in range(limit + 2) if not budget.takes(file))

    empty = LogFile("x", 0, "", 0, 0, 0, 0)
    assert count(empty, unwanted._MOST_FILES) == unwanted._MOST_FILES
    assert count(LogFile("x", 0, "", 1024, 0, 0, 0), 9) == unwanted._MOST_PARCELS // 1024
    assert count(LogFile("x", 16 << 20, "", 0, 0, 0, 0), 9) == unwanted._MOST_OCTETS // (16 << 20)
    budget = unwanted._Budget(lambda: now[0])
    assert budget.takes(empty)
    now[0] += unwanted._MOST_SECONDS
    assert not budget.takes(empty)


def test_the_key_of_an_attribute_speaks_of_no_event_that_is_sealed_whole() -> None:
    """One epoch, one broker with all keys: what was sealed whole is not told to holders of one attribute."""
    ring = Keyring()
    for label in (UID, WHOLE):
        ring.add(KeyGroupId(TYPE, label), EPOCH, (label * 32)[:32])
    filters = {
        mode: open_filter(
            seal_filter(
                compile_filter("price > 5", {"price": "integer"}), {"price": UID}, ring, group=TYPE, type_id=TYPE,
                origin=BROKER.public_key.key_id, mode=mode, filter_id=bytes(16), stamp=150,
            ),
            ring, {UID: ("price", AttributeType.INTEGER)}, group=TYPE,
        )
        for mode in (EncryptionMode.ATTRIBUTE, EncryptionMode.EVENT)
    }  # fmt: skip
    for mode, label in ((EncryptionMode.ATTRIBUTE, UID), (EncryptionMode.EVENT, WHOLE)):
        header = ParcelHeader(
            type_id=TYPE, origin=BROKER.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16), stamp=150,
            count=1, epoch=EPOCH, mode=mode, evidence=bytes(32), labels=(label,),
        )  # fmt: skip
        columns = {UID: (AttributeType.INTEGER, pa.array([1]))}
        parcel = seal(columns, header, BROKER, lambda label: (label * 32)[:32])
        for asked, filter_ in filters.items():
            assert unwanted._View(TYPE, ring, [filter_]).wants(parcel) == (asked is not mode)
