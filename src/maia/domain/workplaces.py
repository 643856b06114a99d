"""Where a task runs: beside the home, or on a worker that has an order and nothing else.

Both offer the same, so that what reads and what writes is one piece of code. What differs:

- beside the home, the statements that it has accepted by now end a plan at once; on a worker a plan ends with its term;
- beside the home, the audit is told directly; from a worker what it is to be told is sealed and put into the log's
  store, where the home takes it from (`returns`). It is there before the task ends, or the task fails;
- beside the home, events are stamped and signed by the broker as they are sealed; a worker seals for the driver, which
  stamps, signs and seals them again when it commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from maia.domain.operations import Operation, audit_of, result_row
from maia.domain.orders import Order, open_order, open_own_order
from maia.domain.returns import put_result
from maia.domain.sealing_keys import SealingKeys
from maia.domain.trace import Trace, trace_of
from maia.encryption import KeyProvider
from maia.errors import EncodingError, NotFoundError
from maia.home import WORKER_KEY, Home, find_worker_key, now
from maia.kernel import DeliverPlan, PlanTerm, PublishPlan, milliseconds
from maia.log import AuditRow, Store, open_store
from maia.principals import PublicKey, Signer


class Workplace(Protocol):
    """What a task finds where it runs."""

    @property
    def by_task(self) -> bool:
        """Whether what is sealed here is sealed under keys of the task."""
        ...

    @property
    def trusts_disks(self) -> bool:
        """Whether the disks that Spark spills to are protected otherwise than by Spark."""
        ...

    @property
    def store(self) -> Store:
        """The store of the log."""
        ...

    @property
    def broker(self) -> PublicKey:
        """For whom the task works."""
        ...

    @property
    def signer(self) -> Signer:
        """Signs what the task seals."""
        ...

    @property
    def next_stamp(self) -> Callable[[], int]:
        """Gives stamps to seal with."""
        ...

    def keys(self) -> KeyProvider:
        """Give the keys to open or seal with."""
        ...

    def principal(self, client: str) -> str:
        """Give the fingerprint of the client for whom the task works."""
        ...

    def check(self, term: PlanTerm, *, at: datetime) -> None:
        """Refuse a plan that is over by all that is known here.

        Raises:
            PlanOverError: It is: ``PLAN_OVER``.
        """
        ...

    def trace(self, operation: str, name: str = "") -> Trace:
        """Give the trace to tell of steps."""
        ...

    def end(
        self, operation: int, like: AuditRow, code: str, *, events: int, rows: Sequence[AuditRow], part: int
    ) -> None:
        """Tell the audit what became of the task."""
        ...


@dataclass(frozen=True, slots=True)
class BesideHome:
    """Beside the home."""

    home: Home

    @property
    def by_task(self) -> bool:
        """Seal under the domain's keys."""
        return False

    @property
    def trusts_disks(self) -> bool:
        """Whether the disks that Spark spills to are protected otherwise than by Spark."""
        return self.home.trusts_disks

    @property
    def store(self) -> Store:
        """The store of the log."""
        return self.home.log_store

    @property
    def broker(self) -> PublicKey:
        """The home's broker."""
        return self.home.broker.public_key

    @property
    def signer(self) -> Signer:
        """The broker's key."""
        return self.home.broker

    @property
    def next_stamp(self) -> Callable[[], int]:
        """Gives the broker's stamps."""
        return self.home.next_stamp

    def keys(self) -> KeyProvider:
        """Give the home's keys."""
        return SealingKeys(self.home)

    def principal(self, client: str) -> str:
        """Give the fingerprint of a client."""
        return self.home.key(client).fingerprint

    def check(self, term: PlanTerm, *, at: datetime) -> None:
        """Look at the statements that the home has by now."""
        term.check_statements(self.home.statements.load(), at=at)

    def trace(self, operation: str, name: str = "") -> Trace:
        """Give the home's trace."""
        return trace_of(self.home, operation, name)

    def end(
        self, operation: int, like: AuditRow, code: str, *, events: int, rows: Sequence[AuditRow], part: int
    ) -> None:
        """Tell the home's audit."""
        Operation(audit_of(self.home), operation, like).end(code, events=events, rows=rows, part=part)


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """On a worker, with an order."""

    order: Order

    @property
    def by_task(self) -> bool:
        """Seal under the keys of the task."""
        return True

    @property
    def trusts_disks(self) -> bool:
        """Whether the disks that Spark spills to are protected otherwise than by Spark."""
        return self.order.trusts_disks

    @property
    def store(self) -> Store:
        """The store of the log, opened with what this machine's environment says of it."""
        return open_store(self.order.log)

    @property
    def broker(self) -> PublicKey:
        """Who gave the order."""
        return self.order.broker

    @property
    def signer(self) -> Signer:
        """The key of the task."""
        if self.order.task is None:
            raise EncodingError("an order to read is none to publish", code="WORK_SHAPE")
        return self.order.task.signer

    @property
    def next_stamp(self) -> Callable[[], int]:
        """Gives the time, which is within the plan's term or not; the driver gives the stamps that stay."""
        return lambda: milliseconds(now())

    def keys(self) -> KeyProvider:
        """Give the keys of the order."""
        return self.order.keys if self.order.task is None else self.order.task

    def principal(self, client: str) -> str:  # noqa: ARG002 - an order is for one client
        """Give the client's fingerprint."""
        return self.order.client[1]

    def check(self, term: PlanTerm, *, at: datetime) -> None:
        """Look at the clock: nothing else is known here."""
        term.check(at)

    def trace(self, operation: str, name: str = "") -> Trace:
        """Give a silent trace."""
        return Trace(path=None, operation=operation, name=name)

    def end(
        self, operation: int, like: AuditRow, code: str, *, events: int, rows: Sequence[AuditRow], part: int
    ) -> None:
        """Send the home what its audit is to be told."""
        told = (*rows, result_row(like, code, events=events))
        put_result(self.store, self.order.broker.key_id, self.order.returns, operation, part, told)


def take_up(
    home: str,
    order: bytes | None,
    plan: DeliverPlan | PublishPlan | None,
    *,
    local: bool,
    environment: Mapping[str, str] | None = None,
) -> tuple[Workplace, DeliverPlan | PublishPlan]:
    """Find where a task runs, and what it is to do.

    Args:
        home: The path of the home, where it can be reached.
        order: The order, where the domain has workers.
        plan: The plan, where it has none.
        local: Whether the task runs on the machine of the driver, in a local session.
        environment: Where the worker's key is named; that of this process by default.

    Raises:
        NotFoundError: This machine has no worker's key: ``NO_WORKER_KEY``.
        DeniedError: The order is not for this worker: ``NOT_A_WORKER``.
    """
    if order is None:
        assert plan is not None  # noqa: S101 - whoever plans gives one of both
        return BesideHome(Home.open(home)), plan
    worker = find_worker_key(os.environ if environment is None else environment)
    if worker is not None:
        opened = open_order(order, worker)
        return WorkerPlace(opened), opened.plan
    if local:
        own = Home.open(home)
        return BesideHome(own), open_own_order(order, own).plan
    # SECURITY: a home that can be reached from here is not asked: its domain said that its workers have keys.
    raise NotFoundError(
        f"this machine has no worker's key: set {WORKER_KEY} there, or spark.executorEnv.{WORKER_KEY}, to the file "
        "that `maia worker new` wrote",
        code="NO_WORKER_KEY",
    )
