"""Parcels: n events of one type from one publisher, sealed column by column, signed once.

    octets 0-3      "MPC1"
    octets 4-7      length of the header, big-endian
    then            the header (canonical S-expression, see `header`)
    then            per block: its length (4 octets, big-endian) and its octets
    last 32+64      the origin's public key and its signature

The octets of a sealed block are a key commitment (32), then AES-256-GCM ciphertext and tag. In plain mode they are the
column itself. The signature covers the header and the digest of every block, so the blocks may also lie apart from
the rest, and be fetched when they are needed (`blocks`).

Rules kept here:

- each block has a key of its own: HKDF-Expand of the epoch key over the parcel id, the type and the label. The parcel
  id is fresh at every sealing, so no key meets two plaintexts and the nonce can be constant;
- the associated data of a block is the whole header and its label: moved to another attribute, parcel, type, epoch or
  origin, a block does not open;
- the commitment is compared before anything is decrypted, so one ciphertext does not open under two keys;
- `open_parcel` takes a `VerifiedParcel`, which exists only after the signature was checked. Whatever goes wrong while
  opening, the error is the same; but for a block that lies apart and is not what was signed, which is damage;
- what is opened grows no further than `room` says.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import encode
from maia.encryption.blocks import Fetch, Octets, digests_of, lengths_of, read_head, write_head
from maia.encryption.columns import Compression, decode_column, encode_column
from maia.encryption.header import HEADER_LIMITS, WHOLE_EVENT, ParcelHeader, parse_header
from maia.encryption.joined import join_columns, split_columns
from maia.encryption.room import Room, most_events, most_octets
from maia.errors import EncodingError, MaiaError, SealError, SignatureError, UsageError
from maia.events import EncryptionMode, ValueType
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


@dataclass(frozen=True, slots=True)
class Parcel:
    """A parcel as it travels: readable header, opaque blocks. Nothing about it was checked."""

    header: ParcelHeader
    blocks: Sequence[Octets]
    signer: PublicKey
    signature: bytes

    @property
    def octets(self) -> int:
        """How many octets the blocks have."""
        return sum(lengths_of(self.blocks))

    def head(self) -> bytes:
        """Write all but the blocks, with their lengths and digests."""
        return write_head(self.header, self.blocks, self.signer, self.signature)

    def to_bytes(self) -> bytes:
        """Write the parcel."""
        return b"".join(self._parts())

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
    columns: Mapping[bytes, tuple[ValueType, pa.Array]],
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

    >>> from maia.events import AttributeType, TypeId
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
    plain = _encoded(columns, header.count, compression, padding)
    if header.mode is EncryptionMode.EVENT:
        plain = {WHOLE_EVENT: join_columns(plain)}
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


def _encoded(
    columns: Mapping[bytes, tuple[ValueType, pa.Array]], count: int, compression: Compression, padding: int
) -> dict[bytes, bytes]:
    """Write columns as plaintexts of blocks, compressed no further than a reader lets them grow again."""
    plain = {uid: encode_column(column, kind, compression=compression, padding=padding)
             for uid, (kind, column) in columns.items()}  # fmt: skip
    octets = sum(len(one) for one in plain.values())
    grown = sum(2 * column.nbytes + count + 64 for _, column in columns.values())
    if compression is not Compression.NONE and (count > most_events(octets) or grown > most_octets(octets)):
        return _encoded(columns, count, Compression.NONE, padding)
    return plain


def sign_parcel(header: ParcelHeader, blocks: Sequence[Octets], signer: Signer) -> Parcel:
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


def parse_head(data: Octets, fetch: Fetch) -> Parcel:
    """Read a parcel whose blocks lie apart, believing nothing.

    Args:
        data: What `Parcel.head` wrote.
        fetch: Gives the octets of a block by its number and length; each is compared with its digest then.

    Raises:
        EncodingError: The bytes are no head.
        KeyFormatError: Its key is refused.

    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> broker = KeySigner(bytes(32))
    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=broker.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
    ...     stamp=150, count=2, epoch=0, mode=EncryptionMode.PLAIN, evidence=bytes(32), labels=(b"7",))
    >>> head = sign_parcel(header, (b"sealed",), broker).head()
    >>> bytes(verify_parcel(parse_head(head, lambda number, length: b"sealed")).parcel.blocks[0])
    b'sealed'
    >>> verify_parcel(parse_head(head, lambda number, length: b"forged")).parcel.blocks[0]
    Traceback (most recent call last):
    ...
    maia.errors.DamagedError: [BLOCK_DAMAGED] a block is not what its parcel's head says
    """
    return Parcel(*read_head(data, fetch))


def verify_parcel(parcel: Parcel) -> VerifiedParcel:
    """Check that the origin in the header signed exactly this header and these blocks.

    Blocks that lie apart are signed for by their digests, with which each is compared when it is fetched.

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


def open_parcel(
    verified: VerifiedParcel, key_of: KeyOf, *, labels: Collection[bytes] | None = None, room: Room | None = None
) -> dict[bytes, pa.Array]:
    """Open the blocks whose keys we have.

    Args:
        verified: The parcel.
        key_of: The epoch key by label.
        labels: Open these alone; all by default. The one block of event mode is opened whatever is asked for.
        room: What its columns may still take; all that a parcel of its size may by default.

    Returns:
        Columns by uid; a uid whose key is missing is absent.

    Raises:
        SealError: A block does not open under its key. The message does not say why.
        DamagedError: A block that lies apart is not what was signed.

    >>> from maia.events import AttributeType, TypeId
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
    room = Room(most_octets(parcel.octets)) if room is None else room
    opened: dict[bytes, pa.Array] = {}
    for at, label in enumerate(header.labels):
        if labels is not None and label not in labels and header.mode is not EncryptionMode.EVENT:
            continue
        key = None if header.mode is EncryptionMode.PLAIN else key_of(label)
        if key is None and header.mode is not EncryptionMode.PLAIN:
            continue
        block = parcel.blocks[at]
        plain = block if key is None else _open_block(block, header, encoded, label, key)
        try:
            if header.mode is EncryptionMode.EVENT:
                for uid, part in split_columns(plain):
                    opened[uid] = decode_column(part, count=header.count, room=room)
            else:
                opened[label] = decode_column(plain, count=header.count, room=room)
        except MaiaError as error:
            raise SealError("the parcel cannot be opened") from error
    return opened


def fits(parcel: Parcel, label: bytes, epoch_key: bytes) -> bool:
    """Tell whether a key is the one that a block was sealed under, without opening the block."""
    _, commitment = _block_keys(epoch_key, parcel.header, label)
    block = parcel.blocks[parcel.header.labels.index(label)]
    return hmac.compare_digest(commitment, block[:COMMITMENT])


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


def _signed_body(header: ParcelHeader, blocks: Sequence[Octets]) -> bytes:
    return encode((b"sealed", header.to_sexp(), (b"digests", *digests_of(blocks))))
