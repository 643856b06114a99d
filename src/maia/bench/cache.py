"""Plaintext that rides beside a parcel between brokers of the same rights: what Maia does not do, kept to be measured.

    octets 0-3      "MPX1"
    octets 4-7      length of the parcel, big-endian
    then            the parcel
    then            per cached column: the length of its uid (2), the uid, the length of the column (4), the column

No broker writes or reads it (decision 0054); `maia bench sealing` shows what it would spare. Rules kept here:

- the parcel itself always travels, sealed as its origin sealed it: the cache only spares work;
- what goes to a neighbour goes through `to_wire`, which writes the columns that this neighbour may read and no others;
  there is no way to write a cache without saying what the neighbour may read;
- what comes from a neighbour is believed only for the uids that the caller names, which must be those that this broker
  may read and that the neighbour, authenticated, may read too: the origin's signature does not cover the cache;
- in event mode whoever may read one attribute reads all, so the cache goes with the label ``*`` or not at all.

The wire form is for authenticated, encrypted links only. It is never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from maia.encryption import (
    WHOLE_EVENT,
    VerifiedParcel,
    decode_column,
    encode_column,
    open_parcel,
    parse_parcel,
    verify_parcel,
)
from maia.errors import EncodingError, SealError
from maia.events import EncryptionMode, value_type_of

MAGIC = b"MPX1"
_MAX_COLUMNS = 4096
KeyOf = Callable[[bytes], bytes | None]
"""Gives the epoch key for a block label."""


@dataclass(frozen=True, slots=True)
class CachedParcel:
    """A verified parcel and what is already known of its plaintext.

    Attributes:
        verified: As its origin signed it.
        columns: Plaintext by uid. In memory only; `to_wire` decides what leaves.
        decryptions: How many blocks this process opened to get here.
    """

    verified: VerifiedParcel
    columns: Mapping[bytes, pa.Array] = field(default_factory=dict, repr=False)
    decryptions: int = 0

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: plaintext leaves through `to_wire` alone."""
        raise TypeError("a cached parcel cannot be pickled")


def open_cached(cached: CachedParcel, key_of: KeyOf) -> CachedParcel:
    """Open the blocks that are not known yet and whose keys we have.

    Raises:
        SealError: A block does not open under its key.

    >>> from maia.encryption import ParcelHeader, seal
    >>> from maia.events import AttributeType, TypeId
    >>> from maia.principals import KeySigner
    >>> broker, key = KeySigner(bytes(32)), bytes(32)
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=1, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"1",))
    >>> parcel = seal({b"1": (AttributeType.STRING, pa.array(["x"]))}, header, broker, lambda label: key)
    >>> first = open_cached(CachedParcel(verify_parcel(parcel)), lambda label: key)
    >>> first.decryptions, open_cached(first, lambda label: key).decryptions
    (1, 1)
    """
    header = cached.verified.header
    known = bool(cached.columns) if header.mode is EncryptionMode.EVENT else False
    count = 0

    def missing(label: bytes) -> bytes | None:
        nonlocal count
        if known or label in cached.columns:
            return None
        key = key_of(label)
        count += key is not None
        return key

    if header.mode is EncryptionMode.PLAIN and len(cached.columns) == len(header.labels):
        return cached
    opened = open_parcel(cached.verified, missing)
    return CachedParcel(cached.verified, {**opened, **cached.columns}, cached.decryptions + count)


