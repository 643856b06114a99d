"""Who else is there: how many connections a gateway has, and which of them follow a subscription."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from maia.domain import ProvenClient
from maia.errors import UnavailableError
from maia.services.gateway.limits import GatewayLimits
from maia.services.gateway.refusals import BUSY

if TYPE_CHECKING:
    from maia.services.gateway.connection import FollowedSubscription

_ALL, _UNPROVEN = "all", "unproven"


class ConnectionRoom:
    """Counts connections: all, those of each address and key, and those that have proven nothing."""

    def __init__(self, limits: GatewayLimits) -> None:
        """Allow as many as the limits say."""
        self._limits = limits
        self._taken: Counter[str] = Counter()

    @contextmanager
    def connection(self, peer: str) -> Iterator[None]:
        """Take a place for a connection."""
        with self._take(_ALL, self._limits.connections), self._take(f"peer {peer}", self._limits.of_peer):
            yield

    @contextmanager
    def unproven(self) -> Iterator[None]:
        """Take a place for one that has proven nothing yet."""
        with self._take(_UNPROVEN, self._limits.unproven):
            yield

    @contextmanager
    def of_key(self, client: ProvenClient) -> Iterator[None]:
        """Take one of a client's places."""
        with self._take(f"key {client.key.fingerprint}", self._limits.of_key):
            yield

    @contextmanager
    def _take(self, kind: str, most: int) -> Iterator[None]:
        if self._taken[kind] >= most:
            raise UnavailableError("too many connections; come back", code=BUSY)
        self._taken[kind] += 1
        try:
            yield
        finally:
            self._taken[kind] -= 1
            if not self._taken[kind]:
                del self._taken[kind]


class Followers:
    """Finds who follows the subscriptions that got something."""

    def __init__(self) -> None:
        """Know nobody."""
        self._known: dict[str, set[FollowedSubscription]] = {}

    def add(self, hashed: str, followed: FollowedSubscription) -> None:
        """Wake somebody from now on."""
        self._known.setdefault(hashed, set()).add(followed)

    def discard(self, hashed: str, followed: FollowedSubscription) -> None:
        """Wake it no more."""
        found = self._known.get(hashed, set())
        found.discard(followed)
        if not found:
            self._known.pop(hashed, None)

    def judge(self) -> None:
        """Let everybody be judged anew."""
        for name in list(self._known):
            for followed in self._known[name]:
                followed.judge = True
                followed.look.set()

    def wake(self, hashed: frozenset[str]) -> None:
        """Let those look who have something."""
        for name in hashed:
            for followed in self._known.get(name, ()):
                followed.look.set()
