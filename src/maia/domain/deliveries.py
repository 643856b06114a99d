"""What the delivery job put into a domain's outbox: how much for whom, and one subscription's events for its client.

Rules kept here:

- only the client whose key was proven reads its own subscription's deliveries: the key that subscribed, whatever it is
  called;
- the audit has the intent before the first event is handed out, and the result;
- what was delivered is handed out with the rights of now, by the kernel's own screening, labels included: rows and
  cells that were shown and are closed by now are not shown again, and none that were hidden are shown. What clauses of
  now ask about and was neither shown nor asked then is unknown, so they do not hold.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from maia.domain.client import Client
from maia.domain.domain import Domain
from maia.domain.operations import Operation, audit_of, code_of, intent_to_read
from maia.domain.possession import ProvenClient
from maia.domain.stretches import wire_types
from maia.domain.subscriptions import HomeSecret
from maia.domain.wanted import Wanted, read_subscriptions, read_wanted
from maia.encoding import did_you_mean
from maia.errors import DeniedError, NotFoundError, UsageError
from maia.events import ClosedAttributes
from maia.kernel import DeliverPlan, DeliveryPlan, omit_closed
from maia.log import EVENT, OK, STAMP, STOPPED, Kept, Outbox, Places, hash_subscription, read_audit

_logger = logging.getLogger(__name__)
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
    handed = begin_hand_over(domain, client.proven, name)
    events, code = 0, STOPPED
    try:
        if outbox_of(domain).head() is None:
            _logger.warning("nothing was delivered here yet: the delivery job, `maia deliver`, has not run")
        for _, item in outbox_of(domain).kept(name, HomeSecret(str(domain.path.resolve()))()):
            for _, batch in handed.screen(item, at=domain.clock()):
                events += batch.num_rows
                yield batch
        code = OK
    except BaseException as error:
        code = code_of(error)
        raise
    finally:
        handed.operation.end(code, events=events)


@dataclass(frozen=True, slots=True)
class HandOver:
    """What a client is handed of its deliveries by its rights of now, and the operation that the audit knows."""

    operation: Operation
    plan: DeliverPlan
    compiled: DeliveryPlan

    def screen(self, item: Kept, *, at: datetime) -> Iterator[tuple[Sequence[int], pa.RecordBatch]]:
        """Show of a delivery what the plan of now shows: which of its rows, and what of them.

        Raises:
            MaiaError: The plan has ended, and is made anew.
        """
        self.plan.term.check(at)
        ids = (EVENT, STAMP)
        kinds = self.plan.kinds
        shown = {uid: column for uid, column in zip(item.uids, item.batch.columns, strict=False) if uid in kinds}
        asked = {uid: column for uid, column in item.hidden.items() if uid in kinds}
        # SECURITY: rows are chosen by all that is known of them, cells are taken from what was shown alone.
        chosen, rest = (_transit(columns, item.batch[EVENT]) for columns in (shown | asked, shown))
        omits = self.plan.subscriptions[0].event_type.options.closed is ClosedAttributes.OMIT
        for delivery in self.compiled.deliver(chosen, rest=lambda: rest):
            batch = omit_closed(delivery) if omits else delivery.batch
            kept = item.batch.select(ids).take(pa.array(delivery.rows))
            fields = [*(pa.field(field.name, field.type) for field in batch.schema), *kept.schema]
            made = pa.RecordBatch.from_arrays([*batch.columns, *kept.columns], schema=pa.schema(fields))
            yield [int(row) for row in delivery.rows], made


def own_subscription(domain: Domain, client: ProvenClient, name: str) -> Wanted:
    """Find a subscription of a client's own.

    Raises:
        NotFoundError: There is no such subscription: ``NO_SUBSCRIPTION``.
        DeniedError: It is somebody else's: ``NOT_YOUR_SUBSCRIPTION``.
    """
    wanted = find_subscription(domain, name)
    if not wanted.is_of(client.key):
        what = "somebody else's" if wanted.key else "of no key that is known: keep another one, under a new name"
        raise DeniedError(f"the subscription is {what}", code="NOT_YOUR_SUBSCRIPTION")
    return wanted


def begin_hand_over(domain: Domain, client: ProvenClient, name: str) -> HandOver:
    """Judge a client's right to what its subscription was delivered, as it is now, and tell the audit.

    Raises:
        NotFoundError: There is no such subscription: ``NO_SUBSCRIPTION``.
        DeniedError: It is somebody else's: ``NOT_YOUR_SUBSCRIPTION``.
        MaiaError: The client has no right any more.
    """
    wanted = own_subscription(domain, client, name)
    plan = domain.deliver_plan(wanted.type, client=client, where=wanted.where, version=wanted.version, commits=())
    intent = intent_to_read(plan, client, attributes=None, source=f"outbox of {name}", events=0, at=domain.clock())
    audit = audit_of(domain.home)
    return HandOver(Operation(audit, audit.begin(intent), intent), plan, plan.compiled())


def last_events(batches: Iterable[pa.RecordBatch], count: int) -> list[pa.RecordBatch]:
    """Keep the last so many rows of batches, in their order.

    Raises:
        UsageError: The count is no positive number.
    """
    if count < 1:
        raise UsageError("the last events are at least one", code="OUTPUT_LIMIT")
    kept: deque[pa.RecordBatch] = deque()
    rows = 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        while rows - kept[0].num_rows >= count:
            rows -= kept.popleft().num_rows
    return [batch.slice(max(0, rows - count)) if place == 0 else batch for place, batch in enumerate(kept)]


def find_subscription(domain: Domain, name: str) -> Wanted:
    """Find a subscription that the home keeps, or kept until its client ended it.

    Raises:
        NotFoundError: There is none of this name: ``NO_SUBSCRIPTION``.
    """
    kept = {item.name: item for part in read_wanted(domain.path) for item in part}
    if name not in kept:
        raise NotFoundError(f"there is no subscription `{name}`{did_you_mean(name, kept)}", code="NO_SUBSCRIPTION")
    return kept[name]


def _transit(columns: Mapping[str, pa.Array], events: pa.Array) -> pa.RecordBatch:
    """Name columns by uid; the ids are there so that rows without any other column are rows."""
    return pa.RecordBatch.from_arrays([*columns.values(), events], names=[*columns, EVENT])
