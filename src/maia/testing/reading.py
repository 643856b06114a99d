"""Reading without Spark, with the rights of now; for tests and demonstrations."""

from __future__ import annotations

from maia.domain import Domain, begin_read, parts_of, scan, type_stretch
from maia.home import Home


def read_here(
    home: Home, type_name: str, *, as_: str, where: str = "", version: str | None = None
) -> list[dict[str, object]]:
    """Read all events of a type as a client, as `format("maia")` does, in the order of the log.

    Raises:
        MaiaError: The type is unknown, the client has no right, the filter is refused, or a lane waits.
    """
    with Domain(home) as domain:
        at, client = domain.follow(), domain.prove(as_)
        found = type_stretch(domain, domain.find_type(type_name, version), after={}, at=at)
        plan = domain.deliver_plan(
            type_name, client=client, where=where, version=version, commits=found.commits, at=at, followed=True
        )
        parts = parts_of(found.commits, plan)
        number = begin_read(home, plan, found.commits, client, attributes=None, parts=1, at=at)
        batches = scan(
            home, plan, parts, client=as_, columns=None, with_event_id=False, clock=domain.clock, operation=number
        )
        return [row for batch in batches for row in batch.to_pylist()]
