"""What all records of the access control service share: rows as records, and batches that every database takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Row, Table, insert

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_BATCH = 500
_T = TypeVar("_T")


def record_of(kind: type[_T], row: Row[Any]) -> _T:
    """Read a row into a record that has the columns of its table."""
    return kind(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name


def row_of(record: DataclassInstance) -> dict[str, Any]:
    """Write a record as a row of the table whose columns it has."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def insert_rows(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, if there are any."""
    found = list(rows)
    if found:
        connection.execute(insert(table), found)


def batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    """Cut items into pieces that every database takes as parameters."""
    found = list(items)
    for start in range(0, len(found), _BATCH):
        yield found[start : start + _BATCH]
