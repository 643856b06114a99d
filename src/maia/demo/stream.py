"""The numberplate scenario on real data: domains, keys, cameras, and what each reader gets, through Spark.

Everything reported is what the pipeline did: counts come from the log's commits and from the readers' DataFrames, the
relay's view from the files themselves, the explanation from the clauses, and the speed from running the same rows
through a plain Parquet log in the same session.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maia
from maia.authority import Action, Constraint, network_right, type_right
from maia.demo.views import Cell, SceneView, refused, seen
from maia.domain import Domain
from maia.encryption import Keyring
from maia.errors import MaiaError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.log import read_audit
from maia.principals import KeySigner
from maia.spark import start_spark
from maia.testing import ATTRIBUTES, NETWORK_NAME, TYPE_NAME, TYPE_VERSION, NumberplateNetwork, grant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READERS = (("BO", "ccs", "billing office"), ("SO", "ccs", "statistics office"), ("Smith", "met", "detective"))
PLATE = "AE05 XYZ"
_SHOWN = 5
_OLD = 100  # one sighting in so many of the second camera is older than it may send

Say = Callable[[str], None]


@dataclass(slots=True)
class StreamFacts:
    """What happened, for people and for machines."""

    events: int
    published: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)
    readers: dict[str, dict[str, Any]] = field(default_factory=dict)
    relay: dict[str, Any] = field(default_factory=dict)
    explanation: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Throughput of Maia, written and read, against plain Parquet in the same session."""
        ours = self.seconds["maia write"] + self.seconds["maia read"]
        return (self.seconds["parquet write"] + self.seconds["parquet read"]) / ours

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "events": self.events, "published": self.published, "refused": self.refused, "denied": self.denied,
            "readers": self.readers, "relay": self.relay, "explanation": self.explanation,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "throughput_ratio_to_plaintext": round(self.ratio, 3),
        }  # fmt: skip

    def views(self) -> list[SceneView]:
        """Show the same sightings as three readers and a relay see them, by the time of the day."""
        found = [
            seen(
                f"{who}, the {view['title']}", tuple(ATTRIBUTES),
                [row | {"timestamp": str(row["timestamp"]).partition("T")[2]} for row in view["rows"]],
                remark=f"{view['events']:,} of {self.published:,} events",
            )
            for who, view in self.readers.items()
        ]  # fmt: skip
        plate = "found" if self.relay["finds_plate_in_log"] else "not found"
        relay: tuple[tuple[Cell, ...], ...] = (
            ("keys that it holds", self.relay["holds_keys"]),
            ("attributes", ", ".join(self.relay["sees"]["attributes"])),
            ("their values", None),
            (f"{PLATE} in its bytes", plate),
            ("asks to read", refused(self.denied["Kent reads"])),
        )
        return [*found, SceneView(title="Kent, which relays the log", columns=("what it sees", ""), rows=relay)]


def play(network: NumberplateNetwork, folder: Path, *, events: int, say: Say) -> StreamFacts:
    """Play the scenario in a folder.

    Args:
        network: Keys and certificates.
        folder: An empty folder; homes and the shared log go there.
        events: How many sightings.
        say: Tells the person at the terminal what is going on.
    """
    facts = StreamFacts(events)
    domains = numberplate_domains(network, folder)
    say("starting Spark")
    spark = start_spark()
    frames = _sightings(spark, events, network.now)
    say(f"publishing {events:,} sightings")
    _warm(numberplate_domains(network, folder / "warm")["ccs"], frames["CCTV"], folder / "warm")
    facts.seconds["maia write"] = _timed(lambda: _publish(domains["ccs"], frames))
    _count(domains["ccs"], frames, facts)
    domains["met"].home.save_keyring(_copied(domains["ccs"].home.keyring()))
    say("reading as billing office, statistics office, detective and relay")
    facts.seconds["maia read"] = _timed(lambda: _drain(domains["ccs"].client("SO").read(TYPE_NAME)))
    for who, domain, title in READERS:
        facts.readers[who] = _view(domains[domain].client(who).read(TYPE_NAME), title)
    _relay(domains["kent"], facts)
    explained = domains["ccs"].explain(TYPE_NAME, principal="BO", attribute="location")
    facts.explanation = explained.lines()
    say("running the same rows through a plain Parquet log")
    plain = folder / "plain.parquet"
    facts.seconds["parquet write"] = _timed(lambda: _all(frames).write.parquet(str(plain)))
    facts.seconds["parquet read"] = _timed(
        lambda: _drain(spark.read.parquet(str(plain)).select("timestamp", "location"))
    )
    return facts


