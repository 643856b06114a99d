"""What the ways of sealing cost, side by side: signatures, the cipher of the thesis, and emulation; without Spark.

- *signed*: whoever holds a key could write with it, so the origin signs each parcel; what that adds (row 23.02);
- *attached*: 25 attributes under EAX, each with a key of its own, the OMAC of the nonce computed or attached
  (row 21.12), and the same attributes under AES-GCM as Maia seals them;
- *emulated*: one sub-event for each group of readers in place of one parcel for all (row 15.16).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, islice
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.bench.blocks import Bench, Weight, mean, weigh
from maia.bench.eax import TAG, Eax
from maia.bench.homes import batch_of
from maia.encryption import EpochId, KeyGroupId, Keyring, open_parcel, sign_parcel, verify_parcel
from maia.events import EncryptionMode
from maia.kernel import emulate, enforce_publication, key_groups_needed, sub_types

MODES = (EncryptionMode.PLAIN, EncryptionMode.EVENT, EncryptionMode.ATTRIBUTE)
_VALUE = 30
_STAMP = 1_780_304_400_000


@dataclass(frozen=True, slots=True)
class Signed:
    """What the origin's signature adds to a parcel; times in seconds.

    Attributes:
        attributes: How many, at attribute level.
        events: How many in the parcel.
        sealing: To enforce, seal and sign.
        signing: Of it, to sign.
        opening: To verify and open.
        verifying: Of it, to verify.
    """

    attributes: int
    events: int
    sealing: float
    signing: float
    opening: float
    verifying: float

    @property
    def share(self) -> float:
        """Return what part of publishing and reading the signature takes."""
        return (self.signing + self.verifying) / (self.sealing + self.opening)


@dataclass(frozen=True, slots=True)
class Attached:
    """Opening one event whose attributes are sealed each under its own key; times in seconds.

    Attributes:
        attributes: How many, of 30 octets.
        computed: With EAX, the OMAC of the nonce computed for each attribute.
        attached: With EAX, that OMAC taken from the event.
        octets: What attaching it adds for each attribute.
        gcm: With AES-GCM under keys of the same length.
    """

    attributes: int
    computed: float
    attached: float
    octets: int
    gcm: float


@dataclass(frozen=True, slots=True)
class Emulated:
    """One publication sealed attribute by attribute, and once for each group of readers; times in seconds.

    Attributes:
        attributes: Of the type.
        groups: Of readers, with different rights.
        events: In the publication.
        parcels: What emulation writes for it.
        octets: Of these parcels.
        sealing: To make them.
        own_octets: Of the one parcel that is sealed attribute by attribute.
        own_sealing: To make that one.
        key_groups: What every combination of rights may need when it is emulated.
        own_key_groups: What it needs attribute by attribute.
    """

    attributes: int
    groups: int
    events: int
    parcels: int
    octets: int
    sealing: float
    own_octets: int
    own_sealing: float
    key_groups: int
    own_key_groups: int


@dataclass(frozen=True, slots=True)
class SealingResults:
    """All that was measured."""

    events: int
    runs: int
    weights: tuple[Weight, ...]
    signed: tuple[Signed, ...]
    attached: tuple[Attached, ...]
    emulated: tuple[Emulated, ...]

    def to_json(self) -> dict[str, object]:
        """Return everything as plain values."""
        tags = [{**asdict(item), "tags": item.tags} for item in self.weights]
        shares = [{**asdict(item), "share": item.share} for item in self.signed]
        return {**asdict(self), "weights": tags, "signed": shares}


def sealing(*, events: int, attributes: Sequence[int], groups: int, runs: int) -> SealingResults:
    """Measure all of it for each number of attributes."""
    with TemporaryDirectory(prefix="maia-bench-") as name:
        folder = Path(name)
        return SealingResults(
            events,
            runs,
            tuple(
                weigh(folder / f"w{many}{mode}", many, mode, events=events, runs=runs)
                for many in attributes
                for mode in MODES
            ),
            tuple(signed(folder / f"s{many}", many, events=events, runs=runs) for many in attributes),
            tuple(attached(many, runs=runs) for many in attributes),
            tuple(emulated(folder / f"e{many}", many, groups, events=events, runs=runs) for many in attributes),
        )


def signed(folder: Path, attributes: int, *, events: int, runs: int) -> Signed:
    """Seal, sign, verify and open a parcel, and sign and verify it alone."""
    bench = Bench(folder, attributes, EncryptionMode.ATTRIBUTE)
    batch = batch_of(events, attributes)
    parcel = bench.seal(batch)
    key_of = bench.key_of(parcel)
    return Signed(
        attributes=attributes,
        events=events,
        sealing=mean(lambda: bench.seal(batch), runs),
        signing=mean(lambda: sign_parcel(parcel.header, parcel.blocks, bench.home.broker), runs),
        opening=mean(lambda: open_parcel(verify_parcel(parcel), key_of), runs),
        verifying=mean(lambda: verify_parcel(parcel), runs),
    )


def attached(attributes: int, *, runs: int) -> Attached:
    """Open the attributes of one event in three ways."""
    nonce, header = _STAMP.to_bytes(8, "big") + secrets.token_bytes(32), b"type and attribute"
    keys = [secrets.token_bytes(32) for _ in range(attributes)]
    ciphers = [Eax(key) for key in keys]
    sealed = [cipher.seal(nonce, header, os.urandom(_VALUE)) for cipher in ciphers]
    macs = [cipher.nonce_mac(nonce) for cipher in ciphers]
    gcm = [AESGCM(key) for key in keys]
    blocks = [cipher.encrypt(nonce[:12], os.urandom(_VALUE), header) for cipher in gcm]

    def computed() -> None:
        for cipher, (block, tag) in zip(ciphers, sealed, strict=True):
            cipher.open(nonce, header, block, tag)

    def taken() -> None:
        for cipher, start, (block, tag) in zip(ciphers, macs, sealed, strict=True):
            cipher.open_attached(start, header, block, tag)

    def ours() -> None:
        for cipher, block in zip(gcm, blocks, strict=True):
            cipher.decrypt(nonce[:12], block, header)

    with_omac, without, gcm_time = _in_turns((computed, taken, ours), 100 * runs)
    return Attached(attributes, with_omac, without, TAG, gcm_time)


def _in_turns(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Give the mean times of pieces of work that take turns, so that what else runs here burdens all alike."""
    laps = [[mean(work, 1) for work in works] for _ in range(rounds)]
    return [fmean(lap[at] for lap in laps) for at in range(len(works))]


