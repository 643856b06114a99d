"""Orders: what a task on another machine must know, sealed to the domain's workers.

Rules kept here:

- an order has all that the kernel needs: the plan, the keys, the place of the log; a worker needs its key file and
  nothing of the home. It ends as the plan in it ends;
- an order to read holds the keys of the type that is read and of those that it extends, no others. An order to publish
  holds none: what the task seals, it seals under keys of the task, and the driver seals it again under the domain's;
- the broker's private key is in no order, nor is any client's;
- conditions that ask a provider or draw upon a rate are asked where the home is. A plan with one goes to no worker
  (``WORKER_CONDITION``); those on the event and on the time do.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.plan_octets import read_plan, write_plan
from maia.domain.returns import expect_results, return_key
from maia.domain.workers import has_workers, workers_of
from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption import EpochId, KeyGroupId, Keyring, open_work, seal_work
from maia.errors import EncodingError, UnavailableError, UsageError
from maia.home import Home, WorkerKey, now
from maia.kernel import Clause, DeliverPlan, PublishPlan, Subscription
from maia.policy import Atom, ConditionSyntaxError, Predicate, RateLimit, compile_condition
from maia.principals import KeySigner, PublicKey, public_key

if TYPE_CHECKING:
    from maia.domain.domain import Domain

_LIMITS = SexpLimits(max_bytes=96 << 20, max_depth=4, max_atom=64 << 20)


@dataclass(frozen=True, slots=True)
class TaskKeys:
    """The keys of one publication's tasks, made from one secret; nothing else is sealed under them.

    Attributes:
        secret: What all of them are made from.
        signer: Signs what the tasks seal, and names their events: the same for a publication whenever it is tried.
    """

    secret: bytes = field(repr=False)
    signer: KeySigner = field(repr=False)

    @classmethod
    def of(cls, broker: KeySigner, publication: str, operation: int) -> TaskKeys:
        """Make those of a publication."""
        seed, name = broker.export_seed(), publication.encode("utf-8", "surrogatepass")
        secret = hmac.digest(seed, encode((b"maia/1 task", name, b"%d" % operation)), hashlib.sha256)
        return cls(secret, KeySigner(hmac.digest(seed, encode((b"maia/1 task names", name)), hashlib.sha256)))

    def epochs(self, group: KeyGroupId) -> tuple[EpochId, ...]:  # noqa: ARG002 - the port's signature
        """Know one epoch, whatever the group."""
        return (EpochId(0),)

    def key(self, group: KeyGroupId, epoch: EpochId) -> bytes | None:
        """Make the key of a group."""
        said = encode((b"maia/1 task block", group.type_id, group.label, b"%d" % epoch))
        return hmac.digest(self.secret, said, hashlib.sha256)

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("the keys of a task cannot be pickled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order, opened.

    Attributes:
        plan: What to do.
        broker: For whom.
        log: Where the log lies.
        trusts_disks: Whether the disks that Spark spills to are protected otherwise.
        client: What the client is called at home, and its fingerprint.
        keys: Of an order to read, the keys to open with.
        task: Of an order to publish, the keys to seal with.
        returns: Of an order to read, seals what the audit is to be told.
    """

    plan: DeliverPlan | PublishPlan
    broker: PublicKey
    log: str
    trusts_disks: bool
    client: tuple[str, str]
    keys: Keyring = field(repr=False)
    task: TaskKeys | None = field(repr=False)
    returns: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClockOnly:
    """What conditions may ask on a worker: the time. It travels in plans, and is what it builds."""

    predicates: frozenset[Predicate] = frozenset()

    def __call__(self) -> ClockOnly:
        """Be there."""
        return self

    def clock(self) -> datetime | None:
        """Read the clock of this machine."""
        return now()

    def ask(self, fact: Atom, at: datetime) -> bool:  # noqa: ARG002 - the port's signature
        """Know no fact."""
        raise UnavailableError(f"nothing on a worker answers `{fact.name}`", code="NO_PROVIDER")

    def reserve(self, limit: RateLimit, *, bucket: bytes, reservation: bytes, count: int, at: datetime) -> int:  # noqa: ARG002
        """Count nothing, so grant nothing."""
        return 0


def order_to_read(domain: Domain, plan: DeliverPlan, client: str, *, operation: int, at: datetime) -> bytes | None:
    """Seal a plan to read, with the keys for it, to the workers of now; nothing where the domain has none.

    Raises:
        UsageError: A condition of the plan cannot be asked on a worker: ``WORKER_CONDITION``.
    """
    if not sends_orders(domain, at=at):
        return None
    told = replace(plan, subscriptions=tuple(_portable_subscription(item) for item in plan.subscriptions))
    descents = [one for one in (plan.descent, *plan.children.values()) if one is not None]
    types = {plan.type_id, *(kind for one in descents for kind in (one.type_id, *one.holders.values()))}
    held, ring = domain.home.keyring(), Keyring()
    for group in held.groups():
        for epoch in held.epochs(group) if group.type_id in types else ():
            key = held.key(group, epoch)
            if key is None:
                ring.close(group, epoch)
            else:
                ring.add(group, epoch, key)
    return _seal(domain, told, client, ring.to_bytes(), b"", operation=operation, at=at)


