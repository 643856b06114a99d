"""Where something leaves a labelled frame: what labels decide, what each row decides, and what errors may say.

Rules kept here:

- a static flow tag, and one that stands for rows that were mixed, is decided by labels alone;
- a carrier may be asked row by row, when the caller lets single cells be left out: all its values there must be allowed
  to flow;
- of an error of Spark's only its condition leaves, since its text may hold values; nor that where the rows themselves
  may not be told to the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from maia.errors import FlowError, MaiaError, UnavailableError
from maia.labels import Carrier, Label, RelationLabel, SymbolicLabel, family_of
from maia.spark.errors import SPARK_KINDS, unwrap

T = TypeVar("T")


def leaving_frame(
    frame: DataFrame,
    label: RelationLabel,
    columns: Sequence[str],
    exit_: str,
    sinks: Mapping[str, SymbolicLabel],
    *,
    omit: bool,
) -> DataFrame:
    """Give what leaves a frame by an exit.

    Args:
        frame: The frame, with the columns that carry labels.
        label: Its label.
        columns: What would leave.
        exit_: What the exit is called.
        sinks: To what each column would flow.
        omit: Whether single cells and rows may be left out, where carriers decide.

    Raises:
        FlowError: Some column, or that there are rows at all, may not flow there: ``FLOW``.
    """
    closed = [name for name in columns if not may_leave(label.cell(name), sinks[name], omit=omit)]
    if closed or not columns:
        hint = "" if omit else "; `omit=True` leaves out single cells where carriers decide"
        raise FlowError(
            f"`{'`, `'.join(closed)}` may not flow to `{exit_}`{hint}" if closed else "there is nothing to leave"
        )
    cells = [shown_cell(name, label.columns[name], sinks[name]) for name in columns]
    present = [test for name in columns for test in row_tests(label.rows, sinks[name])]
    return (frame.where(reduce(Column.__and__, present)) if present else frame).select(*cells)


def may_leave(label: SymbolicLabel, sink: SymbolicLabel, *, omit: bool) -> bool:
    """Tell whether a label may flow to a sink, at least in rows of some carriers' values when cells may be omitted."""
    rest = SymbolicLabel(secrecy=label.secrecy, integrity=label.integrity)
    target = Label(secrecy=sink.secrecy, integrity=sink.integrity or frozenset())
    return rest.flows_to(target) and all(
        item.flows_to(sink.secrecy) or (omit and item.column is not None and _sometimes(item, sink))
        for item in label.carriers
    )


def _sometimes(item: Carrier, sink: SymbolicLabel) -> bool:
    """Tell whether some value of a carrier may flow to a sink."""
    return bool(_values(item, sink)) or any(
        other.family == item.family and other.column is not None for other in sink.carriers
    )


def _values(item: Carrier, sink: SymbolicLabel) -> list[str]:
    found = (family_of(tag) for tag in sink.secrecy)
    return sorted(pair[1] for pair in found if pair is not None and pair[0] == item.family and pair[1] is not None)


def row_tests(label: SymbolicLabel, sink: SymbolicLabel) -> list[Column]:
    """Ask of each row whether the carriers of a label may flow to a sink; nothing where they always may."""
    tests = []
    for item in sorted(label.carriers, key=repr):
        if item.flows_to(sink.secrecy) or item.column is None:
            continue
        allowed = F.array(*map(F.lit, _values(item, sink))).cast("array<string>")
        for other in sink.carriers:
            if other.family == item.family and other.column is not None:
                allowed = F.array_append(allowed, column_of(other.column).cast("string"))
        # A row without a carrier is of another source, and has no tag of it.
        tests.append(F.coalesce(F.size(F.array_except(column_of(item.column), allowed)) == 0, F.lit(True)))
    return tests


def shown_cell(name: str, label: SymbolicLabel, sink: SymbolicLabel) -> Column:
    """Give a column, without the cells that may not flow to a sink."""
    tests = row_tests(label, sink)
    cell = F.when(reduce(Column.__and__, tests), column_of(name)) if tests else column_of(name)
    return cell.alias(name)


def run_exit(action: Callable[[], T], *, told: bool = True) -> T:
    """Run what leaves; of an error of Spark's only its condition leaves with it, since its text may hold values.

    Args:
        action: What runs.
        told: Whether what becomes of the rows may be told to the client; not even the condition leaves otherwise.
    """
    failed: MaiaError
    try:
        return action()
    except SPARK_KINDS as error:
        found = unwrap(str(error))
        condition = error.getCondition() if hasattr(error, "getCondition") else None
        why = f"Spark failed: {condition or 'without a condition'}" if told else "Spark failed"
        said = UnavailableError(why, code="SPARK_FAILED")
        failed = said if found.code == "SPARK_FAILED" else found
    except UnavailableError as error:
        if error.code != "SPARK_FAILED":
            raise
        failed = UnavailableError("Spark failed", code="SPARK_FAILED")
    raise failed


def column_of(name: str) -> Column:
    """Name a column, whatever characters it has."""
    return F.col(f"`{name.replace('`', '``')}`")
