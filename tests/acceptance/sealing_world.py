"""One broker, one type of three attributes, keys by label and epoch: enough to seal and open."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pyarrow as pa

from maia.encryption import Parcel, ParcelHeader, open_parcel, parse_parcel, seal, sign_parcel, verify_parcel
from maia.events import AttributeType, EncryptionMode, TypeId
from maia.principals import KeySigner

BROKER, EVE = KeySigner(bytes([1]) * 32), KeySigner(bytes([2]) * 32)
TYPE = TypeId(bytes([3]) * 32)
COLUMNS = {
    b"3265": (AttributeType.STRING, pa.array(["AE05 XYZ", "BX51 ABC", None])),
    b"9058": (AttributeType.INTEGER, pa.array([1, None, 3])),
    b"3467": (AttributeType.STRING, pa.array(["Victoria", "", "Kent"])),
}


def key_of(label, epoch=100):
    """The key of a label and epoch."""
    return hashlib.sha256(b"%b@%d" % (label, epoch)).digest()


def header_of(columns=None, mode=EncryptionMode.ATTRIBUTE, **changes):
    """A header that fits the columns."""
    found = COLUMNS if columns is None else columns
    base = ParcelHeader(
        type_id=TYPE, origin=BROKER.public_key.key_id, parcel_id=bytes([4]) * 16, event_base=bytes([5]) * 16,
        stamp=150, count=len(next(iter(found.values()))[1]), epoch=100, mode=mode, evidence=bytes([6]) * 32,
        labels=(b"*",) if mode is EncryptionMode.EVENT else tuple(found),
    )  # fmt: skip
    return replace(base, **changes)


def sealed(columns=None, mode=EncryptionMode.ATTRIBUTE, *, signer=BROKER, compression=None, padding=0, **changes):
    """A parcel of the columns."""
    found = COLUMNS if columns is None else columns
    options = {} if compression is None else {"compression": compression}
    return seal(found, header_of(found, mode, **changes), signer, key_of, padding=padding, **options)


def opened(parcel, keys=key_of):
    """Open a parcel from its octets, as a reader does."""
    data = parcel.to_bytes() if isinstance(parcel, Parcel) else parcel
    found = open_parcel(verify_parcel(parse_parcel(data)), keys)
    return {uid: column.to_pylist() for uid, column in found.items()}


def values(columns=None):
    """The columns as plain values."""
    return {uid: column.to_pylist() for uid, (_, column) in (COLUMNS if columns is None else columns).items()}


def resigned(parcel, *, header=None, blocks=None, by=BROKER):
    """The parcel with other parts and a good signature over them."""
    return sign_parcel(header or parcel.header, blocks or parcel.blocks, by)