def order_to_publish(domain: Domain, plan: PublishPlan, client: str, *, operation: int, at: datetime) -> bytes | None:
    """Seal a plan to publish, with the keys of its tasks, to the workers of now; nothing where the domain has none.

    Raises:
        UsageError: A condition of the plan cannot be asked on a worker: ``WORKER_CONDITION``.
    """
    if not sends_orders(domain, at=at):
        return None
    own = None if plan.own is None else tuple(_portable(clause) for clause in plan.own)
    told = replace(plan, clauses=tuple(_portable(clause) for clause in plan.clauses), own=own)
    task = TaskKeys.of(domain.home.broker, plan.publication, operation)
    secrets = task.secret + task.signer.export_seed()
    return _seal(domain, told, client, Keyring().to_bytes(), secrets, operation=operation, at=at)


def sends_orders(domain: Domain, *, at: datetime) -> bool:
    """Tell whether the domain has workers, so that its tasks get orders."""
    return has_workers(domain.home, domain.known(at=at).pool)


def open_order(data: bytes, worker: WorkerKey) -> Order:
    """Open an order as one of the workers that it is for.

    Raises:
        DeniedError: It is not for this worker: ``NOT_A_WORKER``.
        VerificationError: Another broker than the worker's own gave it.
        MaiaError: It is no order, or does not open.
    """
    return _read(open_work(data, worker.signer, worker.giver))


def open_own_order(data: bytes, home: Home) -> Order:
    """Open an order where it was given."""
    return _read(open_work(data, home.broker, home.key(home.config.broker)))


def _seal(
    domain: Domain,
    plan: DeliverPlan | PublishPlan,
    client: str,
    keys: bytes,
    task: bytes,
    *,
    operation: int,
    at: datetime,
) -> bytes:
    home, known = domain.home, domain.known(at=at)
    broker = home.broker
    expect_results(home)
    plain = encode((
        b"order", (b"version", b"1"), (b"plan", write_plan(plan)), (b"keys", keys), (b"task", task),
        (b"log", home.log_place.encode("utf-8", "surrogateescape")), (b"broker", broker.public_key.raw),
        (b"client", client.encode(), home.key(client).fingerprint.encode()),
        (b"spill", b"trusted" if home.trusts_disks else b"sealed"),
        # SECURITY: a task that publishes tells the audit nothing, so it cannot.
        (b"returns", b"" if task else return_key(broker, operation)),
    ))  # fmt: skip
    # The broker is a recipient too: where tasks run in its own process, it opens what it sealed.
    recipients = (*workers_of(home, known.pool, known.verifier, at=at), broker.public_key)
    return seal_work(plain, recipients, signer=broker)


def _read(plain: bytes) -> Order:
    match parse_canonical(plain, limits=_LIMITS):
        case (
            b"order",
            (b"version", b"1"),
            (b"plan", bytes(plan)),
            (b"keys", bytes(keys)),
            (b"task", bytes(task)),
            (b"log", bytes(log)),
            (b"broker", bytes(broker)),
            (b"client", bytes(client), bytes(fingerprint)),
            (b"spill", bytes(spill)),
            (b"returns", bytes(returns)),
        ):
            pass
        case _:
            raise EncodingError("not an order", code="WORK_SHAPE")
    # SECURITY: signed by the broker whose work is done here, which was checked before a word of it was read.
    made = read_plan(plan)
    return Order(
        plan=made, broker=public_key(broker), log=log.decode("utf-8", "surrogateescape"),
        trusts_disks=spill == b"trusted", client=(client.decode(), fingerprint.decode()),
        keys=Keyring.from_bytes(keys), task=TaskKeys(task[:32], KeySigner(task[32:])) if task else None,
        returns=returns,
    )  # fmt: skip


def _portable_subscription(item: Subscription) -> Subscription:
    return replace(item, clauses=tuple(_portable(clause) for clause in item.clauses))


def _portable(clause: Clause) -> Clause:
    """Let a clause ask what a worker can answer.

    Raises:
        UsageError: It asks a provider or a rate: ``WORKER_CONDITION``.
    """
    guard = clause.guard
    if guard is None:
        return clause
    try:
        for source in guard.conditions:
            compile_condition(source)
    except ConditionSyntaxError:
        alone = False
    else:
        alone = not guard.rates
    if not alone:
        # SECURITY: on a worker it would deny in silence, and rows would be missing.
        raise UsageError(
            "a right has a condition that asks a provider or a rate of this home, which no worker can: read or publish "
            "in a local session",
            code="WORKER_CONDITION",
        )
    return replace(clause, guard=replace(guard, make=ClockOnly()))
