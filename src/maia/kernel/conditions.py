"""Conditions at the broker: asked when a right is claimed, and again whenever data meets it.

Rules:
    1. A clause with conditions counts only under a `Guard`, which knows who uses it, for what, and where to ask. A
       clause with conditions and without a guard counts for nothing.
    2. Conditions on the moment are asked at each request and, for publications, again for each batch at the time it is
       published. Conditions on the event are asked for each row: by whole columns where they are plain comparisons,
       else once for each different combination of the values they look at.
    3. What a condition of a publisher sees are the values that would leave: closed attributes absent, forced values
       forced. What a condition of a subscriber sees are the true values, as its constraint does.
    4. A rate is drawn upon last, for rows that everything else admits, so that refused rows cost nothing. It is drawn
       under the name of the publication's part: the same part tried again draws nothing more.
    5. What cannot be compiled here, asked here or counted here denies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Protocol

import numpy as np
import pyarrow as pa

from maia.authority import Action, CertificatePool
from maia.encoding import encode
from maia.errors import MaiaError, UnavailableError
from maia.kernel.condition_columns import mask_by_columns
from maia.kernel.rows import Mask, Positions, column_of
from maia.policy import (
    DEFAULT_CONDITION_LIMITS,
    Ask,
    Atom,
    Condition,
    ConditionSyntaxError,
    EventValue,
    Occasion,
    Predicate,
    RateLimit,
    compile_condition,
)
from maia.principals import Authorisation, CertificateId

CONDITION_FALSE = "CONDITION_FALSE"
RATE_LIMITED = "RATE_LIMITED"


class Surroundings(Protocol):
    """What conditions may ask for at this broker."""

    @property
    def predicates(self) -> frozenset[Predicate]:
        """The facts that are declared here."""
        ...

    def clock(self) -> datetime | None:
        """Read the clock; ``None`` where there is none."""
        ...

    def ask(self, fact: Atom, at: datetime) -> bool:
        """Tell whether a fact holds, or raise a `MaiaError` when that cannot be told."""
        ...

    def reserve(self, limit: RateLimit, *, bucket: bytes, reservation: bytes, count: int, at: datetime) -> int:
        """Draw publications from a rate; return how many are granted. A named reservation counts once.

        Raises:
            MaiaError: It cannot be counted.
        """
        ...


MakeSurroundings = Callable[[], Surroundings]
"""Builds the surroundings where it is called; it travels to the workers, so it carries no connection and no key."""


@dataclass(frozen=True, slots=True)
class NoSurroundings:
    """A place without clock, facts and ledger: conditions on a given instant are evaluated, everything else denies."""

    predicates: frozenset[Predicate] = frozenset()

    def clock(self) -> datetime | None:
        """Know no time."""
        return None

    def ask(self, fact: Atom, at: datetime) -> bool:  # noqa: ARG002 - the port's signature
        """Know no fact."""
        raise UnavailableError(f"nothing here answers `{fact.name}`", code="NO_PROVIDER")

    def reserve(self, limit: RateLimit, *, bucket: bytes, reservation: bytes, count: int, at: datetime) -> int:  # noqa: ARG002
        """Count nothing, so grant nothing."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The conditions of one clause for one principal and action, as text, ready to travel.

    Attributes:
        action: What the clause is used for.
        principal: Who uses it: the key's identity in hex.
        event_type: The readable name of the type; empty for a network.
        conditions: What must hold, rates left out.
        rates: Each rate with the account it is drawn from.
        make: Builds what conditions may ask.
        at: The instant of the batch, where one was set when the clause was derived.
    """

    action: Action
    principal: str
    event_type: str
    conditions: tuple[str, ...]
    rates: tuple[tuple[RateLimit, bytes], ...]
    make: MakeSurroundings
    at: datetime | None = None

    def holds(self, *, at: datetime) -> bool:
        """Tell whether every condition that depends on the moment alone holds at an instant."""
        asked = _Asked(self.make())
        occasion = self._occasion(at)
        return all(
            bool(condition.attributes) or condition.holds(occasion, ask=asked)
            for condition in self._compiled(asked.predicates)
        )

    def mask(self, batch: pa.RecordBatch, *, at: datetime | None = None) -> Mask:
        """Tell for each row of a transit batch whether every condition holds.

        Args:
            batch: Columns named by uid.
            at: The instant; else the one of the guard, else the one of the clock here. Without any, no row.
        """
        asked = _Asked(self.make())
        moment = self._moment(at, asked.place)
        held = np.full(batch.num_rows, moment is not None, dtype=np.bool_)
        if moment is None:
            return held
        occasion = self._occasion(moment)
        for condition in self._compiled(asked.predicates):
            if condition.attributes:
                held &= _of_rows(condition, batch, occasion, asked)
            elif not condition.holds(occasion, ask=asked):
                held[:] = False
        return held

    def grant(self, count: int, *, reservation: bytes, at: datetime | None = None) -> int:
        """Draw rows from every rate of the clause; return how many of them, from the first on, may leave."""
        place = self.make()
        moment = self._moment(at, place)
        for limit, bucket in self.rates:
            try:
                granted = 0 if moment is None else place.reserve(
                    limit, bucket=bucket, reservation=reservation, count=count, at=moment
                )  # fmt: skip
            except MaiaError:
                granted = 0
            count = max(0, min(count, granted))
        return count

    def _moment(self, at: datetime | None, place: Surroundings) -> datetime | None:
        return at or self.at or place.clock()

    def _occasion(self, at: datetime) -> Occasion:
        return Occasion(action=self.action.value, at=at, principal=self.principal, event_type=self.event_type)

    def _compiled(self, predicates: frozenset[Predicate]) -> list[Condition]:
        try:
            return [compile_condition(source, facts=predicates) for source in self.conditions]
        except ConditionSyntaxError:
            return [compile_condition("false")]  # another place declares what this one does not: not true here


def make_guard(
    conditions: tuple[str, ...],
    chain: tuple[CertificateId, ...],
    *,
    action: Action,
    principal: bytes,
    event_type: str,
    evidence: CertificatePool,
    make: MakeSurroundings,
    at: datetime,
) -> Guard | None:
    """Put the conditions of a chain under a guard, after asking those that depend on the moment alone.

    For a publication all of them stay, to be asked again when there is something to publish; for anything else those
    that look at events do.

    Returns:
        The guard; ``None`` when a condition does not hold now, or is none.
    """
    predicates = make().predicates
    plain: list[Condition] = []
    rates: list[tuple[RateLimit, bytes]] = []
    for source in conditions:
        try:
            condition = compile_condition(source, facts=predicates)
        except ConditionSyntaxError:
            return None
        if condition.rate is None:
            plain.append(condition)
        elif action is Action.PUBLISH:
            accounts = _accounts(source, condition.rate, chain, principal, evidence)
            if not accounts:
                return None
            rates += accounts
    whole = Guard(
        action=action,
        principal=principal.hex(),
        event_type=event_type,
        conditions=tuple(condition.source for condition in plain),
        rates=tuple(rates),
        make=make,
    )
    if not whole.holds(at=at):
        return None
    if action is Action.PUBLISH:
        return whole
    left = tuple(condition.source for condition in plain if condition.attributes)
    return Guard(
        action=action, principal=whole.principal, event_type=event_type, conditions=left, rates=(), make=make, at=at
    )


def _accounts(
    source: str, limit: RateLimit, chain: tuple[CertificateId, ...], principal: bytes, evidence: CertificatePool
) -> list[tuple[RateLimit, bytes]]:
    """Name the accounts of a rate: one for each certificate of the chain that carries it.

    SECURITY: the account hangs on the certificate, not on the chain. Who may pass a right on could make any number of
    chains over the same certificate, and with each of them a fresh account.
    """
    found = []
    for identity in chain:
        body = evidence.get(identity).body
        if isinstance(body, Authorisation) and source in body.conditions:
            who = b"" if limit.shared else principal
            name = encode((b"maia/1 rate", identity, source.encode(), who))
            found.append((limit, hashlib.sha256(name).digest()))
    return found


class _Asked:
    """The facts of one batch: each is asked for once, and a question that failed keeps failing."""

    def __init__(self, place: Surroundings) -> None:
        self.place = place
        self.predicates = place.predicates
        self._answers: dict[Atom, bool | MaiaError] = {}

    def __call__(self, fact: Atom, at: datetime) -> bool:
        known = self._answers.get(fact)
        if known is None:
            try:
                known = self.place.ask(fact, at)
            except MaiaError as error:
                known = error
            self._answers[fact] = known
        if isinstance(known, MaiaError):
            raise known
        return known


def _of_rows(condition: Condition, batch: pa.RecordBatch, occasion: Occasion, ask: Ask) -> Mask:
    """Evaluate a condition for the rows of a batch, by whole columns where that is possible."""
    if condition.tree is not None:
        limit = DEFAULT_CONDITION_LIMITS.value_octets
        mask = mask_by_columns(condition.tree, batch, occasion, value_octets=limit)
        if mask is not None:
            return mask
    return _by_values(condition, batch, occasion, ask)


def _by_values(condition: Condition, batch: pa.RecordBatch, occasion: Occasion, ask: Ask) -> Mask:
    """Evaluate a condition once for each different combination of the values that it looks at."""
    size = batch.num_rows
    codes: Positions = np.zeros(size, dtype=np.int64)
    values: list[tuple[str, Positions, list[object]]] = []
    unseen = np.zeros(size, dtype=np.bool_)
    for uid in condition.attributes:
        column = column_of(batch, uid)
        if column is None:
            continue
        if pa.types.is_nested(column.type):
            # Conditions cannot look into what is sealed whole: one that names it denies the rows that have it.
            unseen |= np.asarray(column.is_valid())
            continue
        encoded = column.dictionary_encode()
        known = encoded.dictionary.to_pylist()
        positions = np.asarray(encoded.indices.fill_null(len(known)), dtype=np.int64)
        values.append((uid, positions, [*known, None]))
        _, codes = np.unique(codes * (len(known) + 1) + positions, return_inverse=True)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    fits = np.zeros(len(first), dtype=np.bool_)
    # Within the budget in the order of the rows, so that what comes late in a batch never denies what came early.
    for number in np.argsort(first, kind="stable")[: DEFAULT_CONDITION_LIMITS.evaluations].tolist():
        event = _event(values, int(first[number]))
        fits[number] = event is not None and condition.holds(occasion, event=event, ask=ask)
    mask: Mask = fits[codes] & ~unseen
    return mask


def _event(values: list[tuple[str, Positions, list[object]]], row: int) -> dict[str, EventValue] | None:
    """Write the values of a row as conditions see them; ``None`` when one is larger than they look at."""
    event: dict[str, EventValue] = {}
    for uid, positions, known in values:
        value = known[int(positions[row])]
        if value is None:
            continue
        if isinstance(value, str | bytes) and len(value) > DEFAULT_CONDITION_LIMITS.value_octets:
            return None
        event[uid] = _written(value)
    return event


def _written(value: object) -> EventValue:
    """Write what the expression language has no type for as text: nothing is rounded on the way."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, bool | int | float | str | bytes):
        return value
    raise UnavailableError("a value that conditions cannot see", code="CONDITION_VALUE")
