"""Parcels: n events of one type from one publisher, sealed column by column, signed once.

    octets 0-3      "MPC1"
    octets 4-7      length of the header, big-endian
    then            the header (canonical S-expression, see `header`)
    then            per block: its length (4 octets, big-endian) and its octets
    last 32+64      the origin's public key and its signature

The octets of a sealed block are a key commitment (32), then AES-256-GCM ciphertext and tag. In plain mode they are the
column itself. The signature covers the header and the digest of every block.

Rules kept here:

- each block has a key of its own: HKDF-Expand of the epoch key over the parcel id, the type and the label. The parcel
  id is fresh at every sealing, so no key meets two plaintexts and the nonce can be constant;
- the associated data of a block is the whole header and its label: moved to another attribute, parcel, type, epoch or
  origin, a block does not open;
- the commitment is compared before anything is decrypted, so one ciphertext does not open under two keys;
- `open_parcel` takes a `VerifiedParcel`, which exists only after the signature was checked. Whatever goes wrong while
  opening, the error is the same.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import encode
from maia.encryption.columns import Compression, decode_column, encode_column
from maia.encryption.header import HEADER_LIMITS, MAX_BLOCKS, WHOLE_EVENT, ParcelHeader, parse_header
from maia.errors import EncodingError, MaiaError, SealError, SignatureError, UsageError
from maia.events import AttributeType, EncryptionMode
from maia.principals import SIGNATURE_LENGTH, Kind, PublicKey, Signer, public_key, verify_signature

MAGIC = b"MPC1"
MAX_PARCEL = 1 << 30
COMMITMENT = 32
_KEY = 32
_NONCE = bytes(12)  # every block has its own key, used once
_TAG = 16
_BLOCK_OVERHEAD = 4 + COMMITMENT + _TAG
_TAIL = _KEY + SIGNATURE_LENGTH
_ROOM = 8 + HEADER_LIMITS.max_bytes + _TAIL

KeyOf = Callable[[bytes], bytes | None]
"""Gives the epoch key for a block label, or ``None`` when this process may not have it."""
Octets = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Parcel:
    """A parcel as it travels: readable header, opaque blocks. Nothing about it was checked."""

    header: ParcelHeader
    blocks: tuple[Octets, ...]
    signer: PublicKey
    signature: bytes

    def to_bytes(self) -> bytes:
        """Write the parcel."""
        return b"".join(self._parts())

    def to_buffer(self) -> pa.Buffer:
        """Write the parcel into memory that Arrow manages, copying each block once."""
        parts = self._parts()
        buffer = pa.allocate_buffer(sum(len(part) for part in parts))
        view, start = memoryview(buffer).cast("B"), 0
        for part in parts:
            view[start : start + len(part)] = part
            start += len(part)
        return buffer

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as bytes: a view of someone's memory cannot."""
        return (parse_parcel, (self.to_bytes(),))

    def _parts(self) -> list[Octets]:
        header = self.header.encoded()
        parts: list[Octets] = [MAGIC, len(header).to_bytes(4, "big"), header]
        for block in self.blocks:
            parts += [len(block).to_bytes(4, "big"), block]
        return [*parts, self.signer.raw, self.signature]


