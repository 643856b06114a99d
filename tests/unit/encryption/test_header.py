"""The header: one spelling, every field in its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sealing_world import header_of

from maia.encoding import encode
from maia.encryption import MAX_COUNT, parse_header
from maia.errors import EncodingError, MaiaError
from maia.events import EncryptionMode

REFUSED = {
    "no events": {"count": 0},
    "too many events": {"count": MAX_COUNT + 1},
    "a short parcel id": {"parcel_id": bytes(15)},
    "a long event base": {"event_base": bytes(17)},
    "a short type": {"type_id": bytes(31)},
    "a short origin": {"origin": bytes(31)},
    "a long evidence": {"evidence": bytes(33)},
    "an empty network": {"network": b""},
    "a stamp before 1970": {"stamp": -1, "epoch": 0},
    "a stamp beyond all time": {"stamp": 10**18},
    "an epoch before 1970": {"epoch": -1},
    "a stamp before its epoch": {"stamp": 99},
    "a label twice": {"labels": (b"1", b"1")},
    "an empty label": {"labels": (b"",)},
    "more blocks than a type has attributes": {"labels": tuple(b"%d" % n for n in range(4097))},
    "the whole event among attributes": {"labels": (b"1", b"*")},
    "the whole event in attribute mode": {"labels": (b"*",)},
    "attributes in event mode": {"mode": EncryptionMode.EVENT},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_a_header_out_of_bounds_is_refused(change):
    """What no parcel can be is refused when the value is made, so also when it is read."""
    with pytest.raises(EncodingError) as caught:
        replace(header_of(), **change)
    assert caught.value.code == "PARCEL_HEADER"


def test_the_network_is_optional_and_kept():
    """A header with and one without a network are two headers, and both come back."""
    bound = replace(header_of(), network=bytes([9]) * 32)
    assert parse_header(bound.encoded()) == bound
    assert parse_header(header_of().encoded()) == header_of()
    assert bound.encoded() != header_of().encoded()


def edited(**fields):
    """The header's expression with some fields written otherwise."""
    expression = header_of().to_sexp()
    return encode(tuple(
        (item[0], *fields[item[0].decode()]) if isinstance(item, tuple) and item[0].decode() in fields else item
        for item in expression
    ))  # fmt: skip


SPELLINGS = {
    "a number with a leading zero": {"stamp": (b"0150",)},
    "a number with a sign": {"count": (b"+3",)},
    "a number that is none": {"epoch": (b"1e2",)},
    "an endless number": {"stamp": (b"1" * 19,)},
    "an empty number": {"count": (b"",)},
    "an unknown mode": {"mode": (b"secret",)},
    "another version": {"version": (b"2",)},
    "a field with two values": {"type": (bytes(32), bytes(32))},
    "a label that is a list": {"blocks": ((b"1",),)},
    "an unknown field instead": {"evidence": ()},
}


@pytest.mark.parametrize("fields", SPELLINGS.values(), ids=SPELLINGS)
def test_a_header_has_one_spelling(fields):
    """Anything but the form that is written is refused."""
    with pytest.raises(MaiaError):
        parse_header(edited(**fields))


def test_missing_added_and_reordered_fields_are_refused():
    """The fields of a header are these, in this order."""
    expression = header_of().to_sexp()
    for changed in (
        expression[:-1],
        (*expression, (b"more", b"1")),
        (*expression[:3], expression[4], expression[3], *expression[5:]),
        (b"parcels", *expression[1:]),
        b"parcel",
    ):
        with pytest.raises(EncodingError):
            parse_header(encode(changed))
