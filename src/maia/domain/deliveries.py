"""What the delivery job put into a domain's outbox: how much for whom, and one subscription's events for its client.

Rules kept here:

- only the client whose key was proven reads its own subscription's deliveries;
- the audit has the intent before the first event is handed out, and the result;
- what was delivered is handed out with the rights of now: a client that lost its right gets nothing, and an attribute
  that is closed by now is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from maia.domain.client import Client
from maia.domain.domain import Domain
from maia.domain.operations import Operation, audit_of, code_of, intent_to_read
from maia.domain.stretches import wire_types
from maia.domain.subscriptions import HomeSecret
from maia.domain.wanted import Wanted, read_subscriptions
from maia.encoding import did_you_mean
from maia.errors import DeniedError, NotFoundError
from maia.log import OK, STOPPED, Outbox, Places, hash_subscription, read_audit

_DEAD = "dead letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What a run of the delivery job did.

    Attributes:
        commits: Commits of the log that it went through.
        events: Events that each subscription was delivered.
        refused: Subscriptions that got nothing, with the code that says why.
        dead: Events that became dead letters, by code.
        waits: Subscriptions that cannot be judged and get what they miss later, with the code of the doubt.
        lag: Commits that still wait.
    """

    commits: int
    events: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    dead: Mapping[str, int] = field(default_factory=dict)
    waits: Mapping[str, str] = field(default_factory=dict)
    lag: int = 0

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        return {
            "commits": self.commits, "events": dict(self.events), "refused": dict(self.refused),
            "dead": dict(self.dead), "waits": dict(self.waits), "lag": self.lag,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an outbox stood, to tell later what was added."""

    commits: int
    events: Mapping[str, int]
    at: datetime


def outbox_of(domain: Domain) -> Outbox:
    """Return the outbox of a domain."""
    return Outbox(domain.path / "outbox")


def mark_outbox(domain: Domain) -> Mark:
    """Remember where the outbox stands.

    Raises:
        NotFoundError: The home keeps no subscriptions: ``NO_SUBSCRIPTIONS``.
    """
    wanted = read_subscriptions(domain.path)
    if not wanted:
        raise NotFoundError(
            "this home keeps no subscriptions; `maia deliver add NAME --as CLIENT --type TYPE` makes one",
            code="NO_SUBSCRIPTIONS",
        )
    outbox = outbox_of(domain)
    return Mark(
        sum(commit.commits for commit in outbox.commits()), outbox.count(item.name for item in wanted), domain.clock()
    )


def delivered_since(domain: Domain, mark: Mark) -> Delivered:
    """Tell what was added to the outbox since a mark, and who got nothing and why."""
    outbox = outbox_of(domain)
    head = outbox.head()
    counts = outbox_of(domain).count(item.name for item in read_subscriptions(domain.path))
    refused: dict[str, str] = {}
    dead: Counter[str] = Counter()
    for row in read_audit(domain.home.audit_path, since=mark.at):
        if row.kind == "refuse" and row.subject == _DEAD and row.source.startswith("outbox batch "):
            dead[row.code] += row.events
        elif row.kind == "refuse" and row.subject in counts:
            refused[row.subject] = row.code
    waiting = {} if head is None else {name: code for item in head.waiting for name, code in item.subscriptions.items()}
    waits = {name: waiting[hashed] for name in sorted(counts) if (hashed := hash_subscription(name)) in waiting}
    events = {name: count - mark.events.get(name, 0) for name, count in sorted(counts.items())}
    return Delivered(
        commits=sum(commit.commits for commit in outbox.commits()) - mark.commits, events=events, refused=refused,
        dead=dict(dead), waits=waits, lag=lag(domain, {} if head is None else head.upto),
    )  # fmt: skip


def lag(domain: Domain, upto: Places) -> int:
    """Count the records of the lanes of known types that lie behind an offset."""
    types = wire_types(domain, domain.known(at=domain.clock()))
    return domain.log.behind(upto, types)


def read_deliveries(domain: Domain, client: Client, name: str) -> Iterator[pa.RecordBatch]:
    """Open what one subscription was delivered, for its client.

    Raises:
        NotFoundError: There is no such subscription: ``NO_SUBSCRIPTION``.
        DeniedError: It is somebody else's: ``NOT_YOUR_SUBSCRIPTION``.
        MaiaError: The client has no right any more, or the outbox is damaged.
    """
    wanted = find_subscription(domain, name)
    if wanted.as_ != client.name:
        raise DeniedError("the subscription is somebody else's", code="NOT_YOUR_SUBSCRIPTION")
    plan = domain.deliver_plan(
        wanted.type, client=client.proven, where=wanted.where, version=wanted.version, commits=()
    )  # fmt: skip
    held = plan.subscriptions[0]
    clauses = [clause for clause in held.clauses if clause.counts]
    closed = {item.name for item in held.event_type.attributes if not any(clause.opens(item.uid) for clause in clauses)}
    intent = intent_to_read(
        plan, client.proven, attributes=None, source=f"outbox of {name}", events=0,
        at=domain.clock(),
    )  # fmt: skip
    audit = audit_of(domain.home)
    operation, events = Operation(audit, audit.begin(intent), intent), 0
    code = STOPPED
    try:
        for batch in outbox_of(domain).read(name, HomeSecret(str(domain.path.resolve()))()):
            events += batch.num_rows
            yield _screened(batch, closed)
        code = OK
    except BaseException as error:
        code = code_of(error)
        raise
    finally:
        operation.end(code, events=events)


def find_subscription(domain: Domain, name: str) -> Wanted:
    """Find a subscription that the home keeps.

    Raises:
        NotFoundError: There is none of this name: ``NO_SUBSCRIPTION``.
    """
    kept = {item.name: item for item in read_subscriptions(domain.path)}
    if name not in kept:
        raise NotFoundError(f"there is no subscription `{name}`{did_you_mean(name, kept)}", code="NO_SUBSCRIPTION")
    return kept[name]


def _screened(batch: pa.RecordBatch, closed: set[str]) -> pa.RecordBatch:
    columns = [
        pa.nulls(batch.num_rows, item.type) if item.name in closed else batch.column(place)
        for place, item in enumerate(batch.schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
