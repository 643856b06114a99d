"""Labelled frames: frames of Spark's that carry what they tell, and are checked wherever something leaves them.

    reports = maia.open("hospital").client("monitor").labelled("uk.nhs.path_report")
    counts = reports.where("`SNOMED-CT-codes` like '302512001%'").groupBy("hospital-ID").agg(n=F.count("*"))
    counts.show()       # FlowError: a count of what a secret condition kept is secret

Rules kept here:

- every operator goes through the transfer functions of `maia.labels`; there is no way from a labelled frame to a plain
  one but `unsafe_frame`, which warns and is told to the audit;
- a frame holds only what may flow to its client's frames; each exit asks whether it may flow on: to the client's screen
  (`collect`, `show`, `toPandas`), to an event type, attribute by attribute (`publish`), to a folder (`write`);
- an exit is refused by labels alone, before a row is read, so that a refusal tells nothing. With ``omit`` cells are
  left out one by one whose carriers may not flow; a row whose presence may not flow is left out;
- exceptions are made by the components of the policy and by nothing else, each with a reason, told to the audit;
- what Spark says of an error can hold values, so it never leaves.
"""

# ruff: noqa: SLF001 - frames look into frames of their own kind
from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from maia.domain import (
    Published,
    TypeOrTopic,
    labels_of_type,
    read_label_policy,
    reader_of_client,
)
from maia.errors import RowsRefusedError, UsageError
from maia.labels import (
    NOTHING_READ,
    PUBLIC,
    How,
    Label,
    LabelPolicy,
    RelationLabel,
    SymbolicLabel,
    declassified,
    endorsed,
    explode,
    join_relations,
    limit,
    project,
    union,
    where,
    window,
)
from maia.spark.carriers import CARRIER, fresh_carrier, label_text, new_column
from maia.spark.exits import column_of, leaving_frame, run_exit
from maia.spark.holder import Holder
from maia.spark.labelled_groups import LabelledGroups
from maia.spark.reads import columns_read, handed_on, require_no

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)
_FORMATS = ("parquet", "json", "csv", "orc")
Made: TypeAlias = str | Column


