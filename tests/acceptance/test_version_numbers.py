"""Version numbers and uids: who may number without asking."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from maia.events import (
    FIRST,
    FoldedUids,
    SequenceUids,
    Version,
    uuid_version,
)


@pytest.mark.requirement("3.03")
def test_concurrent_managers_number_without_coordination() -> None:
    """Two managers draw distinct UUIDs; the first version is 0; versions have no order."""
    one, two = uuid_version(), uuid_version()
    assert one != two
    assert FIRST.text == "0"
    for pair in ((one, two), (Version("1"), Version("2"))):
        with pytest.raises(TypeError):
            assert pair[0] < pair[1]


@pytest.mark.requirement("3.05")
def test_folded_uuids_are_distinct_and_uniform() -> None:
    """First uids are 0, 1, 2; 100 UUIDs folded to 4 octets are distinct, and many pass chi-square at 1 %."""
    taken: set[str] = set()
    for expected in ("0", "1", "2"):
        uid = SequenceUids().next_uid(taken)
        assert uid == expected
        taken.add(uid)
    import random

    chance = random.Random(720)

    def source() -> uuid.UUID:
        return uuid.UUID(bytes=chance.randbytes(16), version=4)

    for remainder in (False, True):
        policy = FoldedUids(octets=4, remainder=remainder, source=source)
        drawn = [policy.next_uid(frozenset()) for _ in range(100)]
        assert len(set(drawn)) == 100
        assert {len(uid) for uid in drawn} == {9}
        counts = Counter(octet for _ in range(5000) for octet in bytes.fromhex(policy.next_uid(frozenset())[1:]))
        expected_count = 5000 * 4 / 256
        statistic = sum((counts[octet] - expected_count) ** 2 / expected_count for octet in range(256))
        assert statistic < 310.5  # the 1 % point of chi-square with 255 degrees of freedom
