"""Recorded facts and active roles of a domain, as a transaction sees them; each is known by the hash of its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime

from sqlalchemy import Connection, Table, delete, func, select, update

from maia.database.access_control.rows import batches, insert_rows
from maia.database.access_control.tables import acs_facts, acs_roles


class RoleRows:
    """The facts and the roles."""

    def __init__(self, connection: Connection) -> None:
        """Work inside a transaction of the caller."""
        self._connection = connection

    def facts(self) -> Iterator[tuple[bytes, datetime | None]]:
        """Walk the recorded facts with their ends."""
        for row in self._connection.execute(select(acs_facts.c.fact, acs_facts.c.until)):
            yield row.fact, row.until

    def put_facts(self, facts: Iterable[tuple[str, bytes, datetime | None]]) -> None:
        """Record facts with their kinds and ends, or give recorded ones another end; the last one counts."""
        rows = {_digest(fact): (kind, fact, until) for kind, fact, until in facts}
        known = self._known(acs_facts, rows)
        for digest in sorted(known):
            chosen = acs_facts.c.digest == digest
            self._connection.execute(update(acs_facts).where(chosen).values(until=rows[digest][2]))
        fresh = (
            {"digest": digest, "kind": kind, "fact": fact, "until": until}
            for digest, (kind, fact, until) in rows.items()
            if digest not in known
        )
        insert_rows(self._connection, acs_facts, fresh)

    def has_fact(self, fact: bytes) -> bool:
        """Tell whether a fact is recorded."""
        return bool(self._known(acs_facts, [_digest(fact)]))

    def drop_fact(self, fact: bytes) -> None:
        """Forget a fact."""
        self._connection.execute(delete(acs_facts).where(acs_facts.c.digest == _digest(fact)))

    def roles(self) -> Iterator[tuple[bytes, bool]]:
        """Walk the states of the active roles in the order of their activation, and whether each is anonymous."""
        rows = select(acs_roles.c.state, acs_roles.c.anonymous).order_by(acs_roles.c.number)
        for row in self._connection.execute(rows):
            yield row.state, row.anonymous

    def put_roles(self, roles: Iterable[tuple[bytes, bytes, bool | None]]) -> None:
        """Keep the states of active roles, new or changed; an active one stays anonymous as it was unless told."""
        rows = {_digest(role): (state, anonymous) for role, state, anonymous in roles}
        known = self._known(acs_roles, rows)
        fresh: list[dict[str, object]] = []
        for digest, (state, anonymous) in rows.items():
            if digest in known:
                values: dict[str, object] = {"state": state} | ({} if anonymous is None else {"anonymous": anonymous})
                self._connection.execute(update(acs_roles).where(acs_roles.c.digest == digest).values(**values))
            else:
                fresh.append({"digest": digest, "state": state, "anonymous": bool(anonymous)})
        if fresh:
            last = int(self._connection.scalar(select(func.coalesce(func.max(acs_roles.c.number), 0))) or 0)
            numbered = (row | {"number": last + place} for place, row in enumerate(fresh, start=1))
            insert_rows(self._connection, acs_roles, numbered)

    def drop_roles(self, roles: Iterable[bytes]) -> None:
        """Forget active roles."""
        for some in batches(map(_digest, roles)):
            self._connection.execute(delete(acs_roles).where(acs_roles.c.digest.in_(some)))

    def _known(self, table: Table, digests: Iterable[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        for some in batches(digests):
            found.update(self._connection.scalars(select(table.c.digest).where(table.c.digest.in_(some))))
        return found


def _digest(raw: bytes) -> bytes:
    return hashlib.sha256(raw).digest()
