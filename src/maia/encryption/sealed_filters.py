"""Filters that travel between brokers, sealed for those who may read what they ask about.

    (filter "1" (type <id>) (origin <key id>) (id <16 octets>) (mode event|attribute) (attributes <uid>*)
            (block <label> "epoch" <octets>)*)

The type and the attributes are there for all to read; what is asked of them is not. A block is sealed as one of an
event is: a key commitment (32), then AES-256-GCM ciphertext and tag, under a key of its own. An attribute has one block
for each epoch in which something is asked about it, the oldest first.

Rules kept here:

- all constraints on one attribute are one block, padded: neither their number nor the length of their values shows. In
  event mode the whole filter is one block;
- no block shares a key, and so a nonce, with one of an event: the key comes from the epoch key by another purpose than
  theirs (`maia/1 filter` and `maia/1 block`), and from an id that is fresh at every sealing;
- a block is bound to the whole filter: moved to another type, attribute or origin, it does not open;
- whoever lacks the key of an attribute can make no block for it that a holder takes: one that should open and does not
  counts as little as one whose key is not here, so that no answer tells who holds which key;
- a block speaks of what was sealed under its own epoch's key, and of nothing else: it is proof that its author could
  read that, and no proof for what came before or after it;
- what cannot be read is never taken to fail: an event is stopped by a constraint that was read and does not hold, and
  by nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption.epochs import EpochId
from maia.encryption.header import WHOLE_EVENT
from maia.encryption.keyring import KeyGroupId, KeyProvider, current_epoch
from maia.errors import EncodingError, FilterTypeError, MaiaError, SealError, UsageError
from maia.events import AttributeType, EncryptionMode, TypeId
from maia.filters import TypedConstraint, TypedFilter, from_tag, select, to_tag
from maia.principals import KeyId

MAX_FILTER = 64 << 10
"""Octets of a sealed filter."""
FILTER_ID = 16
_MOST, _MOST_BLOCKS, _MOST_EPOCHS = 64, 128, 32
_ROOM, _AROUND = 48 << 10, 160
_COMMITMENT, _TAG, _HASH, _DIGITS = 32, 16, 32, 18
_NONCE = bytes(12)  # every block has its own key, used once
_PADDING = 256
_LIMITS = SexpLimits(max_bytes=MAX_FILTER, max_depth=24, max_atom=MAX_FILTER)

Attributes = Mapping[bytes, tuple[str, AttributeType]]
"""The attributes of a type that can be asked about: name and kind by uid."""


@dataclass(frozen=True, slots=True)
class FilterBlock:
    """What is asked of one attribute, or all of it in event mode, sealed."""

    label: bytes
    epoch: EpochId
    octets: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFilter:
    """A filter as it travels. Nothing about it was checked.

    Attributes:
        type_id: Which type; may be a keyed form of it.
        origin: The broker whose filter it is.
        filter_id: Fresh at every sealing.
        mode: Whether attributes are sealed one by one or all together.
        attributes: Uids of the attributes that it asks about, sorted.
        blocks: In the same order, and by epoch; labelled ``*`` in event mode.
    """

    type_id: TypeId
    origin: KeyId
    filter_id: bytes
    mode: EncryptionMode
    attributes: tuple[bytes, ...]
    blocks: tuple[FilterBlock, ...]

    def __post_init__(self) -> None:
        """Refuse what no filter can be."""
        labels = (WHOLE_EVENT,) if self.mode is EncryptionMode.EVENT else self.attributes
        places = [(block.label, block.epoch) for block in self.blocks]
        if (
            {len(self.type_id), len(self.origin)} != {_HASH}
            or len(self.filter_id) != FILTER_ID
            or self.mode is EncryptionMode.PLAIN
            or not 0 < len(self.attributes) <= _MOST
            or list(self.attributes) != sorted(set(self.attributes))
            or len(places) > _MOST_BLOCKS
            or places != sorted(set(places))
            or {label for label, _ in places} != set(labels)
        ):
            raise EncodingError("not a sealed filter", code="FILTER_SHAPE")

    def head(self) -> tuple[Sexp, ...]:
        """Write all but the blocks: what everybody reads, and what every block is bound to."""
        return (
            b"filter", b"1", (b"type", self.type_id), (b"origin", self.origin), (b"id", self.filter_id),
            (b"mode", self.mode.value.encode()), (b"attributes", *self.attributes),
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Write the filter."""
        blocks = ((b"block", block.label, b"%d" % block.epoch, block.octets) for block in self.blocks)
        return encode((*self.head(), *blocks))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFilter:
    """A filter as far as it could be read here, each part of that by a holder of its key.

    Attributes:
        mode: Whether attributes are sealed one by one or all together.
        read: The constraints, by uid and by the epoch of which they speak.
        unread: Uids of attributes of which a block could not be read.
        forged: Whether a block was made by nobody who holds its key, which is here. It is never told to who sent it.
    """

    mode: EncryptionMode
    read: Mapping[tuple[bytes, EpochId], tuple[TypedConstraint, ...]]
    unread: frozenset[bytes] = frozenset()
    forged: bool = False

    @property
    def constraints(self) -> tuple[TypedConstraint, ...]:
        """What was read, each constraint once, whatever epochs it speaks of."""
        return tuple(dict.fromkeys(item for constraints in self.read.values() for item in constraints))

    @property
    def whole(self) -> TypedFilter | None:
        """The filter, when all of it was read and says one thing; only then may it be compared with others."""
        said: dict[bytes, set[tuple[TypedConstraint, ...]]] = {}
        for (uid, _), constraints in self.read.items():
            said.setdefault(uid, set()).add(constraints)
        if self.unread or any(len(found) > 1 for found in said.values()):
            return None
        return TypedFilter(constraints=self.constraints)


