"""From chains to clauses: what a principal may see or set, in the form that meets data.

A clause is one chain reduced: a set of attribute uids, a constraint on the row, and conditions. Clauses add up and are
never mixed: a cell is open when *some* clause holds its attribute **and** that clause's constraint is true for the row,
its conditions included.

What a clause costs is known before data meets it: each distinct value of a constrained column is put to each pattern of
its constraint. A clause of more than `MAX_PATTERNS` is refused when a plan is made (``CLAUSE_TOO_COSTLY``), whoever
narrowed it so; plain values are looked up and cost nothing. A batch of n rows thus costs a clause at most n times
`MAX_PATTERNS` comparisons, however it is written.

A clause knows its version. Bound to one, it opens the attributes of that version, whatever else is in the batch: the
rows of a type hold the values of every version (`versions_of`). What it asks of rows was judged by the same definitions
when its chain was reduced: what names attributes of other versions was said by somebody who holds those, or gave
nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from maia.authority import (
    Action,
    CellRight,
    Derived,
    KnownVersions,
    OnViolation,
    Request,
    ask_type,
    cell_rights,
    patterns_in,
)
from maia.authority import Tag as ValueTag
from maia.authority import permits as tag_permits
from maia.encoding import encode
from maia.errors import DeniedError, UncheckedError
from maia.events import EventType
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
        guard: Asks the conditions when data meets the clause; a session puts it there.
    """

    cells: CellRight
    conditions: tuple[str, ...]
    chain: tuple[CertificateId, ...]
    guard: Guard | None = None

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
        return hashlib.sha256(encode((self.cells.uids.to_sexp(), demands, mends, conditions))).digest()

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


def ask_version(action: Action, event_type: EventType) -> Request:
    """Ask for an action on the cells of one version, by its definition."""
    name = event_type.name
    return ask_type(action, name.owner, name.name, name.version.text, versions_of((event_type,)))


def clauses_from(rights: Iterable[Derived], versions: KnownVersions) -> tuple[Clause, ...]:
    """Turn the rights that a verifier derived into clauses, equal ones once, in an order of their own.

    The order of the evidence, and which of several chains to the same clause was found first, make no difference.

    Args:
        rights: As they were derived with the same versions.
        versions: By which a right that is bound to a version opens its attributes and no others.

    Raises:
        UncheckedError: There are more clauses than a plan holds.
        DeniedError: A clause costs more than its share: ``CLAUSE_TOO_COSTLY``.
    """
    found: dict[tuple[object, ...], Clause] = {}
    for right in rights:
        chain = right.proof.certificate_ids()
        for cells in cell_rights(right.tag):
            if sum(patterns_in(tag) for _, tag in cells.constraints) > MAX_PATTERNS:
                raise DeniedError(
                    f"a clause compares each value with more than {MAX_PATTERNS} patterns", code="CLAUSE_TOO_COSTLY"
                )
            bound = replace(cells, uids=versions.opened(cells.version, cells.uids))
            key = (bound, right.conditions)
            known = found.get(key)
            if known is None or (len(chain), chain) < (len(known.chain), known.chain):
                found[key] = Clause(bound, right.conditions, chain)
            if len(found) > MAX_CLAUSES:
                raise UncheckedError("more clauses than a plan holds", code="LIMIT_EXCEEDED")
    return tuple(sorted(found.values(), key=_order))


def _order(clause: Clause) -> tuple[object, ...]:
    demands = tuple((uid, encode(tag.to_sexp())) for uid, tag in clause.constraints)
    cells = clause.cells
    opened = encode((cells.version.to_sexp(), cells.uids.to_sexp()))
    return opened, demands, encode(cells.mends.to_sexp()), clause.conditions