def emulated(folder: Path, attributes: int, groups: int, *, events: int, runs: int) -> Emulated:
    """Enforce and seal a publication for so many groups of readers: one reads all attributes, others all but some."""
    bench = Bench(folder, attributes, EncryptionMode.ATTRIBUTE)
    batch = batch_of(events, attributes)
    event_type = bench.plan.event_type()
    uids = [item.uid for item in event_type.attributes]
    every = (part for size in range(attributes, 0, -1) for part in combinations(uids, size))
    subs = sub_types(event_type.type_id, islice(every, groups))
    ring = Keyring()
    for sub in subs:
        ring.add(KeyGroupId(sub.type_id, b"*"), EpochId(0), secrets.token_bytes(32))

    def split() -> list[int]:
        admitted = enforce_publication(event_type, batch, bench.plan.clauses).batch
        parcels = emulate(
            admitted, subs, bench.plan.sealing, bench.home.broker, ring, stamp=_STAMP,
            fresh_id=lambda: secrets.token_bytes(16), event_base=secrets.token_bytes(16),
        )  # fmt: skip
        return [len(parcel.to_bytes()) for parcel in parcels]

    sizes = split()
    return Emulated(
        attributes=attributes,
        groups=len(subs),
        events=events,
        parcels=len(sizes),
        octets=sum(sizes),
        sealing=mean(split, runs),
        own_octets=len(bench.seal(batch).to_bytes()),
        own_sealing=mean(lambda: bench.seal(batch).to_bytes(), runs),
        key_groups=key_groups_needed(attributes, emulated=True),
        own_key_groups=key_groups_needed(attributes, emulated=False),
    )
