"""What rules would release of sample rows, before and after, side by side; nothing leaves."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from maia.domain.log_parts import begin_read, parts_of, scan
from maia.domain.possession import ProvenClient
from maia.domain.stretches import type_stretch
from maia.errors import UsageError
from maia.events import EventType, TypeName, to_arrow_schema, value_from_json, value_to_json
from maia.policy import release

if TYPE_CHECKING:
    from maia.domain.domain import Domain

MAX_SAMPLE = 10_000
"""Rows of a sample at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePreview:
    """What a tree makes of sample rows.

    Attributes:
        tree: What leaves.
        before: The rows, by name.
        after: What leaves of them: row by row, or the counts of all.
        kept_back: Of counts, how many groups are too small.
    """

    tree: release.ReleaseTree
    before: tuple[dict[str, object], ...]
    after: tuple[dict[str, object], ...]
    kept_back: int = 0

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        return {
            "to": str(self.tree.to), "form": "counts" if self.tree.counts else "rows",
            "before": list(self.before), "after": list(self.after), "groups_kept_back": self.kept_back,
        }  # fmt: skip

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Give a header and lines: for each attribute what it was and what it becomes, or the counts."""
        if self.tree.counts:
            names = [name for name, _ in self.tree.attributes]
            return names, [[_shown(row[name]) for name in names] for row in self.after]
        made: dict[str, list[str]] = {column.attribute: [] for column in self.tree.columns}
        for column in self.tree.columns:
            made[column.attribute].append(column.name)
        names = list(self.before[0]) if self.before else list(made)
        header, lines = ["row", "attribute", "before", "after"], []
        for number, (old, new) in enumerate(zip(self.before, self.after, strict=True), 1):
            for name in names:
                targets = made.get(name, [])
                shown = "; ".join(
                    _shown(new[item]) if item == name else f"{item} = {_shown(new[item])}" for item in targets
                )
                lines.append([str(number), name, _shown(old.get(name)), shown if targets else "-"])
        return header, lines


def sample_rows(domain: Domain, name: TypeName, client: ProvenClient, *, limit: int) -> list[dict[str, object]]:
    """Read the first events of a type as a client may see them, as JSON has them.

    Raises:
        MaiaError: The client has no right.
    """
    at = domain.follow()
    found = type_stretch(domain, name, after={}, at=at)
    plan = domain.deliver_plan(name, client=client, commits=found.commits, at=at, followed=True)
    number = begin_read(domain.home, plan, found.commits, client, attributes=None, parts=1, at=at)
    rows: list[dict[str, object]] = []
    batches = scan(
        domain.home, plan, parts_of(found.commits, plan), client=client.name, columns=None, with_event_id=False,
        clock=domain.clock, operation=number,
    )  # fmt: skip
    for batch in batches:
        rows += map(_plain, batch.slice(0, limit - len(rows)).to_pylist())
        if len(rows) >= limit:
            break
    return rows


def preview_release(
    tree: release.ReleaseTree, event_type: EventType, rows: Sequence[dict[str, object]]
) -> ReleasePreview:
    """Show what a tree makes of rows that are written as JSON; pseudonyms are made up.

    Raises:
        MalformedError: A row has an attribute that the type has not, or a value of another type.
    """
    if len(rows) > MAX_SAMPLE:
        raise UsageError(f"a sample has at most {MAX_SAMPLE} rows", code="RELEASE_SAMPLE")
    known = {item.name: item for item in event_type.attributes}
    for row in rows:
        for name in row.keys() - known.keys():
            raise UsageError(f"the type has no attribute `{name}`", code="RELEASE_SAMPLE")
    read = [{name: value_from_json(item, row.get(name)) for name, item in known.items()} for row in rows]
    schema = pa.schema([pa.field(item.name, item.type) for item in to_arrow_schema(event_type)])
    batch = pa.RecordBatch.from_pylist(read, schema=schema)
    secret = secrets.token_bytes(release.SECRET_LENGTH)
    after = [_plain(row) for made in release.release_batches(tree, [batch], secret) for row in made.to_pylist()]
    groups = release.number_of_groups(tree, release.count_batches(tree, [batch])) if tree.counts else len(after)
    return ReleasePreview(
        tree=tree, before=tuple(map(_plain, batch.to_pylist())), after=tuple(after), kept_back=groups - len(after)
    )


def _plain(row: dict[str, object]) -> dict[str, object]:
    return {name: value_to_json(value) for name, value in row.items()}  # type: ignore[arg-type] # as a batch holds them


def _shown(value: object) -> str:
    return "null" if value is None else str(value)
