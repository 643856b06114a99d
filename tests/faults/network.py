"""A small network for the tests of jobs and faults: two homes over one log, and ways to publish without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from maia.authority import Action, type_right
from maia.domain import (
    DeliveryJob,
    Wanted,
    commit_publication,
    find_type,
    own_lanes,
    publication_operation,
    write_partition,
)
from maia.events import (
    ClosedAttributes,
    EncryptionMode,
    EventType,
    Options,
    TypeName,
    attribute,
    parse_version,
    sign_event_type,
    to_arrow_schema,
)
from maia.home import Home, HomeConfig
from maia.kernel import PublishPlan
from maia.log import LogDirectory
from maia.testing import (
    ATTRIBUTES,
    TYPE_NAME,
    TYPE_VERSION,
    NumberplateNetwork,
    grant,
    numberplate_network,
    publish_plan,
)

CCS_SUBSCRIPTIONS = (
    Wanted(name="billing", as_="BO", type=TYPE_NAME),
    Wanted(name="statistics", as_="SO", type=TYPE_NAME),
)
MET_SUBSCRIPTIONS = (Wanted(name="detective", as_="Smith", type=TYPE_NAME),)
KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}
START = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Network:
    """Two domains: the congestion charge service, which publishes, and the police."""

    root: Path
    people: NumberplateNetwork
    ccs: Path
    met: Path

    @property
    def log(self) -> LogDirectory:
        """The log that both share."""
        return LogDirectory(self.root / "log")


def build(
    root: Path,
    *,
    mode: EncryptionMode = EncryptionMode.ATTRIBUTE,
    closed: ClosedAttributes = ClosedAttributes.NULL,
    skew: int = 5,
    free_camera: bool = False,
) -> Network:
    """Make the network; both homes get the keys of the type. A free camera may report from anywhere."""
    root.mkdir(parents=True, exist_ok=True)
    people = numberplate_network(now=datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1))
    event_type = EventType(
        name=TypeName(people.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
        attributes=tuple(attribute(name, uid, KINDS[name]) for name, uid in ATTRIBUTES.items()),
        options=Options(encryption=mode, closed=closed),
    )
    signed = sign_event_type(event_type, people.people["PITO"])
    for name, broker, keys in (("ccs", "CB", ("CB", "BO", "SO", "CCTV")), ("met", "MB", ("MB", "Smith"))):
        home = Home(root / name, HomeConfig(name=name, broker=broker, log="../log", skew=skew))
        home.path.mkdir()
        for key in keys:
            home.add_key(key, people.people[key])
        home.add_public_key("PITO", people.key("PITO"))
        (home.path / "maia.toml").write_text(home.config.to_toml(), "utf-8")
        for certificate in people.certificates.values():
            home.certificates.add(certificate)
        if free_camera:
            uids = list(ATTRIBUTES.values())
            right = type_right(people.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH], attributes=uids)
            home.certificates.add(grant(people.people["CCS"], people.people["CCTV"], right))
        home.types.put(signed.raw, at=datetime.now(UTC))
    network = Network(root, people, root / "ccs", root / "met")
    plan(network, "keys")  # makes the keys of the type
    Home.open(network.met).save_keyring(Home.open(network.ccs).keyring())
    return network


def add_type(network: Network, name: str, mode: EncryptionMode) -> None:
    """Let PITO own one more type, sealed in this way, with the camera's and the billing office's rights to it."""
    people = network.people
    owner = people.key("PITO")
    event_type = EventType(
        name=TypeName(owner, name, parse_version("1")),
        attributes=tuple(attribute(item, uid, KINDS[item]) for item, uid in ATTRIBUTES.items()),
        options=Options(encryption=mode),
    )
    signed = sign_event_type(event_type, people.people["PITO"])
    uids = list(ATTRIBUTES.values())
    certificates = [
        grant(people.people["PITO"], people.people["CCS"],
              type_right(owner, name, actions=[Action.PUBLISH, Action.SUBSCRIBE]), delegate=True),
        grant(people.people["CCS"], people.people["CCTV"],
              type_right(owner, name, actions=[Action.PUBLISH], attributes=uids)),
        grant(people.people["CCS"], people.people["BO"],
              type_right(owner, name, actions=[Action.SUBSCRIBE], attributes=uids)),
    ]  # fmt: skip
    home = Home.open(network.ccs)
    for certificate in certificates:
        home.certificates.add(certificate)
    home.types.put(signed.raw, at=datetime.now(UTC))


def plan(
    network: Network, publication: str, *, as_: str = "CCTV", type_name: str = TYPE_NAME, at: datetime | None = None
) -> PublishPlan:
    """Advertise as the camera."""
    at = at or datetime.now(UTC)
    return publish_plan(Home.open(network.ccs), type_name, as_=as_, version=None, publication=publication, at=at)


def sightings(plates: Iterable[str]) -> pa.RecordBatch:
    """Make one event per plate; whatever the camera says of the place, its right forces it to Victoria."""
    found = list(plates)
    places = ["Paddington", None, *["Victoria"] * len(found)][: len(found)]
    times = [START + timedelta(seconds=number) for number in range(len(found))]
    schema = pa.schema(
        [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
    )
    return pa.RecordBatch.from_pydict({"numberplate": found, "timestamp": times, "location": places}, schema=schema)


def publish_here(
    network: Network,
    publication: str,
    batches: Sequence[pa.RecordBatch],
    *,
    as_: str = "CCTV",
    type_name: str = TYPE_NAME,
    at: datetime | None = None,
) -> None:
    """Publish without Spark, now or at another instant; returning is the acknowledgement."""
    home, at = Home.open(network.ccs), at or datetime.now(UTC)
    made = plan(network, publication, as_=as_, type_name=type_name, at=at)
    told = publication_operation(home, made, client=as_, at=at).number
    written = write_partition(home, made, 0, iter(batches), at=at)
    lanes = own_lanes(home, network.log)
    commit_publication(home, lanes, made, [written], client=as_, operation=told, at=at)


def ahead(job: DeliveryJob, commits: int = 1) -> dict[str, str]:
    """Give the places after so many commits more than the outbox has."""
    head = job.outbox.head()
    return dict(job.next_stretch({} if head is None else head.upto, None, commits, job.clock()).upto)


def delivered(job: DeliveryJob, subscription: str) -> Iterator[dict[str, object]]:
    """Open what a subscription got, as rows, in the order of delivery."""
    for batch in job.outbox.read(subscription, job.make_secret()):
        yield from batch.to_pylist()


def schema_of(network: Network) -> pa.Schema:
    """Give the schema of the type."""
    home = Home.open(network.ccs)
    return to_arrow_schema(home.read_type(find_type(home, TYPE_NAME)))
