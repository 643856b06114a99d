"""Rows that never became events: they stand in the audit beside those that were refused later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from maia.domain.operations import audit_of
from maia.domain.possession import ProvenClient
from maia.domain.publication import Published
from maia.events import EventType
from maia.home import Home
from maia.log import AuditRow

ROW_MALFORMED = "ROW_MALFORMED"


def audit_malformed(
    home: Home, done: Published, count: Mapping[str, int], client: ProvenClient, event_type: EventType, *, at: datetime
) -> Published:
    """Put rows that could not be read into the audit, and say so in what became of the publication.

    Args:
        home: The publisher's domain.
        done: What became of the other rows.
        count: How many could not be read, by the column at fault; ``""`` where none is.
        client: The publisher.
        event_type: What they should have been.
        at: When reading them began.
    """
    row = AuditRow(
        at=at, kind="refuse", principal=client.key.fingerprint, type_id=event_type.type_id.hex(),
        source=done.publication, subject=client.name, code=ROW_MALFORMED, events=sum(count.values()),
        attributes=tuple(sorted(column for column in count if column)),
    )  # fmt: skip
    audit_of(home).note([row])
    return replace(done, refused={**done.refused, **{(ROW_MALFORMED, column): rows for column, rows in count.items()}})