def numberplate_domains(network: NumberplateNetwork, folder: Path) -> dict[str, Domain]:
    """Make the homes of three domains that share one log, and of a relay that holds no key."""
    made: dict[str, Domain] = {}
    people = {name: network.people[name] for name in network.people}
    people["CCTV-2"], people["Kent"] = KeySigner.generate(), KeySigner.generate()
    certificates = [*network.certificates.values(), *_more_rights(network, people)]
    definition = EventType(
        name=TypeName(network.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
        attributes=tuple(
            attribute(name, uid, "timestamp" if name == "timestamp" else "string") for name, uid in ATTRIBUTES.items()
        ),
    )
    signed = sign_event_type(definition, network.people["PITO"])
    for domain, broker, members in (
        ("ccs", "CB", ("BO", "SO", "CCTV", "CCTV-2")),
        ("met", "MB", ("Smith",)),
        ("kent", "Kent", ()),
    ):
        config = HomeConfig(name=domain, broker=broker, network=("PITO", NETWORK_NAME), log="../log")
        home = Home.create(folder / domain, config, broker=people[broker])
        home.add_public_key("PITO", network.key("PITO"))
        for member in members:
            home.add_key(member, people[member])
        for certificate in certificates:
            home.certificates.add(certificate)
        home.types.put(signed.raw, at=network.now)
        made[domain] = maia.open(home.path)
    return made


def _more_rights(network: NumberplateNetwork, people: dict[str, KeySigner]) -> list[Any]:
    """Let a second camera send today's sightings only, and a fourth domain connect without any right on the type."""
    pito = network.key("PITO")
    connect = network_right(pito, NETWORK_NAME, [Action.CONNECT])
    today = Constraint(ATTRIBUTES["timestamp"], ">=", _midnight(network.now))
    return [
        grant(people["CCS"], people["CCTV-2"], connect),
        grant(
            people["CCS"], people["CCTV-2"], type_right(pito, TYPE_NAME, actions=[Action.PUBLISH], constraints=[today])
        ),
        grant(people["PITO"], people["Kent"], connect),
    ]


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _sightings(spark: SparkSession, events: int, now: datetime) -> dict[str, DataFrame]:
    """Make the sightings of two cameras; every thousandth is the car that the detective follows."""
    from pyspark.sql import functions as F  # noqa: N812

    start = int(_midnight(now).timestamp())
    yesterday = int((_midnight(now) - timedelta(days=1)).timestamp())
    plate = F.when(F.col("id") % 1000 == 0, F.lit(PLATE)).otherwise(
        F.concat(F.lit("BX"), F.lpad((F.col("id") % 100).cast("string"), 2, "0"), F.lit(" "), F.hex(F.col("id")))
    )
    seen = F.timestamp_seconds(F.lit(start) + F.col("id") % 86_400)
    place = F.element_at(
        F.array(*[F.lit(x) for x in ("Victoria", "Paddington", "Euston")]), (F.col("id") % 3 + 1).cast("int")
    )
    half = events // 2
    first = spark.range(0, events - half, 1, 2).select(
        plate.alias("numberplate"), seen.alias("timestamp"), place.alias("location")
    )
    old = F.when(F.col("id") % _OLD == 0, F.timestamp_seconds(F.lit(yesterday))).otherwise(seen)
    second = spark.range(events - half, events, 1, 2).select(
        plate.alias("numberplate"), old.alias("timestamp"), place.alias("location")
    )
    return {"CCTV": first.cache(), "CCTV-2": second.cache()}


def _publish(domain: Domain, frames: dict[str, DataFrame]) -> None:
    for camera, frame in frames.items():
        domain.client(camera).publish(frame, TYPE_NAME)


def _count(domain: Domain, frames: dict[str, DataFrame], facts: StreamFacts) -> None:
    """Count what was published and refused, and let somebody without the right try."""
    facts.published = sum(commit.events for commit in domain.log.commits())
    facts.refused = _refused(domain)
    try:
        domain.client("BO").publish(frames["CCTV"].limit(1), TYPE_NAME)
    except Exception as error:  # noqa: BLE001 - Spark wraps what its data sources raise
        facts.denied["BO publishes"] = _code(error)


def _refused(domain: Domain) -> dict[str, int]:
    """Count what was refused, by code, from the audit."""
    found: Counter[str] = Counter()
    for row in read_audit(domain.home.audit_path):
        if row.kind == "refuse":
            found[row.code] += row.events
    return dict(found)


def _view(frame: DataFrame, title: str) -> dict[str, Any]:
    """Count a reader's rows and show the first few that have the car in question near the top."""
    rows = frame.orderBy("timestamp", "numberplate").limit(_SHOWN).collect()
    shown = [
        {name: (value.isoformat() if isinstance(value, datetime) else value) for name, value in row.asDict().items()}
        for row in rows
    ]
    return {"title": title, "events": frame.count(), "rows": shown}


def _relay(domain: Domain, facts: StreamFacts) -> None:
    """Look at the log with the eyes of a broker that relays it and holds no key."""
    home, log = domain.home, domain.log
    first = next(log.commits())
    parcels = log.parcels(first.lane, first.files[0])
    parcel = next(parcels).parse()
    data = (home.log_path / first.files[0].path).read_bytes()
    facts.relay = {
        "sees": {
            "type": parcel.header.type_id.hex()[:16], "origin": parcel.header.origin.hex()[:16],
            "stamp": parcel.header.stamp, "events": parcel.header.count,
            "attributes": [label.decode() for label in parcel.header.labels],
            "first block": bytes(parcel.blocks[0][32:64]).hex(),
        },
        "holds_keys": len(home.keyring().groups()),
        "finds_plate_in_log": PLATE.encode() in data,
    }  # fmt: skip
    try:
        home.add_key("relay", home.broker)
        domain.client("relay").read(TYPE_NAME).count()
    except Exception as error:  # noqa: BLE001 - Spark wraps what its data sources raise
        facts.denied["Kent reads"] = _code(error)


def _copied(ring: Keyring) -> Keyring:
    """Hand all keys over; which ones a broker may have is the key manager's question."""
    return Keyring.from_bytes(ring.to_bytes())


def _code(error: Exception) -> str:
    """Find Maia's code in an error, also when Spark wrapped it."""
    if isinstance(error, MaiaError):
        return error.code
    found = re.findall(r"maia\.errors\.\w+: \[([A-Z_]+)\]", str(error))
    return found[-1] if found else type(error).__name__


def _warm(domain: Domain, frame: DataFrame, folder: Path) -> None:
    """Start workers and compilers on a few rows, in homes of their own, before anything is measured."""
    frame.count()
    domain.client("CCTV").publish(frame.limit(64), TYPE_NAME)
    _drain(domain.client("SO").read(TYPE_NAME))
    frame.limit(64).write.parquet(str(folder / "plain.parquet"))
    shutil.rmtree(folder)


def _all(frames: dict[str, DataFrame]) -> DataFrame:
    first, second = frames.values()
    return first.unionAll(second)


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
