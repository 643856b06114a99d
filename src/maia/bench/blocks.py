"""What sealing adds to a parcel in octets and time, and what a plaintext cache spares; on one core, without Spark.

The thesis ran AES-EAX on each attribute of each event, whose OMAC of the nonce could be computed once and attached.
Maia seals a column under a derived key with AES-GCM: the header is the associated data of each block, and the tag of 16
octets is all that authentication adds to a block's ciphertext, whatever the number of events.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from maia.bench.cache import CachedParcel, from_wire, open_cached, to_wire
from maia.bench.homes import TYPE, WRITER, batch_of, make_domain, now, plan_of
from maia.domain import own_lanes
from maia.encryption import (
    KeyGroupId,
    Parcel,
    open_parcel,
    parse_parcel,
    verify_parcel,
)
from maia.events import EncryptionMode, parse_event_type
from maia.home import verify_with_registry
from maia.kernel import DeliveryPlan, PublishPlan, publish_batches
from maia.log import LogDirectory

TAG, COMMITMENT, LENGTH = 16, 32, 4
_NONCE = bytes(12)


@dataclass(frozen=True, slots=True)
class Weight:
    """What one parcel holds, and what that costs a reader.

    Attributes:
        mode: How it is sealed.
        attributes: How many.
        events: How many.
        blocks: How many ciphertexts, which is how many encryptions and decryptions.
        octets: Of the parcel.
        plaintext: Of its columns.
        opening: Seconds to decrypt and decode it, signature verified before.
        without_header: Seconds to decrypt blocks of the same sizes with no associated data.
        with_header: Seconds to decrypt them with the header as associated data.
    """

    mode: str
    attributes: int
    events: int
    blocks: int
    octets: int
    plaintext: int
    opening: float
    without_header: float
    with_header: float

    @property
    def tags(self) -> int:
        """Count the octets of all tags."""
        return 0 if self.mode == "plain" else TAG * self.blocks


@dataclass(frozen=True, slots=True)
class Hop:
    """What a parcel costs the second of two brokers that may read the same; times in seconds.

    Attributes:
        mode: How the parcel is sealed.
        attributes: How many.
        cached: With the plaintext riding along.
        opened: Without, so that it decrypts once more.
        decryptions: How many blocks it decrypted when the plaintext rode along.
    """

    mode: str
    attributes: int
    cached: float
    opened: float
    decryptions: int


@dataclass(frozen=True, slots=True)
class Types:
    """What signed types cost a publication; times in seconds of processor time.

    Attributes:
        events: How many events.
        publishing: Time to enforce and seal them.
        verifying: Time to verify the signed definition, once for each publication.
        publications: How many publications a plan serves where throughput is compared.
        throughput: Events a second of processor time with a definition that is verified when the plan is made, over
            those with one that is taken as it is; both take turns, publication by publication, and of each the faster
            half counts.
    """

    events: int
    publishing: float
    verifying: float
    publications: int = 1
    throughput: float = 1.0

    @property
    def share(self) -> float:
        """Return the verification as a share of the publication."""
        return self.verifying / self.publishing


class Bench:
    """A home whose broker seals parcels of so many attributes in one mode."""

    def __init__(self, folder: Path, attributes: int, mode: EncryptionMode) -> None:
        """Make the home and the plan."""
        self.attributes, self.mode = attributes, mode
        self.domain = make_domain(folder / f"{mode.value}-{attributes}", attributes, mode)
        self.home = self.domain.home
        self.plan: PublishPlan = self.domain.publish_plan(
            TYPE, client=self.domain.prove(WRITER), publication="bench", max_events=1 << 20
        )  # fmt: skip
        self.keys = self.home.keyring()

    def seal(self, batch: pa.RecordBatch) -> Parcel:
        """Enforce and seal a batch into one parcel."""
        [sealed] = publish_batches(
            self.plan, 0, iter([batch]), self.home.broker, self.keys, lambda: int(now().timestamp() * 1000)
        )
        if sealed.parcel is None:
            raise AssertionError(sealed.refused)  # the publisher may set everything
        return sealed.parcel

    def key_of(self, parcel: Parcel) -> Callable[[bytes], bytes | None]:
        """Give the keys of a parcel's blocks."""
        type_id = parcel.header.type_id

        def key(label: bytes) -> bytes | None:
            group = KeyGroupId(type_id, label)
            return self.keys.key(group, self.keys.epochs(group)[-1])

        return key

    def deliveries(self, parcel: Parcel) -> DeliveryPlan:
        """Commit a parcel to the log and compile a subscription to everything."""
        log = LogDirectory(self.home.log_store)
        origin = self.home.broker.public_key.key_id
        writer = log.writer("bench", self.plan.sealing.type_id, 0, origin, at=now())
        writer.add(parcel)
        written = writer.close()
        own_lanes(self.home, log).commit(
            secrets.token_hex(8), self.plan.sealing.type_id.hex(), () if written is None else (written,),
            evidence=parcel.header.evidence.hex(), at=now(),
        )  # fmt: skip
        return plan_of(self.domain, 1).compiled()


