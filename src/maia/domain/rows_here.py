"""Publishing small batches without Spark: the rows of requests as JSON has them, several requests in one commit.

What a client publishes goes through the same plan, the same kernel and the same commit as with Spark. Rules kept here:

- requests that are committed together are of one client and one version; each is a batch of its own for the kernel, so
  that a right which rejects whole batches rejects the rows of one request and not those beside it;
- every row of every request is accounted for: published, or refused with its position, a code and the column at fault;
- when this returns, what is said to be published is in the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from maia.domain.domain import Domain
from maia.domain.malformed import ROW_MALFORMED, audit_malformed
from maia.domain.possession import ProvenClient
from maia.domain.publication import (
    Published,
    commit_publication,
    publication_operation,
    published_before,
    write_partition,
)
from maia.domain.topics import TypeOrTopic
from maia.errors import MalformedError
from maia.events import EventType, to_arrow_schema, value_from_json

Refusals = Mapping[tuple[str, str], Sequence[int]]
"""The positions of refused rows, by code and column."""
_MAX_COLUMN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPart:
    """What became of the rows of one request.

    Attributes:
        whole: What became of all that was committed with it.
        events: How many of its rows are in the log now.
        refused: Its other rows.
    """

    whole: Published
    events: int
    refused: Refusals = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        whole = self.whole
        return {
            "publication": whole.publication, "commit": whole.commit, "events": self.events,
            "refused": [
                {"code": code, "column": column or None, "rows": list(rows)}
                for (code, column), rows in sorted(self.refused.items())
            ],
            "repeated": whole.repeated,
            "together": {"events": whole.events, "forced": whole.forced, "nulled": whole.nulled},
        }  # fmt: skip


@dataclass(slots=True)
class _Part:
    """The rows of one request that can be read, and the others."""

    positions: list[int] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    refused: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def refuse(self, position: int, code: str, column: str) -> None:
        self.refused.setdefault((code, column), []).append(position)


def publish_parts(
    domain: Domain,
    client: ProvenClient,
    parts: Sequence[Sequence[object]],
    *,
    type: str,  # noqa: A002 - as everywhere
    version: str | None = None,
    publication: str | None = None,
) -> tuple[PublishedPart, ...]:
    """Publish the rows of requests of one client together, in one commit.

    Args:
        domain: Whose broker.
        client: Whose key was proven.
        parts: For each request its rows: objects of JSON, attributes by name.
        type: The type, ``owner/name@version`` with what is clear left out.
        version: Which version, when the type does not say.
        publication: Names it, so that publishing again counts once; for one request.

    Raises:
        MaiaError: The type is unknown, the client or the broker has no right, or nothing could be committed; nothing of
            any request is published then.
    """
    name = secrets.token_hex(16) if publication is None else publication
    full = TypeOrTopic(type=type, version=version).published(domain)
    plan = domain.publish_plan(full, client=client, publication=name)
    known = None if publication is None else domain.lanes.find(name)
    if known is not None:
        return (PublishedPart(whole=published_before(known), events=known.events),)
    event_type, begun = plan.event_type(), domain.clock()
    read = [_read_part(event_type, rows) for rows in parts]
    done = Published(publication=name, commit=None, events=0)
    if any(part.rows for part in read):
        schema = to_arrow_schema(event_type)
        batches = [pa.RecordBatch.from_pylist(part.rows, schema=schema) for part in read if part.rows]
        operation = publication_operation(domain.home, plan, client=client.name, at=begun)
        with operation.failing():
            written = write_partition(domain.home, plan, 0, iter(batches), at=domain.clock())
        done = commit_publication(
            domain.home, domain.lanes, plan, (written,), client=client.name, operation=operation.number,
            at=domain.clock(),
        )  # fmt: skip
        owners = [(part, position) for part in read for position in part.positions]
        for letter in written.letters:
            for row in letter.positions().tolist():
                part, position = owners[row]
                part.refuse(position, letter.code, letter.column)
    malformed = sum(len(rows) - len(part.rows) for rows, part in zip(parts, read, strict=True))
    if malformed:
        done = audit_malformed(domain.home, done, {"": malformed}, client, event_type, at=begun)
    return tuple(
        PublishedPart(
            whole=done, events=len(rows) - sum(len(found) for found in part.refused.values()), refused=part.refused
        )
        for rows, part in zip(parts, read, strict=True)
    )


def _read_part(event_type: EventType, rows: Sequence[object]) -> _Part:
    """Read the rows of one request; what is not of the type stays with its row."""
    attributes = {item.name: item for item in event_type.attributes}
    part = _Part()
    for position, row in enumerate(rows):
        if not isinstance(row, dict):
            part.refuse(position, ROW_MALFORMED, "")
            continue
        unknown = next((str(name) for name in row if name not in attributes), None)
        if unknown is not None:
            part.refuse(position, "NO_ATTRIBUTE", unknown[:_MAX_COLUMN])
            continue
        values: dict[str, object] = {}
        for name, value in row.items():
            try:
                values[name] = value_from_json(attributes[name], value)
            except MalformedError as error:
                part.refuse(position, error.code, name)
                break
        else:
            part.positions.append(position)
            part.rows.append(values)
    return part
