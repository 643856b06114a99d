"""The header of a parcel: what everyone may read, and what every block is bound to.

    (parcel (version "1") (network <id>)? (type <id>) (origin <key id>) (id <16 octets>) (events <16 octets>)
            (stamp <ms>) (count <n>) (epoch <ms>) (mode plain|event|attribute) (evidence <32 octets>)
            (blocks <label> …))

Numbers are plain decimals; a label is a uid, or ``*`` for the one block of event mode. The header is a canonical
S-expression because it is signed; together with its label it is the associated data of every block.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError
from maia.events import EncryptionMode, TypeId
from maia.principals import KeyId

HEADER_LIMITS = SexpLimits(max_bytes=1 << 17, max_depth=3, max_atom=512)
PARCEL_ID = 16
_HASH = 32
MAX_COUNT = 1 << 24
MAX_BLOCKS = 4096
_MAX_DIGITS = 18
WHOLE_EVENT = b"*"
_VERSION: Sexp = (b"version", b"1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelHeader:
    """What travels in the clear.

    Attributes:
        type_id: Which type; may be a keyed form of it.
        origin: The identity of the broker that sealed and signed the parcel.
        parcel_id: Fresh at every sealing, so that no two sealings share a block key.
        event_base: Names the events: event ``i`` is ``(event_base, i)``. Assigned before sealing, so that it survives a
            retry.
        stamp: Milliseconds since 1970 UTC, strictly increasing from parcel to parcel of one broker.
        count: Number of events.
        epoch: Start of the key epoch; the stamp lies in it.
        mode: What is sealed under which key.
        evidence: Hash of the certificates that show the origin's right to publish.
        labels: One per block, in order.
        network: Identity of the network, when the parcel is bound to one.
    """

    type_id: TypeId
    origin: KeyId
    parcel_id: bytes
    event_base: bytes
    stamp: int
    count: int
    epoch: int
    mode: EncryptionMode
    evidence: bytes
    labels: tuple[bytes, ...]
    network: bytes | None = None

    def __post_init__(self) -> None:
        """Refuse what no parcel can be."""
        if {len(self.parcel_id), len(self.event_base)} != {PARCEL_ID} or not 1 <= self.count <= MAX_COUNT:
            raise EncodingError("a parcel with a malformed id or count", code="PARCEL_HEADER")
        identities = (self.type_id, self.origin, self.evidence, *(() if self.network is None else (self.network,)))
        if any(len(value) != _HASH for value in identities):
            raise EncodingError("a parcel with a malformed identity", code="PARCEL_HEADER")
        if min(self.stamp, self.epoch) < 0 or max(self.stamp, self.epoch) >= 10**_MAX_DIGITS:
            raise EncodingError("a parcel with a time out of range", code="PARCEL_HEADER")
        if self.epoch > self.stamp:
            raise EncodingError("a parcel whose stamp lies before its epoch", code="PARCEL_HEADER")
        if len(self.labels) > MAX_BLOCKS or len(set(self.labels)) != len(self.labels) or not all(self.labels):
            raise EncodingError("a parcel with malformed block labels", code="PARCEL_HEADER")
        if (self.labels == (WHOLE_EVENT,)) is not (self.mode is EncryptionMode.EVENT) or (
            self.mode is not EncryptionMode.EVENT and WHOLE_EVENT in self.labels
        ):
            raise EncodingError("event mode, and no other, has one block for all", code="PARCEL_HEADER")

    def to_sexp(self) -> Sexp:
        """Write the header."""
        network: tuple[Sexp, ...] = () if self.network is None else ((b"network", self.network),)
        return (
            b"parcel",
            _VERSION,
            *network,
            (b"type", self.type_id),
            (b"origin", self.origin),
            (b"id", self.parcel_id),
            (b"events", self.event_base),
            (b"stamp", b"%d" % self.stamp),
            (b"count", b"%d" % self.count),
            (b"epoch", b"%d" % self.epoch),
            (b"mode", self.mode.value.encode()),
            (b"evidence", self.evidence),
            (b"blocks", *self.labels),
        )

    def encoded(self) -> bytes:
        """Write the header's canonical bytes."""
        return encode(self.to_sexp())


def parse_header(data: bytes) -> ParcelHeader:
    """Read a header.

    Raises:
        EncodingError: It is no header of this version.

    >>> header = ParcelHeader(
    ...     type_id=TypeId(bytes(32)), origin=KeyId(bytes(32)), parcel_id=bytes(16), event_base=bytes(16), stamp=150,
    ...     count=3, epoch=100, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=(b"3265", b"9058"))
    >>> parse_header(header.encoded()) == header
    True
    """
    match parse_canonical(data, limits=HEADER_LIMITS):
        case (b"parcel", version, (b"network", bytes() as network), *rest) if version == _VERSION:
            return _parse_fields(network, rest)
        case (b"parcel", version, *rest) if version == _VERSION:
            return _parse_fields(None, rest)
        case _:
            raise EncodingError("not the header of a parcel of this version", code="PARCEL_HEADER")


def _parse_fields(network: bytes | None, rest: list[Sexp]) -> ParcelHeader:
    match rest:
        case [
            (b"type", bytes() as type_id),
            (b"origin", bytes() as origin),
            (b"id", bytes() as parcel_id),
            (b"events", bytes() as event_base),
            (b"stamp", bytes() as stamp),
            (b"count", bytes() as count),
            (b"epoch", bytes() as epoch),
            (b"mode", bytes() as mode),
            (b"evidence", bytes() as evidence),
            (b"blocks", *labels),
        ]:
            pass
        case _:
            raise EncodingError("a parcel header with missing or unknown fields", code="PARCEL_HEADER")
    if mode not in _MODES or not all(isinstance(label, bytes) for label in labels):
        raise EncodingError("a parcel header with malformed fields", code="PARCEL_HEADER")
    return ParcelHeader(
        type_id=TypeId(type_id),
        origin=KeyId(origin),
        parcel_id=parcel_id,
        event_base=event_base,
        stamp=_number(stamp),
        count=_number(count),
        epoch=_number(epoch),
        mode=_MODES[mode],
        evidence=evidence,
        labels=tuple(label for label in labels if isinstance(label, bytes)),
        network=network,
    )


_MODES = {mode.value.encode(): mode for mode in EncryptionMode}


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _MAX_DIGITS or (text[0] == 48 and len(text) > 1):
        raise EncodingError("a parcel header with a number that is not a plain decimal", code="PARCEL_HEADER")
    return int(text)
