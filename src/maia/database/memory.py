"""What a service remembers of signed requests: that each was used, and how late it already was.

Rules kept here:

- a nonce of a key is accepted once while its request is fresh, also after a restart and by a standby;
- a service's time is the clock's, and never earlier than the latest instant at which it accepted a request: a clock
  that steps back revives nothing, neither a request nor a list;
- there is room for a stated number of nonces, in all and for each key. Without room a request is refused: forgetting
  one to make room would let it be replayed.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from maia.database.engine import reading, transaction
from maia.database.requests import clock_floors, used_nonces
from maia.errors import UncheckedError, VerificationError
from maia.principals import KeyId, check_aware

MAX_NONCES = 100_000
MAX_NONCES_OF_KEY = 10_000


class RequestMemory:
    """The memory of one service, in its database."""

    def __init__(
        self, engine: Engine, name: str, *, capacity: int = MAX_NONCES, capacity_of_key: int = MAX_NONCES_OF_KEY
    ) -> None:
        """Remember for a service.

        Args:
            engine: The database, migrated.
            name: The service's name.
            capacity: How many nonces are kept at once.
            capacity_of_key: How many of them one key may use up.
        """
        self._engine = engine
        self._name = name
        self._capacity = capacity
        self._capacity_of_key = capacity_of_key

    def now(self, clock: datetime) -> datetime:
        """Return the service's time: the clock's, or its floor where the clock stepped back."""
        check_aware(clock)
        with reading(self._engine) as connection:
            return max(clock, self._floor(connection) or clock)

    def use(self, key: KeyId, nonce: bytes, *, until: datetime, at: datetime) -> None:
        """Use a nonce up, raise the floor to ``at``, and forget the nonces that are too old anyway.

        Args:
            key: Whose request it is; only after its signature was checked.
            nonce: The request's.
            until: When the request is no longer fresh.
            at: The service's time.

        Raises:
            VerificationError: It was used before (`REPLAY`).
            UncheckedError: There is no room to remember it (`LIMIT_EXCEEDED`).
            UnavailableError: The database does not answer; the request must be refused.
        """
        with transaction(self._engine) as connection:
            floor = self._floor(connection)
            if floor is None:
                connection.execute(insert(clock_floors).values(name=self._name, floor=at))
            elif floor < at:
                connection.execute(update(clock_floors).where(clock_floors.c.name == self._name).values(floor=at))
            connection.execute(delete(used_nonces).where(used_nonces.c.until < at))
            same = select(used_nonces.c.until).where(used_nonces.c.key_id == key, used_nonces.c.nonce == nonce)
            if connection.scalar(same) is not None:
                raise VerificationError("the request was used before", code="REPLAY")
            count = select(func.count()).select_from(used_nonces)
            of_key = connection.scalar(count.where(used_nonces.c.key_id == key)) or 0
            if of_key >= self._capacity_of_key or (connection.scalar(count) or 0) >= self._capacity:
                raise UncheckedError("too many requests within one window", code="LIMIT_EXCEEDED")
            connection.execute(insert(used_nonces).values(key_id=key, nonce=nonce, until=until))

    def _floor(self, connection: Connection) -> datetime | None:
        return connection.scalar(select(clock_floors.c.floor).where(clock_floors.c.name == self._name))