class _Proof:
    """Held by `verify_parcel` alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class VerifiedParcel:
    """A parcel that its origin signed exactly so. Whether the origin may publish is the kernel's question."""

    parcel: Parcel
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_parcel`."""
        # INVARIANT: a VerifiedParcel's signature was verified in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_parcel makes a VerifiedParcel")

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as bytes and be verified again on arrival."""
        return (_verify_raw, (self.parcel.to_bytes(),))

    @property
    def header(self) -> ParcelHeader:
        """The header, now known to be the origin's."""
        return self.parcel.header


def seal(
    columns: Mapping[bytes, tuple[AttributeType, pa.Array]],
    header: ParcelHeader,
    signer: Signer,
    key_of: KeyOf,
    *,
    compression: Compression = Compression.NONE,
    padding: int = 0,
) -> Parcel:
    """Seal columns into a parcel and sign it.

    Args:
        columns: By uid: the attribute's type and its values. The header's labels name them, or ``*`` in event mode.
        header: Complete; its parcel id must never have been used.
        signer: The origin broker.
        key_of: The epoch key by label.
        compression: Applied to each column before sealing.
        padding: Sealed lengths are a multiple of this.

    Raises:
        UsageError: Header, columns and signer do not fit together, or the parcel would be too large to be read.
        SealError: A key is missing.

    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker, key = KeySigner(bytes(32)), bytes(32)
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=2, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"3265",))
    >>> columns = {b"3265": (AttributeType.STRING, pa.array(["AE05 XYZ", None]))}
    >>> parcel = seal(columns, header, broker, lambda label: key)
    >>> b"AE05" in parcel.to_bytes()
    False
    >>> verified = verify_parcel(parse_parcel(parcel.to_bytes()))
    >>> open_parcel(verified, lambda label: key)[b"3265"].to_pylist()
    ['AE05 XYZ', None]
    """
    if signer.public_key.key_id != header.origin:
        raise UsageError("a parcel is signed by its origin")
    if any(len(column) != header.count for _, column in columns.values()):
        raise UsageError("a parcel's columns have as many values as it has events")
    plain = {uid: encode_column(column, kind, compression=compression, padding=padding)
             for uid, (kind, column) in columns.items()}  # fmt: skip
    if header.mode is EncryptionMode.EVENT:
        plain = {WHOLE_EVENT: _join(plain)}
    if tuple(plain) != header.labels:
        raise UsageError("the header's labels are the uids of the columns, in order")
    if sum(len(octets) + _BLOCK_OVERHEAD for octets in plain.values()) > MAX_PARCEL - _ROOM:
        raise UsageError("more octets than one parcel holds", code="BLOCK_TOO_LARGE")
    encoded = header.encoded()
    blocks = tuple(
        octets if header.mode is EncryptionMode.PLAIN else _seal_block(octets, header, encoded, label, key_of)
        for label, octets in plain.items()
    )
    return sign_parcel(header, blocks, signer)


def sign_parcel(header: ParcelHeader, blocks: tuple[Octets, ...], signer: Signer) -> Parcel:
    """Sign a header and blocks as they are.

    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker = KeySigner(bytes(32))
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=2, epoch=0, mode=EncryptionMode.PLAIN, evidence=bytes(32), labels=())
    >>> verify_parcel(sign_parcel(header, (), broker)).header.count
    2
    """
    signature = signer.sign(Kind.PARCEL, _signed_body(header, blocks))
    return Parcel(header, blocks, signer.public_key, signature)


def parse_parcel(data: Octets) -> Parcel:
    """Read a parcel, believing nothing.

    Args:
        data: The parcel. Of a view the blocks are views too, so what lies under it must not change any more.

    Raises:
        EncodingError: The bytes are no parcel.
        KeyFormatError: Its key is refused.

    >>> parse_parcel(b"MPC1 and then something else")
    Traceback (most recent call last):
    ...
    maia.errors.EncodingError: [PARCEL_SHAPE] not a parcel
    """
    if len(data) > MAX_PARCEL:
        raise EncodingError("a parcel that is too large", code="PARCEL_TOO_LARGE")
    view = memoryview(data).cast("B")
    if len(view) < 8 + _TAIL or view[:4] != MAGIC:
        raise EncodingError("not a parcel", code="PARCEL_SHAPE")
    end = len(view) - _TAIL
    position = 8 + int.from_bytes(view[4:8], "big")
    if position > end:
        raise EncodingError("a parcel whose header runs past the end", code="PARCEL_SHAPE")
    header = parse_header(bytes(view[8:position]))
    blocks: list[Octets] = []
    for _ in header.labels:
        start = position + 4
        position = start + int.from_bytes(view[start - 4 : start], "big")
        if start > end or position > end:
            raise EncodingError("a parcel whose blocks run past the end", code="PARCEL_SHAPE")
        blocks.append(view[start:position] if isinstance(data, memoryview) else data[start:position])
    if position != end:
        raise EncodingError("octets after the blocks of a parcel", code="PARCEL_SHAPE")
    return Parcel(header, tuple(blocks), public_key(bytes(view[end : end + _KEY])), bytes(view[end + _KEY :]))


def verify_parcel(parcel: Parcel) -> VerifiedParcel:
    """Check that the origin in the header signed exactly this header and these blocks.

    Raises:
        SignatureError: Another key signed, or something was altered.

    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker, eve = KeySigner(bytes(32)), KeySigner(bytes([1]) * 32)
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=2, epoch=0, mode=EncryptionMode.PLAIN, evidence=bytes(32), labels=())
    >>> verify_parcel(sign_parcel(header, (), eve))
    Traceback (most recent call last):
    ...
    maia.errors.SignatureError: [WRONG_SIGNER] a parcel signed by another broker than its origin
    """
    if parcel.signer.key_id != parcel.header.origin:
        raise SignatureError("a parcel signed by another broker than its origin", code="WRONG_SIGNER")
    verify_signature(Kind.PARCEL, _signed_body(parcel.header, parcel.blocks), parcel.signature, parcel.signer)
    return VerifiedParcel(parcel, _PROOF)


def _verify_raw(data: bytes) -> VerifiedParcel:
    return verify_parcel(parse_parcel(data))


def open_parcel(verified: VerifiedParcel, key_of: KeyOf) -> dict[bytes, pa.Array]:
    """Open the blocks whose keys we have.

    Returns:
        Columns by uid; a uid whose key is missing is absent.

    Raises:
        SealError: A block does not open under its key. The message does not say why.

    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker, keys = KeySigner(bytes(32)), {b"1": bytes(32), b"2": bytes([2]) * 32}
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=1, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"1", b"2"))
    >>> columns = {uid: (AttributeType.INTEGER, pa.array([7])) for uid in keys}
    >>> verified = verify_parcel(seal(columns, header, broker, keys.get))
    >>> list(open_parcel(verified, {b"2": keys[b"2"]}.get))
    [b'2']
    """
    parcel = verified.parcel
    header = parcel.header
    encoded = header.encoded()
    opened: dict[bytes, pa.Array] = {}
    for label, block in zip(header.labels, parcel.blocks, strict=True):
        plain: Octets | None = block
        if header.mode is not EncryptionMode.PLAIN:
            key = key_of(label)
            plain = None if key is None else _open_block(block, header, encoded, label, key)
        if plain is None:
            continue
        try:
            if header.mode is EncryptionMode.EVENT:
                opened.update({uid: decode_column(part, count=header.count) for uid, part in _split(plain)})
            else:
                opened[label] = decode_column(plain, count=header.count)
        except MaiaError as error:
            raise SealError("the parcel cannot be opened") from error
    return opened


def fits(parcel: Parcel, label: bytes, epoch_key: bytes) -> bool:
    """Tell whether a key is the one that a block was sealed under, without opening the block."""
    _, commitment = _block_keys(epoch_key, parcel.header, label)
    blocks = dict(zip(parcel.header.labels, parcel.blocks, strict=True))
    return hmac.compare_digest(commitment, blocks[label][:COMMITMENT])


def _block_keys(epoch_key: bytes, header: ParcelHeader, label: bytes) -> tuple[bytes, bytes]:
    """Derive the key and the commitment of one block (HKDF-Expand, two blocks of output)."""
    info = encode((b"maia/1 block", header.type_id, header.parcel_id, b"%d" % header.epoch, label))
    key = hmac.digest(epoch_key, info + b"\x01", hashlib.sha256)
    commitment = hmac.digest(epoch_key, key + info + b"\x02", hashlib.sha256)
    return key, commitment


def _associated(encoded: bytes, label: bytes) -> bytes:
    return encode((b"block", encoded, label))


def _seal_block(plain: bytes, header: ParcelHeader, encoded: bytes, label: bytes, key_of: KeyOf) -> bytes:
    epoch_key = key_of(label)
    if epoch_key is None:
        raise SealError("no key to seal with", code="NO_KEY")
    key, commitment = _block_keys(epoch_key, header, label)
    return commitment + AESGCM(key).encrypt(_NONCE, plain, _associated(encoded, label))


def _open_block(block: Octets, header: ParcelHeader, encoded: bytes, label: bytes, epoch_key: bytes) -> memoryview:
    key, commitment = _block_keys(epoch_key, header, label)
    if len(block) < COMMITMENT + _TAG or not hmac.compare_digest(commitment, block[:COMMITMENT]):
        raise SealError("the parcel cannot be opened")
    # Arrow's memory is used again from parcel to parcel; new memory for each would cost as much as the decryption.
    plain = memoryview(pa.allocate_buffer(len(block) - COMMITMENT - _TAG)).cast("B")
    try:
        AESGCM(key).decrypt_into(_NONCE, memoryview(block)[COMMITMENT:], _associated(encoded, label), plain)
    except InvalidTag as error:
        raise SealError("the parcel cannot be opened") from error
    return plain.toreadonly()


def _signed_body(header: ParcelHeader, blocks: tuple[Octets, ...]) -> bytes:
    digests = tuple(hashlib.sha256(block).digest() for block in blocks)
    return encode((b"sealed", header.to_sexp(), (b"digests", *digests)))


def _join(plain: Mapping[bytes, bytes]) -> bytes:
    """Put all columns into one plaintext: the block of event mode."""
    parts: list[bytes] = []
    for uid, octets in plain.items():
        parts += [len(uid).to_bytes(2, "big"), uid, len(octets).to_bytes(4, "big"), octets]
    return b"".join(parts)


def _split(plain: Octets) -> list[tuple[bytes, memoryview]]:
    view, position = memoryview(plain), 0
    out: dict[bytes, memoryview] = {}
    while position < len(view):
        stop = position + 2 + int.from_bytes(view[position : position + 2], "big")
        uid = bytes(view[position + 2 : stop])
        size = int.from_bytes(view[stop : stop + 4], "big")
        position = stop + 4 + size
        if position > len(view) or not uid or uid in out or len(out) >= MAX_BLOCKS:
            raise SealError("the parcel cannot be opened")
        out[uid] = view[stop + 4 : position]
    return list(out.items())