def seal_filter(
    filter_: TypedFilter,
    uids: Mapping[str, bytes],
    keys: KeyProvider,
    *,
    group: TypeId,
    type_id: TypeId,
    origin: KeyId,
    mode: EncryptionMode,
    filter_id: bytes,
    stamp: int,
) -> SealedFilter:
    """Seal a filter under the keys of the attributes that it asks about: of every epoch, the newest so many.

    Args:
        filter_: What is asked.
        uids: The uids of attributes by name.
        keys: Gives the keys of the type's groups.
        group: Under which type the keys are.
        type_id: What the type is called where the filter travels.
        origin: The broker whose filter it is.
        mode: How the type's events are sealed.
        filter_id: Never used before.
        stamp: Now, in milliseconds.

    Raises:
        SealError: The key of this time is not held: ``NO_KEY``.
        UsageError: It asks for nothing, or the type is not sealed: ``FILTER_NOT_SEALED``.

    >>> from maia.encryption import Keyring
    >>> from maia.filters import compile_filter
    >>> ring, plate = Keyring(), TypeId(bytes(32))
    >>> ring.add(KeyGroupId(plate, b"7"), EpochId(100), bytes([7]) * 32)
    >>> asked = compile_filter("price > 5 and price < 10", {"price": "integer"})
    >>> sealed = seal_filter(
    ...     asked, {"price": b"7"}, ring, group=plate, type_id=plate, origin=KeyId(bytes(32)),
    ...     mode=EncryptionMode.ATTRIBUTE, filter_id=bytes(16), stamp=150)
    >>> [block.label for block in sealed.blocks]
    [b'7']
    >>> opened = open_filter(sealed, ring, {b"7": ("price", AttributeType.INTEGER)}, group=plate)
    >>> opened.whole == asked, open_filter(sealed, Keyring(), {}, group=plate).whole
    (True, None)
    """
    if not filter_.constraints or mode is EncryptionMode.PLAIN:
        raise UsageError("a filter that asks for something, of a type that is sealed", code="FILTER_NOT_SEALED")
    tags = {uids[name]: to_tag(constraints) for name, constraints in filter_.by_attribute().items()}
    attributes = tuple(sorted(tags))
    plain = {uid: encode((b"asked", (uid, tags[uid]))) for uid in attributes}
    if mode is EncryptionMode.EVENT:
        plain = {WHOLE_EVENT: encode((b"asked", *((uid, tags[uid]) for uid in attributes)))}
    padded = {label: _padded(octets) for label, octets in plain.items()}
    room = _ROOM // sum(len(octets) + _AROUND for octets in padded.values())
    most = max(1, min(_MOST_EPOCHS, _MOST_BLOCKS // len(plain), room))
    blocks = tuple(
        FilterBlock(label, epoch, b"")
        for label in plain
        for epoch in _held_epochs(keys, KeyGroupId(group, label), stamp)[-most:]
    )
    sealed = SealedFilter(
        type_id=type_id, origin=origin, filter_id=filter_id, mode=mode, attributes=attributes, blocks=blocks
    )
    done = []
    for block in blocks:
        epoch_key = keys.key(KeyGroupId(group, block.label), block.epoch)
        if epoch_key is None:
            raise _no_key()
        key, commitment = _block_keys(epoch_key, sealed, block)
        cipher = AESGCM(key).encrypt(_NONCE, padded[block.label], _associated(sealed, block))
        done.append(FilterBlock(block.label, block.epoch, commitment + cipher))
    return SealedFilter(
        type_id=type_id, origin=origin, filter_id=filter_id, mode=mode, attributes=attributes, blocks=tuple(done)
    )


def parse_sealed_filter(data: bytes) -> SealedFilter:
    """Read a filter, believing nothing.

    Raises:
        EncodingError: It is none: ``FILTER_SHAPE``.
    """
    match parse_canonical(data, limits=_LIMITS):
        case (
            b"filter",
            b"1",
            (b"type", bytes() as type_id),
            (b"origin", bytes() as origin),
            (b"id", bytes() as filter_id),
            (b"mode", bytes() as mode),
            (b"attributes", *attributes),
            *blocks,
        ) if mode in _MODES and len(blocks) <= _MOST_BLOCKS:
            return SealedFilter(
                type_id=TypeId(type_id), origin=KeyId(origin), filter_id=filter_id, mode=_MODES[mode],
                attributes=tuple(item for item in attributes if isinstance(item, bytes)),
                blocks=tuple(map(_parse_block, blocks)),
            )  # fmt: skip
    raise EncodingError("not a sealed filter", code="FILTER_SHAPE")


def open_filter(sealed: SealedFilter, keys: KeyProvider, attributes: Attributes, *, group: TypeId) -> OpenedFilter:
    """Read what the keys at hand open of a filter; what a holder of the key did not make is as unread as the rest."""
    read: dict[tuple[bytes, EpochId], tuple[TypedConstraint, ...]] = {}
    unread, forged = set[bytes](), False
    for block in sealed.blocks:
        asked = (block.label,) if sealed.mode is EncryptionMode.ATTRIBUTE else sealed.attributes
        epoch_key = keys.key(KeyGroupId(group, block.label), block.epoch)
        try:
            found = {} if epoch_key is None else dict(_open_block(sealed, block, epoch_key, attributes))
            # SECURITY: under the key of one attribute nothing is asked about another, whose key its author may not
            # have. And what is asked about stands outside for all to see: it is that, no more and no less.
            if found and found.keys() != set(asked):
                raise _forged()
        except SealError:
            # SECURITY: an answer that differs would tell whoever has no key that this broker has it.
            found, forged = {}, True
        if not found:
            unread.update(asked)
        read |= {(uid, block.epoch): constraints for uid, constraints in found.items()}
    return OpenedFilter(mode=sealed.mode, read=read, unread=frozenset(unread), forged=forged)


def may_match(
    filter_: OpenedFilter,
    columns: Mapping[bytes, pa.Array],
    under: Mapping[bytes, EpochId],
    absent: frozenset[bytes],
    count: int,
) -> npt.NDArray[np.bool_]:
    """Tell which of some events the filter may want: all but those that a constraint which was read does not admit.

    Args:
        filter_: As far as it was read.
        columns: What could be opened of the events, by uid.
        under: Under which epoch's key each of these was sealed, by uid.
        absent: Uids of attributes that the events do not have, as everybody can see.
        count: How many events there are.
    """
    found = np.ones(count, dtype=bool)
    if any(uid in absent for uid, _ in filter_.read):
        return np.zeros(count, dtype=bool)  # null in every event, which nothing admits
    for (uid, epoch), constraints in filter_.read.items():
        # SECURITY: who seals under one epoch's key may have no other, and an answer about what another sealed would
        # open it. What cannot be read here admits everything, too: nothing is lost for want of a key.
        if under.get(uid) != epoch:
            continue
        name = constraints[0].attribute
        column = columns.get(uid)
        if column is None:
            return np.zeros(count, dtype=bool)  # sealed with the rest, and null in every event
        try:
            held = select(TypedFilter(constraints=constraints), pa.RecordBatch.from_arrays([column], names=[name]))
        except FilterTypeError:
            continue
        found &= np.asarray(held)
    return found


def _held_epochs(keys: KeyProvider, group: KeyGroupId, stamp: int) -> list[EpochId]:
    """List the epochs up to a stamp whose keys are held; that of the stamp has to be."""
    current = current_epoch(keys, group, stamp)
    if current is None or keys.key(group, current) is None:
        raise _no_key()
    return [epoch for epoch in keys.epochs(group) if epoch <= current and keys.key(group, epoch) is not None]


def _padded(octets: bytes) -> bytes:
    return len(octets).to_bytes(4, "big") + octets + bytes(-(4 + len(octets)) % _PADDING)


def _open_block(
    sealed: SealedFilter, block: FilterBlock, epoch_key: bytes, attributes: Attributes
) -> Sequence[tuple[bytes, tuple[TypedConstraint, ...]]]:
    key, commitment = _block_keys(epoch_key, sealed, block)
    # SECURITY: the commitment and the tag are what only a holder of the key can make.
    if len(block.octets) < _COMMITMENT + _TAG or not hmac.compare_digest(commitment, block.octets[:_COMMITMENT]):
        raise _forged()
    try:
        padded = AESGCM(key).decrypt(_NONCE, block.octets[_COMMITMENT:], _associated(sealed, block))
        octets = padded[4 : 4 + int.from_bytes(padded[:4], "big")]
        match parse_canonical(octets, limits=_LIMITS):
            case (b"asked", *items):
                return [_read_item(item, attributes) for item in items]
    except (InvalidTag, MaiaError) as error:
        raise _forged() from error
    raise _forged()


def _read_item(item: Sexp, attributes: Attributes) -> tuple[bytes, tuple[TypedConstraint, ...]]:
    match item:
        case (bytes() as uid, tag) if uid in attributes:
            return uid, from_tag(tag, *attributes[uid])
    raise _forged()


def _block_keys(epoch_key: bytes, sealed: SealedFilter, block: FilterBlock) -> tuple[bytes, bytes]:
    """Derive the key and the commitment of a block (HKDF-Expand, two blocks of output)."""
    # SECURITY: another purpose than that of events' blocks, so no key, and no nonce under it, is ever one of theirs.
    info = encode((b"maia/1 filter", sealed.type_id, sealed.filter_id, b"%d" % block.epoch, block.label))
    key = hmac.digest(epoch_key, info + b"\x01", hashlib.sha256)
    return key, hmac.digest(epoch_key, key + info + b"\x02", hashlib.sha256)


def _associated(sealed: SealedFilter, block: FilterBlock) -> bytes:
    return encode((b"filter block", sealed.head(), block.label))


def _parse_block(item: Sexp) -> FilterBlock:
    match item:
        case (b"block", bytes() as label, bytes() as epoch, bytes() as octets) if (
            epoch.isdigit() and len(epoch) <= _DIGITS and (epoch == b"0" or epoch[:1] != b"0")
        ):
            return FilterBlock(label, EpochId(int(epoch)), octets)
    raise EncodingError("not a block of a sealed filter", code="FILTER_SHAPE")


def _no_key() -> SealError:
    return SealError("no key to seal with", code="NO_KEY")


def _forged() -> SealError:
    return SealError("a filter that no holder of the keys made", code="FILTER_FORGED")


_MODES = {mode.value.encode(): mode for mode in EncryptionMode}
