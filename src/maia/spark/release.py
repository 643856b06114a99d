"""The tree of release rules on Spark: the functions that run it on Arrow, in tasks.

Rules kept here:

- a row goes through the very function that a small batch goes through;
- pseudonyms are made up: the domain's secret is opened where a release is done, and in no task;
- counts are put together group by group, each group by the function that decides whether it is large enough;
- on their way columns are called by number, since Spark does not hand names with dots or backticks to functions.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own pages call it
from pyspark.sql.pandas.types import from_arrow_schema

from maia.policy import release


def release_frame(frame: DataFrame, tree: release.ReleaseTree) -> DataFrame:
    """Give what would leave of a frame: rows as they come, or counts in the order of their groups, nulls last.

    SECURITY: whoever has a frame could ask for the pseudonyms of whatever values, so they are of this frame alone.
    """
    reads, secret = tree.reads, secrets.token_bytes(release.SECRET_LENGTH)
    read = frame.select([_ticked(name) for name in reads]).toDF(*_numbers(reads))
    out = from_arrow_schema(release.released_schema(tree))
    if not tree.counts:

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return release.release_batches(tree, (batch.rename_columns(reads) for batch in batches), secret)

        return read.mapInArrow(rows, out)

    partial = release.count_schema(tree)
    numbers = _numbers(partial.names)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (release.count_rows(tree, batch.rename_columns(reads)).rename_columns(numbers) for batch in batches)

    def finish(group: pa.Table) -> pa.Table:
        return release.finish_counts(tree, group.rename_columns(partial.names).cast(partial))

    counted = read.mapInArrow(
        count, from_arrow_schema(pa.schema([(n, partial.field(i).type) for i, n in enumerate(numbers)]))
    )
    finished = counted.groupBy(*numbers[: len(tree.columns)]).applyInArrow(finish, out)
    return finished.orderBy(*[F.col(_ticked(column.name)).asc_nulls_last() for column in tree.columns])


def _numbers(names: Sequence[str]) -> list[str]:
    return [f"c{number}" for number in range(len(names))]


def _ticked(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"