def weigh(folder: Path, attributes: int, mode: EncryptionMode, *, events: int = 16_384, runs: int = 5) -> Weight:
    """Seal one parcel and look at its octets and at what opening it takes."""
    bench = Bench(folder, attributes, mode)
    parcel = bench.seal(batch_of(events, attributes))
    verified = verify_parcel(parcel)
    key_of = bench.key_of(parcel)
    sizes = [len(block) if mode is EncryptionMode.PLAIN else len(block) - COMMITMENT - TAG for block in parcel.blocks]
    header = parcel.header.encoded()
    cipher = AESGCM(bytes(32))
    bare = [cipher.encrypt(_NONCE, bytes(size), None) for size in sizes]
    bound = [cipher.encrypt(_NONCE, bytes(size), header) for size in sizes]
    return Weight(
        mode=mode.value,
        attributes=attributes,
        events=events,
        blocks=len(parcel.blocks),
        octets=len(parcel.to_bytes()),
        plaintext=sum(sizes),
        opening=mean(lambda: open_parcel(verified, key_of), runs),
        without_header=mean(lambda: [cipher.decrypt(_NONCE, block, None) for block in bare], runs),
        with_header=mean(lambda: [cipher.decrypt(_NONCE, block, header) for block in bound], runs),
    )


def hop(folder: Path, attributes: int, mode: EncryptionMode, *, events: int = 16_384, runs: int = 5) -> Hop:
    """Pass a parcel from a broker that opened it to one of the same rights, which shows it to a subscription."""
    bench = Bench(folder, attributes, mode)
    parcel = bench.seal(batch_of(events, attributes))
    key_of, plan = bench.key_of(parcel), bench.deliveries(parcel)
    labels = frozenset(parcel.header.labels)
    first = open_cached(CachedParcel(verify_parcel(parcel)), key_of)
    with_cache, alone = to_wire(first, allowed=labels), parcel.to_bytes()

    def show(columns: dict[bytes, pa.Array]) -> None:
        names = [uid.decode() for uid in columns]
        [delivery] = plan.deliver(pa.RecordBatch.from_arrays(list(columns.values()), names=names))
        if delivery.batch.num_rows != events:
            raise AssertionError(delivery.batch.num_rows)

    def cached() -> CachedParcel:
        second = open_cached(from_wire(with_cache, believed=labels), key_of)
        show(dict(second.columns))
        return second

    def opened() -> None:
        show(open_parcel(verify_parcel(parse_parcel(alone)), key_of))

    decryptions = cached().decryptions
    laps: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for work, times in zip((cached, opened), laps, strict=True):
            times.append(_timed(work))
    return Hop(mode.value, attributes, fmean(laps[0]), fmean(laps[1]), decryptions)


def types(folder: Path, *, attributes: int = 10, events: int = 16_384, runs: int = 5, publications: int = 10) -> Types:
    """Publish under a signed type, whose signature is verified when the plan is made and never again."""
    bench = Bench(folder, attributes, EncryptionMode.PLAIN)
    batch = batch_of(events, attributes)
    definition = parse_event_type(bench.plan.definition)
    verifier = bench.home.verifier()

    laps: dict[str, list[float]] = {"plain": [], "signed": [], "verifying": []}
    bench.seal(batch)
    for number in range(runs * publications):
        for way in ("plain", "signed") if number % 2 else ("signed", "plain"):
            start = time.process_time()
            if way == "signed" and number % publications == 0:
                verify_with_registry(bench.home.types, definition, verifier=verifier, at=now())
                laps["verifying"].append(time.process_time() - start)
                start = time.process_time()
            bench.seal(batch)
            laps[way].append(time.process_time() - start)
    plain, signed, verifying = (_faster_half(laps[name]) for name in ("plain", "signed", "verifying"))
    return Types(
        events=events, publishing=plain, verifying=verifying, publications=publications,
        throughput=plain / (signed + verifying / publications),
    )  # fmt: skip


def _faster_half(laps: list[float]) -> float:
    """Give the mean of the faster half: whatever else a machine does only ever slows."""
    return fmean(sorted(laps)[: max(1, len(laps) // 2)])


def mean(work: Callable[[], object], runs: int) -> float:
    """Give the mean time of a piece of work in seconds; a first run does not count."""
    work()
    return fmean(_timed(work) for _ in range(runs))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
