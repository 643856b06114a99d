"""Version numbers and uids: who may number without asking."""

from __future__ import annotations

import itertools
import uuid

import pytest

from maia.errors import MalformedError, UnavailableError, UsageError
from maia.events import FIRST, FoldedUids, SequenceUids, Version, WholeUuids, attribute, hash_version, parse_version
from maia.events.uids import fold
from maia.events.versions import next_counter, uuid_version

BAD_VERSIONS = [
    "",
    "01",
    "-1",
    "v1",
    "1.0",
    "31AB47DC-4e52-4509-92ec-39f6e603d6e6",
    "a" * 63,
    True,
    1.0,
    None,
    ">=5",
    "*",
]


@pytest.mark.parametrize("value", BAD_VERSIONS)
def test_second_spelling_of_a_version_is_refused(value: object) -> None:
    """A version is a counter, a UUID or a hash, each with one spelling."""
    with pytest.raises(MalformedError, match="VERSION_FORM"):
        parse_version(value)


def test_counter_counts_and_uuid_does_not() -> None:
    """One manager may count from 0; after a UUID there is nothing to count."""
    assert next_counter(FIRST) == Version("1")
    with pytest.raises(MalformedError, match="VERSION_FORM"):
        next_counter(uuid_version())


def test_hash_version_depends_on_name_uid_and_type() -> None:
    """Each part of an attribute counts, the order of attributes does not."""
    base = attribute("a", 1, "string")
    others = [attribute("b", 1, "string"), attribute("a", 2, "string"), attribute("a", 1, "binary")]
    assert len({hash_version((item,)) for item in (base, *others)}) == 4
    assert hash_version((base, others[1])) == hash_version((others[1], base))


def test_lengths_of_uids_may_differ_and_never_meet_counters() -> None:
    """A folded uid starts with a letter, so a counter can never equal it."""
    for octets in (1, 2, 4, 8, 15):
        uid = FoldedUids(octets=octets).next_uid(frozenset())
        assert len(uid) == 1 + 2 * octets
        assert not uid.isdecimal()
    assert SequenceUids().next_uid({"x0102", "7"}) == "8"


def test_drawn_uid_avoids_those_in_use() -> None:
    """What is known to be taken is drawn again, and an exhausted length says so."""
    numbers = itertools.chain([uuid.UUID(int=1)] * 3, [uuid.UUID(int=2)])
    policy = FoldedUids(octets=1, remainder=True, source=lambda: next(numbers))
    assert policy.next_uid({"x01"}) == "x02"
    with pytest.raises(UnavailableError, match="UIDS_EXHAUSTED"):
        FoldedUids(octets=1, source=lambda: uuid.UUID(int=0)).next_uid({"x00"})
    with pytest.raises(UnavailableError, match="UIDS_EXHAUSTED"):
        WholeUuids(source=lambda: uuid.UUID(int=0)).next_uid({str(uuid.UUID(int=0))})


def test_whole_uuid_and_folding() -> None:
    """Whole UUIDs keep their dashes; folding joins segments by exclusive or; 16 octets are no folding."""
    assert WholeUuids(source=lambda: uuid.UUID(int=5)).next_uid(set()) == "00000000-0000-0000-0000-000000000005"
    assert fold(b"\x01\x02\x03", 2) == b"\x02\x02"
    for octets in (0, 16):
        with pytest.raises(UsageError):
            FoldedUids(octets=octets)
