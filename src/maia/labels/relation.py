"""Labels of relations: what columns, rows and rows that are gone tell, and how each operator carries that on.

A relation has a label for each column, one for its rows (that this row is there) and one *pending*: the cells that
decided which rows are gone, over all rows that ever were, dropped ones included. Whoever looks at one row learns its
cells and its presence. Whoever looks at many at once (a count, a window, a match that is missing) learns of the rows
that are gone as well, so that joins pending; without it a count tells secrets.

Rules kept here, by all callers alike:

- labels only ever grow; only `declassified` and `endorsed` make exceptions, by the privilege of a named component;
- what is computed is as secret as all that it reads, and nobody vouches for it; what is only handed on keeps its label;
- rows that are put together have all values of their carriers, except where they agree on the carrier's column;
- labels are found from the operators alone and never from data: a program is judged before it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from maia.errors import FlowError, UsageError
from maia.labels.label import Label
from maia.labels.symbolic import SymbolicLabel

NOTHING_READ = SymbolicLabel()
_UNVOUCHED: frozenset[str] = frozenset()
Output: TypeAlias = str | Collection[str]
"""How a column is made: the name of the one that is handed on, or all those that are read."""


class How(Enum):
    """Ways of joining."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @classmethod
    def parse(cls, word: str) -> How:
        """Read Spark's words.

        Raises:
            UsageError: There is no such way: ``JOIN_HOW``.

        >>> How.parse("left_outer"), How.parse("cross")
        (<How.LEFT: 'left'>, <How.INNER: 'inner'>)
        """
        known = word.lower().replace("_", "").removesuffix("outer") if word.lower() != "outer" else "full"
        known = {"cross": "inner", "leftsemi": "semi", "leftanti": "anti"}.get(known, known)
        try:
            return cls(known)
        except ValueError as error:
            raise UsageError(f"there is no way of joining called `{word}`", code="JOIN_HOW") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A small named unit that may make exceptions; a policy says which.

    Attributes:
        name: What it is called.
        declassify: The tags that it may take out of the secrecy.
        endorse: The tags that it may put into the integrity.
    """

    name: str
    declassify: frozenset[str] = frozenset()
    endorse: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationLabel:
    """What a relation tells.

    Attributes:
        columns: The label of each column, in order.
        rows: That a row is there.
        pending: Which rows are gone; has no carriers, since those rows are gone as well.
    """

    columns: Mapping[str, SymbolicLabel]
    rows: SymbolicLabel = field(default_factory=SymbolicLabel)
    pending: SymbolicLabel = field(default_factory=SymbolicLabel)

    def reads(self, columns: Iterable[str]) -> SymbolicLabel:
        """Join the labels of columns.

        Raises:
            UsageError: There is no such column: ``NO_COLUMN``.
        """
        found = NOTHING_READ
        for name in columns:
            if name not in self.columns:
                raise UsageError(f"there is no column `{name}`", code="NO_COLUMN")
            found = found.join(self.columns[name])
        return found

    def cell(self, column: str) -> SymbolicLabel:
        """Label what a cell tells whoever sees it: its own label, and that its row is there."""
        return self.reads([column]).join(self.rows)

    def together(self, agreeing: Collection[str] = (), gathered: Mapping[str, str] | None = None) -> SymbolicLabel:
        """Label what the number of rows tells, of those that agree on some columns; see `SymbolicLabel.within`."""
        # SECURITY: without `pending` a count tells of the rows that a secret condition dropped.
        return self.rows.within(agreeing, gathered).join(self.pending)

    def flows_to(self, target: Label) -> bool:
        """Tell whether all of it may flow to a target, its rows included."""
        return self.rows.flows_to(target) and all(self.cell(name).flows_to(target) for name in self.columns)


def project(relation: RelationLabel, outputs: Mapping[str, Output]) -> RelationLabel:
    """Select and compute columns.

    Args:
        relation: What is read.
        outputs: How each column of the result is made: handed on from one column, or computed from some.

    >>> from maia.labels import Carrier
    >>> notes = SymbolicLabel(integrity=frozenset({"lab"}), carriers=frozenset({Carrier(family="f", column="p")}))
    >>> found = project(RelationLabel(columns={"p": NOTHING_READ, "n": notes}), {"m": "n", "length": ["n"]})
    >>> found.columns["m"].shown(), found.columns["length"].shown()
    (Label(secrecy=frozenset({'f(*)'}), integrity=frozenset({'lab'})),
     Label(secrecy=frozenset({'f(*)'}), integrity=frozenset()))
    """
    names: dict[str, str] = {}
    for name, made in outputs.items():
        if isinstance(made, str):
            names.setdefault(made, name)
    columns = {}
    for name, made in outputs.items():
        found = relation.reads([made] if isinstance(made, str) else made).renamed(names)
        columns[name] = found if isinstance(made, str) else replace(found, integrity=_UNVOUCHED)
    return RelationLabel(columns=columns, rows=relation.rows.renamed(names), pending=relation.pending)


def where(relation: RelationLabel, reads: Iterable[str]) -> RelationLabel:
    """Keep the rows that meet a condition on columns."""
    condition = relation.reads(reads)
    return replace(
        relation,
        rows=relation.rows.join(condition),
        pending=relation.pending.join(relation.rows.within(), condition.within()),
    )


def join_relations(left: RelationLabel, right: RelationLabel, on: Sequence[str], how: How = How.INNER) -> RelationLabel:
    """Put rows together that agree on columns; those of ``on`` are there once, with the labels of both sides.

    Another column that both sides have becomes one with the labels of both, and is no carrier any more.

    >>> secret = SymbolicLabel(secrecy=frozenset({"t"}), integrity=frozenset())
    >>> both = join_relations(RelationLabel(columns={"k": NOTHING_READ}), RelationLabel(columns={"k": secret}), ["k"])
    >>> sorted(both.columns["k"].secrecy), sorted(both.rows.secrecy), sorted(both.pending.secrecy)
    (['t'], ['t'], ['t'])
    """
    ours, theirs = left.reads(on), right.reads(on)
    doubled = [name for name in left.columns if name in right.columns and name not in on]
    if doubled and how not in (How.SEMI, How.ANTI):
        left, right = _undoubled(left, doubled), _undoubled(right, doubled)
        ours, theirs = left.reads(on), right.reads(on)
    pending = left.pending.join(right.pending, left.rows.within(), right.rows.within(), ours.within(), theirs.within())
    if how in (How.SEMI, How.ANTI):
        # Whether there is a match somewhere tells of all rows of the other side.
        rows = left.rows.join(ours, theirs.within(), right.together())
        return RelationLabel(columns=left.columns, rows=rows, pending=pending)
    rows = left.rows.join(right.rows, ours, theirs)
    columns = {name: label.join(right.columns[name]) if name in right.columns else label
               for name, label in left.columns.items()}  # fmt: skip
    columns |= {name: label for name, label in right.columns.items() if name not in columns}
    if how is not How.INNER:
        # A match that is missing shows as null, and tells of all rows of the other side, those that are gone included.
        missing = pending
        rows = rows.within().join(missing)
        empty = set() if how is How.LEFT else set(left.columns)
        empty |= set() if how is How.RIGHT else set(right.columns)
        columns = {name: label.within().join(missing) if name in empty or name in on else label
                   for name, label in columns.items()}  # fmt: skip
    return RelationLabel(columns=columns, rows=rows, pending=pending)


def union(left: RelationLabel, right: RelationLabel) -> RelationLabel:
    """Take the rows of both; columns go by name where the names are the same, else one by one, named as on the left.

    Raises:
        UsageError: They do not have as many columns: ``UNION_COLUMNS``.
    """
    if len(left.columns) != len(right.columns):
        raise UsageError("both sides of a union have as many columns", code="UNION_COLUMNS")
    if set(left.columns) != set(right.columns):
        names = dict(zip(right.columns, left.columns, strict=True))
        right = project(right, {ours: theirs for theirs, ours in names.items()})
    return RelationLabel(
        columns={name: label.join(right.columns[name]) for name, label in left.columns.items()},
        rows=left.rows.join(right.rows),
        pending=left.pending.join(right.pending, left.rows.within(), right.rows.within()),
    )


def group(
    relation: RelationLabel,
    keys: Sequence[str],
    aggregates: Mapping[str, Collection[str]],
    *,
    gathered: Mapping[str, str] | None = None,
) -> RelationLabel:
    """Put rows together that agree on keys; aggregates read columns, and a count reads none.

    Args:
        relation: What is read.
        keys: Which rows belong to a group is decided by the keys of all rows, those that are gone included.
        aggregates: What each one reads.
        gathered: Carriers' columns, and the columns of the result that hold the set of their values in each group: a
            group is then as secret as its own rows, and otherwise as all values of a carrier.

    Raises:
        UsageError: There is no such column, or an aggregate is named like a key: ``COLUMN_TWICE``.

    >>> from maia.labels import Carrier
    >>> secret = SymbolicLabel(carriers=frozenset({Carrier(family="f", column="p")}))
    >>> table = RelationLabel(columns={"k": NOTHING_READ, "p": NOTHING_READ, "s": secret})
    >>> group(table, ["k"], {"n": ()}).cell("n").shown().secrecy
    frozenset()
    >>> group(where(table, ["s"]), ["k"], {"n": ()}).cell("n").shown().secrecy
    frozenset({'f(*)'})
    """
    made = dict(gathered or {})
    names = [*keys, *aggregates, *made.values()]
    if len(set(names)) != len(set(keys)) + len(aggregates) + len(made):
        twice = next(name for name in names if name in aggregates or name in made.values())
        raise UsageError(f"there would be two columns `{twice}`", code="COLUMN_TWICE")
    rows = relation.together(keys, made).join(relation.reads(keys).within(keys))
    columns = {name: relation.reads([name]).within(keys) for name in keys}
    for name, reads in aggregates.items():
        found = rows.join(relation.reads(reads).within(keys, made))
        columns[name] = replace(found, integrity=_UNVOUCHED) if reads else found
    columns |= {name: rows.join(relation.reads([column]).within(keys, made)) for column, name in made.items()}
    return RelationLabel(columns=columns, rows=rows, pending=rows.within())


def window(
    relation: RelationLabel, name: str, *, reads: Collection[str], partition: Sequence[str], order: Sequence[str] = ()
) -> RelationLabel:
    """Add a column that is computed from other rows of the same partition."""
    read = relation.reads([*reads, *partition, *order]).within(partition)
    label = replace(relation.together(partition).join(read), integrity=_UNVOUCHED)
    return _with_column(relation, name, label)


def explode(relation: RelationLabel, name: str, reads: Collection[str]) -> RelationLabel:
    """Make a row of each element of a list; how many there are tells of the list."""
    read = replace(relation.reads(reads), integrity=_UNVOUCHED)
    found = _with_column(relation, name, read)
    kept = {column: column for column in found.columns if column != name}
    now = found.columns[name]
    return replace(
        found,
        rows=found.rows.join(relation.reads(reads).renamed(kept)),
        pending=found.pending.join(relation.rows.within(), now.within()),
    )


def limit(relation: RelationLabel, order: Collection[str] = ()) -> RelationLabel:
    """Keep the first rows, in the order of columns: which those are tells of all others."""
    read = relation.reads(order).within()
    told = relation.together().join(read)
    return replace(relation, rows=relation.rows.join(told), pending=relation.pending.join(told))


def declassified(
    relation: RelationLabel, tags: Collection[str], component: Component, *, keeping: Collection[str] = ()
) -> RelationLabel:
    """Take flow tags out of labels, by the privilege of a component.

    Args:
        relation: What the component made.
        tags: What it takes out.
        component: The component.
        keeping: Columns that it only hands on beside what it made; they keep their own labels.

    Raises:
        FlowError: The component may not: ``DECLASSIFY_NOT_HELD``.
    """
    if not component.declassify.issuperset(tags):
        raise FlowError(
            f"component `{component.name}` may not declassify all of these flow tags", code="DECLASSIFY_NOT_HELD"
        )
    return RelationLabel(
        columns={name: label if name in keeping else label.without(tags) for name, label in relation.columns.items()},
        rows=relation.rows.without(tags),
        pending=relation.pending.without(tags),
    )


def endorsed(
    relation: RelationLabel, tags: Collection[str], component: Component, *, keeping: Collection[str] = ()
) -> RelationLabel:
    """Put flow tags into the integrity of labels, by the privilege of a component; see `declassified`.

    Raises:
        FlowError: The component may not: ``ENDORSE_NOT_HELD``.
    """
    if not component.endorse.issuperset(tags):
        raise FlowError(f"component `{component.name}` may not endorse all of these flow tags", code="ENDORSE_NOT_HELD")
    return RelationLabel(
        columns={name: label if name in keeping else label.endorsed(tags) for name, label in relation.columns.items()},
        rows=relation.rows.endorsed(tags),
        pending=relation.pending.endorsed(tags),
    )


def _with_column(relation: RelationLabel, name: str, label: SymbolicLabel) -> RelationLabel:
    """Add a column, or replace one; what was carried by the old one stands for all its values."""
    kept = {column: column for column in relation.columns if column != name}
    columns = {column: label.renamed(kept) if column == name else found.renamed(kept)
               for column, found in {**relation.columns, name: label}.items()}  # fmt: skip
    return RelationLabel(columns=columns, rows=relation.rows.renamed(kept), pending=relation.pending)


def _undoubled(relation: RelationLabel, doubled: Collection[str]) -> RelationLabel:
    """Let columns carry nothing that have the same name on both sides of a join."""
    kept = {name: name for name in relation.columns if name not in doubled}
    columns = {name: label.renamed(kept) for name, label in relation.columns.items()}
    return RelationLabel(columns=columns, rows=relation.rows.renamed(kept), pending=relation.pending)