class LabelledFrame:
    """A frame of Spark's that carries labels; `Client.labelled` makes one."""

    __slots__ = ("_frame", "_holder", "_label")

    def __init__(self, frame: DataFrame, label: RelationLabel, holder: Holder) -> None:
        """Carry a frame with its label; columns that carry labels are in both, and are not shown."""
        self._frame = frame
        self._label = label
        self._holder = holder

    @property
    def columns(self) -> list[str]:
        """The columns, without those that carry labels."""
        return [name for name in self._label.columns if not name.startswith(CARRIER)]

    @property
    def labels(self) -> dict[str, Label]:
        """What a cell of each column tells: its own label joined with that of its row."""
        return {name: self._label.cell(name).shown() for name in self.columns}

    def __repr__(self) -> str:
        """Name columns and labels."""
        said = (f"{name}: {label_text(label)}" for name, label in self.labels.items())
        return f"<labelled frame {', '.join(said)}>"

    # -- operators

    def select(self, *columns: Made) -> LabelledFrame:
        """Select columns by name, and expressions; a column that is handed on, under any name, keeps its label."""
        made = dict(self._made(column) for column in columns)
        if len(made) != len(columns):
            raise UsageError("each column is selected once", code="COLUMN_TWICE")
        return self._projected(made)

    def drop(self, *names: str) -> LabelledFrame:
        """Leave columns out."""
        return self.select(*(name for name in self.columns if name not in names))

    def withColumn(self, name: str, column: Column) -> LabelledFrame:  # noqa: N802 - as Spark's
        """Add or replace a column."""
        made = {item: self._made(item)[1] for item in self.columns}
        return self._projected({**made, new_column(name): self._made(column)[1]})

    def withColumnRenamed(self, name: str, new: str) -> LabelledFrame:  # noqa: N802 - as Spark's
        """Rename a column."""
        return self.select(*(column_of(item).alias(new_column(new)) if item == name else item for item in self.columns))

    def where(self, condition: Made) -> LabelledFrame:
        """Keep rows that meet a condition, given as an expression or as SQL."""
        kept = self._frame.where(condition)
        return self._with(kept, where(self._label, self._reads(kept, "Filter")))

    def join(self, other: LabelledFrame, on: str | Sequence[str], how: str = "inner") -> LabelledFrame:
        """Join with another labelled frame of the same client on columns that both have.

        Raises:
            UsageError: Both have another column of the same name: ``COLUMN_TWICE``.
        """
        keys = [on] if isinstance(on, str) else list(on)
        way, right = How.parse(how), self._beside(other)._apart()
        both = set(self.columns) & set(right.columns) - set(keys)
        if both and way not in (How.SEMI, How.ANTI):
            raise UsageError(f"both frames have a column `{min(both)}`: rename one", code="COLUMN_TWICE")
        self._label.reads(keys)
        label = join_relations(self._label, right._label, keys, way)
        words = {How.SEMI: "left_semi", How.ANTI: "left_anti"}
        joined = self._frame.join(right._frame, keys, words.get(way, way.value))
        return self._with(joined.select(*(column_of(name) for name in label.columns)), label)

    def union(self, other: LabelledFrame) -> LabelledFrame:
        """Take the rows of both, columns by name.

        Raises:
            UsageError: They do not have the same columns: ``UNION_COLUMNS``.
        """
        right = self._beside(other)
        if set(self.columns) != set(right.columns):
            raise UsageError("both sides of a union have the same columns", code="UNION_COLUMNS")
        ours, theirs = self._carrying(right), right._carrying(self)
        order = list(ours._label.columns)
        return self._with(
            ours._frame.union(theirs._frame.select(*map(column_of, order))), union(ours._label, theirs._label)
        )

    def groupBy(self, *keys: str) -> LabelledGroups:  # noqa: N802 - as Spark's
        """Put rows together that agree on columns."""
        return LabelledGroups(self, keys)

    def window(
        self, name: str, function: Column, *, partition: Sequence[str] = (), order: Sequence[str] = ()
    ) -> LabelledFrame:
        """Add a column that a function makes from the rows of a partition, in an order."""
        spec = Window.partitionBy(*map(column_of, partition)).orderBy(*map(column_of, order))
        column = function.over(spec)
        reads = self._reads(self._frame.select(column), "Project", "Window")
        label = window(self._label, new_column(name), reads=reads, partition=partition, order=order)
        # SECURITY: Spark leaves rows in the order of the window, and later ties are broken by it.
        label = where(label, [*partition, *order])
        return self._with(self._adding(name, column, label), label)

    def explode(self, name: str, column: Made) -> LabelledFrame:
        """Make a row of each element of a list."""
        made = F.explode(column_of(column) if isinstance(column, str) else column)
        reads = self._reads(self._frame.select(made), "Project", "Generate")
        label = explode(self._label, new_column(name), reads)
        return self._with(self._adding(name, made, label), label)

    def limit(self, rows: int, *, order: Sequence[str] = ()) -> LabelledFrame:
        """Keep the first rows, in the order of columns; which of equal rows come first may depend on all there is."""
        self._label.reads(order)
        label = limit(self._label, list(self._label.columns))
        return self._with(
            self._frame.orderBy(*map(column_of, order)).limit(rows) if order else self._frame.limit(rows), label
        )

    def through(self, component: str, *, reason: str, by: Sequence[str] = ()) -> LabelledFrame:
        """Let a component of the policy do its work: it counts rows ``by`` columns, or hands on what it gets.

        Only here are flow tags taken out of the secrecy or put into the integrity: those for which the policy gives the
        component a privilege. What it counts by keeps its own labels. The audit tells who did so, and why.

        Raises:
            FlowError: The policy gives this client no such component: ``NO_COMPONENT``.
            UsageError: There is no reason: ``REASON_MISSING``.
        """
        if not reason.strip():
            raise UsageError("say why: `reason` goes into the audit", code="REASON_MISSING")
        holder = self._holder
        found = holder.leave(component, lambda: holder.policy.declared(component, holder.client.name))
        does = found.component
        counts = found.does == "count"
        made = self.groupBy(*by).agg(count=F.count(F.lit(1))) if counts else self
        keys = by if counts else ()  # SECURITY: a count frees the number and that there is a group, never the keys
        label = declassified(made._label, does.declassify, does, keeping=keys)
        label = endorsed(label, does.endorse, does, keeping=keys)
        holder.note("notice", "DECLASSIFIED", f"{component}: {reason}")
        return self._with(made._frame, label)

    # -- exits

    def collect(self, *, omit: bool = False) -> list[Row]:
        """Give the rows to the client.

        Raises:
            FlowError: They may not flow to its screen.
        """
        frame = self._to_screen("collect", omit=omit)
        return run_exit(frame.collect)

    def show(self, n: int = 20, *, omit: bool = False) -> None:
        """Print the first rows.

        Raises:
            FlowError: They may not flow to the client's screen.
        """
        frame = self._to_screen("show", omit=omit)
        run_exit(lambda: frame.show(n))

    def toPandas(self, *, omit: bool = False) -> pd.DataFrame:  # noqa: N802 - as Spark's
        """Give the rows as a pandas frame.

        Raises:
            FlowError: They may not flow to the client's screen.
        """
        frame = self._to_screen("toPandas", omit=omit)
        return run_exit(frame.toPandas)

    def publish(
        self,
        type: str,  # noqa: A002 - as everywhere
        *,
        publication: str | None = None,
        omit: bool = False,
    ) -> Published | None:
        """Publish the rows; each column must be allowed to flow to the label of its attribute.

        With ``omit``, cells are left out that may not, and a carrier of the type lets its own rows flow: what is
        ``clinical(7)`` may go to an attribute that is ``clinical(patient)`` where ``patient`` is 7.

        Returns:
            What became of the rows; nothing where that may not flow to the client's screen, since numbers and refusals
            tell of the rows. The audit has it.

        Raises:
            FlowError: Something may not flow there.
            MaiaError: As `Client.publish`.
        """
        domain, policy = self._holder.domain, self._policy()
        target = TypeOrTopic(type=type).event_type(domain)
        found = labels_of_type(domain.home, policy, domain.known(at=domain.clock()), target, sink=True)
        labels = {} if found is None else found.columns
        here = {name: name for name in self.columns}  # a carrier that is not published carries nothing
        sinks = {name: labels.get(name, SymbolicLabel.of(PUBLIC)).renamed(here) for name in self.columns}
        frame = self._leaving(f"publish {target.name.name}", sinks, omit=omit)
        told = self._told(policy)
        try:
            done = run_exit(lambda: self._holder.client.publish(frame, type, publication=publication), told=told)
        except RowsRefusedError:
            if told:
                raise
            return None
        if not isinstance(done, Published):
            raise UsageError("a labelled frame publishes a batch", code="NO_STREAM")
        return done if told else None

    def write(self, path: str | Path, *, format: str = "parquet", omit: bool = False) -> None:  # noqa: A002 - as Spark's
        """Write the rows to a new folder; the policy says what may flow to folders, and nothing secret to others.

        Raises:
            FlowError: Something may not flow there.
            UsageError: The format is none of files: ``FILE_FORMAT``.
        """
        if format not in _FORMATS:
            raise UsageError(f"files are {', '.join(_FORMATS)}, not `{format}`", code="FILE_FORMAT")
        folder = Path(path).resolve()  # SECURITY: `..` and links lead to where the rows really go
        policy = self._policy()
        known = {Path(name).resolve(): label for name, label in policy.sinks.items()}
        target = next((known[place] for place in (folder, *folder.parents) if place in known), PUBLIC)
        sinks = dict.fromkeys(self.columns, SymbolicLabel.of(target))
        frame = self._leaving(f"write {folder}", sinks, omit=omit)
        run_exit(lambda: frame.write.mode("errorifexists").format(format).save(str(folder)), told=self._told(policy))

    def unsafe_frame(self, reason: str) -> DataFrame:
        """Give the frame without labels, past every check; it warns, and the audit tells who did so and why.

        Raises:
            UsageError: There is no reason: ``REASON_MISSING``.
        """
        if not reason.strip():
            raise UsageError("say why: `reason` goes into the audit", code="REASON_MISSING")
        self._holder.note("alarm", "UNSAFE_FRAME", reason)
        _log.warning("`%s` takes a frame past all labels: UNSAFE_FRAME", self._holder.client.name)
        return self._frame.select(*map(column_of, self.columns))

    # -- inside

    def _with(self, frame: DataFrame, label: RelationLabel) -> LabelledFrame:
        return LabelledFrame(frame, label, self._holder)

    def _adding(self, name: str, column: Column, label: RelationLabel) -> DataFrame:
        """Add or replace one column of exactly this name; `withColumn` would take another for it in another case."""
        return self._frame.select(*(column.alias(item) if item == name else column_of(item) for item in label.columns))

    @property
    def _hidden(self) -> list[str]:
        return [name for name in self._label.columns if name.startswith(CARRIER)]

    def _reads(self, made: DataFrame, *steps: str) -> frozenset[str]:
        """Say what an operator reads; columns that carry labels are nobody's to read."""
        found = columns_read(self._frame, made, *steps)
        require_no(found, self._hidden)
        return found

    def _made(self, column: Made) -> tuple[str, tuple[Column, str | frozenset[str]]]:
        """Say what an expression is called, and what it reads or hands on."""
        if isinstance(column, str):
            self._label.reads([column])
            require_no([column], self._hidden)
            return column, (column_of(column), column)
        alone = self._frame.select(column)
        if len(alone.columns) != 1:
            raise UsageError("an expression makes one column", code="COLUMN_TWICE")
        reads = self._reads(alone, "Project")
        kept = handed_on(self._frame, alone)
        return new_column(alone.columns[0]), (column, reads if kept is None else kept)

    def _projected(self, made: Mapping[str, tuple[Column, str | frozenset[str]]]) -> LabelledFrame:
        carried = {name: (column_of(name), name) for name in self._hidden}
        outputs = {**made, **carried}
        frame = self._frame.select(*(column.alias(name) for name, (column, _) in outputs.items()))
        return self._with(frame, project(self._label, {name: how for name, (_, how) in outputs.items()}))

    def _beside(self, other: LabelledFrame) -> LabelledFrame:
        """Refuse what has no labels, and frames of somebody else."""
        frame: object = other
        if not isinstance(frame, LabelledFrame) or frame._holder.client.key != self._holder.client.key:
            raise UsageError("labelled frames go together with labelled frames of the same client", code="NOT_LABELLED")
        return frame

    def _apart(self) -> LabelledFrame:
        """Give columns that carry labels names that no other frame has."""
        names = {name: fresh_carrier() for name in self._hidden}
        kept: dict[str, str] = {name: name for name in self.columns} | names
        frame = self._frame.select(*(column_of(name).alias(new) for name, new in kept.items()))
        return self._with(frame, project(self._label, {new: name for name, new in kept.items()}))

    def _carrying(self, other: LabelledFrame) -> LabelledFrame:
        """Add the columns that carry labels in another frame; rows of this one have nothing in them."""
        missing = [name for name in other._hidden if name not in self._label.columns]
        nothing = F.lit(None).cast("array<string>")
        frame = self._frame.select(*map(column_of, self._label.columns), *(nothing.alias(name) for name in missing))
        columns = {**self._label.columns, **dict.fromkeys(missing, NOTHING_READ)}
        label = RelationLabel(columns=columns, rows=self._label.rows, pending=self._label.pending)
        return self._with(frame, label)

    def _to_screen(self, exit_: str, *, omit: bool) -> DataFrame:
        domain, client = self._holder.domain, self._holder.client
        policy = self._policy()
        sink = SymbolicLabel.of(reader_of_client(domain.home, policy, client.name, at=domain.clock()).label)
        return self._leaving(exit_, dict.fromkeys(self.columns, sink), omit=omit)

    def _policy(self) -> LabelPolicy:
        domain = self._holder.domain
        return read_label_policy(domain.home, at=domain.clock())

    def _told(self, policy: LabelPolicy) -> bool:
        """Say whether the client may hear what becomes of the rows: it tells of cells, and of rows that are gone."""
        domain, client = self._holder.domain, self._holder.client
        reader = reader_of_client(domain.home, policy, client.name, at=domain.clock()).label
        screen = Label(secrecy=reader.secrecy)
        return self._label.reads(self.columns).join(self._label.together()).flows_to(screen)

    def _leaving(self, exit_: str, sinks: Mapping[str, SymbolicLabel], *, omit: bool) -> DataFrame:
        """Judge an exit, and give what leaves by it.

        Raises:
            FlowError: Some column, or that there are rows at all, may not flow there: ``FLOW``.
        """
        label, frame = self._label, self._frame
        return self._holder.leave(exit_, lambda: leaving_frame(frame, label, self.columns, exit_, sinks, omit=omit))
