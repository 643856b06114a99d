"""From chains to clauses: what a principal may see or set, in the form that meets data.

A clause is one chain reduced: a set of attribute uids, a constraint on the row, and conditions. Clauses add up and are
never mixed: a cell is open when *some* clause holds its attribute **and** that clause's constraint is true for the row,
its conditions included.

What clauses cost is known before data meets them: each distinct value of a constrained column is put to each pattern of
their constraints, and each row to each constraint of their bounds; plain values are looked up and cost nothing. All
clauses of a principal together have at most `MAX_PATTERNS`, so that a batch of n rows costs at most n times as many
comparisons, however rights are written.

One bad chain costs itself: what is no right on cells, or finds no room, is left out, and the others count. Room is
given in turns (`maia.authority.fairly`), since whoever holds a right can write chains to others unasked. Fewer clauses
only ever close cells. Where nothing is left, the reason is said instead of an empty answer.

A clause knows its version. Bound to one, it opens the attributes of that version, whatever else is in the batch: the
rows of a type hold the values of every version (`versions_of`). What it asks of rows was judged by the same definitions
when its chain was reduced: what names attributes of other versions was said by somebody who holds those, or gave
nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from maia.authority import (
    Bounds,
    CellRight,
    Derived,
    KnownVersions,
    OnViolation,
    cell_rights,
    fairly,
    first_end,
    patterns_in,
)
from maia.authority import Tag as ValueTag
from maia.authority import permits as tag_permits
from maia.encoding import Sexp, encode
from maia.errors import DeniedError, TagError
from maia.events import EventType, TypeId
from maia.kernel.conditions import Guard
from maia.principals import CertificateId

MAX_CLAUSES = 1_000
MAX_PATTERNS = 128


@dataclass(frozen=True, slots=True)
class Clause:
    """One chain's worth of authority over the cells of a type.

    Attributes:
        cells: The attributes it opens and the constraint on the row, as the chain's tag says it.
        conditions: Conditions that must all hold before the clause counts.
        chain: The certificates it comes from, root first; empty for the owner itself.
        others: Further chains that say the very same, in order.
        guard: Asks the conditions when data meets the clause; a session puts it there.
        until: The first instant at which none of the chains that give it carries it any more, statements being as they
            were when it was derived; ``None`` when there is none.
        holder: The type that the right is on, when the events are those of a child of it (see `maia.kernel.descent`).
        before: The stamp from which on events are closed to it; ``None`` when all are open (see `label_screen`).
    """

    cells: CellRight
    conditions: tuple[str, ...]
    chain: tuple[CertificateId, ...]
    guard: Guard | None = None
    until: datetime | None = None
    holder: TypeId | None = None
    others: tuple[tuple[CertificateId, ...], ...] = ()
    before: int | None = None

    @property
    def chains(self) -> tuple[tuple[CertificateId, ...], ...]:
        """Every chain that gives it."""
        return (self.chain, *self.others)

    @property
    def counts(self) -> bool:
        """Whether the clause may meet data: one with conditions only under a guard."""
        return not self.conditions or self.guard is not None

    def opens(self, uid: str) -> bool:
        """Tell whether the clause holds an attribute, whatever the row."""
        return tag_permits(self.cells.uids, uid.encode())

    @property
    def identity(self) -> bytes:
        """Name what the clause says, the same wherever and whenever it is derived."""
        demands = tuple((uid.encode(), tag.to_sexp()) for uid, tag in self.constraints)
        conditions = tuple(condition.encode() for condition in self.conditions)
        mends = self.cells.mends.to_sexp()
        holder = () if self.holder is None else (bytes(self.holder),)
        before = () if self.before is None else ((b"before", b"%d" % self.before),)
        said: Sexp = (self.cells.uids.to_sexp(), demands, mends, conditions, *_bounds(self), *holder, *before)
        return hashlib.sha256(encode(said)).digest()

    @property
    def constraints(self) -> tuple[tuple[str, ValueTag], ...]:
        """The demands on the row, by uid."""
        return self.cells.constraints

    @property
    def on_violation(self) -> OnViolation:
        """What becomes of a row to publish that breaks a constraint."""
        return self.cells.on_violation or OnViolation.REJECT


def versions_of(versions: Iterable[EventType]) -> KnownVersions:
    """Tell the floor of authority what the known versions of a type have."""
    return KnownVersions.of((item.name.version.text, (one.uid for one in item.attributes)) for item in versions)


def clauses_from(rights: Iterable[Derived], versions: KnownVersions) -> tuple[Clause, ...]:
    """Turn the rights that a verifier derived into clauses, equal ones once, in an order of their own.

    The order of the evidence, and which of several chains to the same clause was found first, make no difference.

    Args:
        rights: As they were derived with the same versions.
        versions: By which a right that is bound to a version opens its attributes and no others.

    Raises:
        DeniedError: There are rights, and none that can be used: ``RIGHT_NOT_CELLS`` or ``CLAUSE_TOO_COSTLY``.
    """
    found: dict[tuple[object, ...], Clause] = {}
    bad: DeniedError | None = None
    for right in rights:
        chains = (right.proof.certificate_ids(), *right.others)
        try:
            parts = cell_rights(right.tag)
        except TagError:
            bad = DeniedError("every right is malformed: none is on the cells of the type", code="RIGHT_NOT_CELLS")
            continue
        for part in parts:
            cells = replace(part, uids=versions.opened(part.version, part.uids))
            key = (cells, right.conditions)
            known = found.get(key)
            until = first_end(right.period, right.until)
            if known is not None:
                until = None if until is None or known.until is None else max(until, known.until)
            first, *others = in_order(chains if known is None else (*known.chains, *chains))
            found[key] = Clause(cells, right.conditions, first, until=until, others=tuple(others))
    left = affordable(found.values())
    if found and not left:
        bad = DeniedError(
            f"every right compares each value with more than {MAX_PATTERNS} patterns", code="CLAUSE_TOO_COSTLY"
        )
    if bad is not None and not left:
        raise bad
    return left


def in_order(chains: Iterable[tuple[CertificateId, ...]]) -> list[tuple[CertificateId, ...]]:
    """Put chains into an order of their own, the shortest first, each once."""
    return sorted(set(chains), key=lambda chain: (len(chain), chain))


def affordable(clauses: Iterable[Clause], *, most: int | None = None) -> tuple[Clause, ...]:
    """Take clauses in turns, as long as there is room for them and their patterns; in an order of their own."""
    left: list[Clause] = []
    room = MAX_PATTERNS
    ordered = sorted(clauses, key=_order)
    for clause in fairly(ordered, lambda clause: (*clause.chain, (clause.cells, clause.conditions))):
        cost = sum(patterns_in(tag) for _, tag in clause.constraints)
        cost += sum(len(bound.filter.constraints) for bound in clause.cells.bounds)
        if cost <= room and len(left) < (MAX_CLAUSES if most is None else most):
            room -= cost
            left.append(clause)
    return tuple(sorted(left, key=_order))


def _order(clause: Clause) -> tuple[object, ...]:
    demands = tuple((uid, encode(tag.to_sexp())) for uid, tag in clause.constraints)
    cells = clause.cells
    opened = encode((cells.version.to_sexp(), cells.uids.to_sexp()))
    return opened, demands, encode(cells.mends.to_sexp()), clause.conditions, encode(_bounds(clause) or b"")


def _bounds(clause: Clause) -> tuple[Sexp, ...]:
    """Write the bounds of a clause, if it has any."""
    return (Bounds(clause.cells.bounds).to_sexp(),) if clause.cells.bounds else ()