def strip(cached: CachedParcel, allowed: Collection[bytes]) -> CachedParcel:
    """Keep the plaintext of these labels only; the blocks stay.

    Args:
        cached: What this broker knows.
        allowed: Labels that the next reader may open: uids, or ``*`` for a whole event.

    >>> from maia.encryption import ParcelHeader, sign_parcel
    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker = KeySigner(bytes(32))
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=1, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"1", b"2"))
    >>> verified = verify_parcel(sign_parcel(header, (b"", b""), broker))
    >>> cached = CachedParcel(verified, {b"1": pa.array(["x"]), b"2": pa.array(["y"])})
    >>> list(strip(cached, {b"2"}).columns)
    [b'2']
    """
    if cached.verified.header.mode is EncryptionMode.EVENT:
        kept = dict(cached.columns) if WHOLE_EVENT in allowed else {}
    else:
        kept = {uid: column for uid, column in cached.columns.items() if uid in allowed}
    return CachedParcel(cached.verified, kept, cached.decryptions)


def to_wire(cached: CachedParcel, *, allowed: Collection[bytes]) -> bytes:
    """Write a parcel for one neighbour, with the plaintext that this neighbour may read anyway.

    Args:
        cached: What this broker knows.
        allowed: Labels that the neighbour may open; empty for a neighbour without rights.

    >>> from maia.encryption import ParcelHeader, sign_parcel
    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker = KeySigner(bytes(32))
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=1, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"1",))
    >>> cached = CachedParcel(verify_parcel(sign_parcel(header, (b"",), broker)), {b"1": pa.array(["canary"])})
    >>> b"canary" in to_wire(cached, allowed={b"1"}), b"canary" in to_wire(cached, allowed=())
    (True, False)
    """
    # SECURITY: the one place where cached plaintext becomes octets.
    cached = strip(cached, allowed)
    parcel = cached.verified.parcel.to_bytes()
    parts = [MAGIC, len(parcel).to_bytes(4, "big"), parcel]
    for uid, column in cached.columns.items():
        kind = value_type_of(column.type)
        assert kind is not None  # noqa: S101 - an opened column is of an attribute
        octets = encode_column(column, kind)
        parts += [len(uid).to_bytes(2, "big"), uid, len(octets).to_bytes(4, "big"), octets]
    return b"".join(parts)


def from_wire(data: bytes, *, believed: Collection[bytes]) -> CachedParcel:
    """Read what a neighbour wrote with `to_wire`; check the parcel's signature.

    Args:
        data: As it came over the link.
        believed: Labels for which this neighbour's plaintext is taken; the rest of the cache is dropped unread.

    Raises:
        MalformedError: It is no parcel with a cache.
        SignatureError: The parcel is not its origin's.

    >>> from maia.encryption import ParcelHeader, sign_parcel
    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker = KeySigner(bytes(32))
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=1, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"1",))
    >>> cached = CachedParcel(verify_parcel(sign_parcel(header, (b"",), broker)), {b"1": pa.array(["x"])})
    >>> from_wire(to_wire(cached, allowed={b"1"}), believed={b"1"}).columns[b"1"].to_pylist()
    ['x']
    """
    view = memoryview(data)
    end = 8 + int.from_bytes(view[4:8], "big")
    if view[:4] != MAGIC or end > len(view):
        raise EncodingError("not a parcel with a cache", code="PARCEL_SHAPE")
    verified = verify_parcel(parse_parcel(bytes(view[8:end])))
    header = verified.header
    columns: dict[bytes, pa.Array] = {}
    seen = 0
    while end < len(view):
        stop = end + 2 + int.from_bytes(view[end : end + 2], "big")
        uid = bytes(view[end + 2 : stop])
        body, end = stop + 4, stop + 4 + int.from_bytes(view[stop : stop + 4], "big")
        seen += 1
        if end > len(view) or not uid or uid in columns or seen > _MAX_COLUMNS:
            raise EncodingError("a malformed cache beside a parcel", code="PARCEL_SHAPE")
        label = WHOLE_EVENT if header.mode is EncryptionMode.EVENT else uid
        if label in believed and label in header.labels:
            try:
                columns[uid] = decode_column(view[body:end], count=header.count)
            except SealError as error:
                raise EncodingError("a malformed cache beside a parcel", code="PARCEL_SHAPE") from error
    return CachedParcel(verified, columns)
