"""Who may copy a log: keys that may connect to its network, judged by the domain that serves it.

Rules kept here:

- the right is the kernel's to judge (`maia.domain.check_neighbour`), with the certificates and lists of this moment;
- a judgement is kept for `KEEP` at most, so that a revocation ends within that time for whoever is copying;
- of types that go direct, what a key may have is judged with it (`maia.domain.check_direct_object`), and kept as long;
- how many are kept is bounded, and whoever is refused is not kept;
- questions about filters have a lock and a view of the home of their own: whoever asks for much keeps nobody from
  copying. A key has one question under way, and waits its turn for so long;
- what somebody showed is held in memory alone, so much of each and of so many, and judged again with its key. Who asked
  least lately makes room, and shows it anew.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from maia.domain import (
    BrokerCredentials,
    DirectLanes,
    Domain,
    broker_credentials,
    check_direct_object,
    check_neighbour,
    direct_lanes,
    unwanted_segments,
)
from maia.errors import UnavailableError, UsageError
from maia.log import LaneId
from maia.principals import KeyId, PublicKey
from maia.wire import split_record

KEEP = 1.0
"""Seconds for which a judgement is kept."""
_MOST = 1024
_TURN = 10.0
_MOST_HELD, _MAX_HELD = 64, 512 << 10


class Neighbours:
    """Judges who asks, one at a time."""

    def __init__(self, domain: Domain, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Judge for a domain."""
        self._domain = domain
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # SECURITY: a question may take seconds; it must not hold what every other request needs.
        self._asked, self._asking = Domain(domain.home, clock=domain.clock), threading.Lock()
        self._under_way: set[KeyId] = set()
        self._judged: OrderedDict[KeyId, float] = OrderedDict()
        self._held: OrderedDict[KeyId, BrokerCredentials] = OrderedDict()
        self._direct, self._direct_until = DirectLanes(), 0.0

    def admit(self, key: PublicKey, certificates: Sequence[bytes], statements: Sequence[bytes]) -> None:
        """Take what somebody shows, and refuse it unless it may connect.

        Raises:
            MaiaError: It may not, or what proves it is too large: ``TOO_MANY_CREDENTIALS``.
        """
        with self._lock:
            shown = check_neighbour(self._domain, key, certificates, statements)
            self._hold(key, shown)
            self._keep(key)

    def check(self, key: PublicKey) -> None:
        """Refuse a key that may not connect now.

        Raises:
            MaiaError: It may not.
        """
        with self._lock:
            if self._judged.get(key.key_id, 0.0) <= self._monotonic():
                self._judged.pop(key.key_id, None)
                shown = self._held.pop(key.key_id, BrokerCredentials())
                self._hold(key, check_neighbour(self._domain, key, shown.certificates, shown.statements))
                self._keep(key)

    def check_object(self, key: PublicKey, name: str) -> None:
        """Refuse what lies under a name of the log, when its type goes direct and the key may not have it.

        Raises:
            DeniedError: ``DIRECT_ONLY``.
        """
        with self._lock:
            if self._direct_until <= self._monotonic():
                self._direct, self._direct_until = direct_lanes(self._domain), self._monotonic() + KEEP
            if self._direct.types:
                check_direct_object(self._domain, self._direct, key, name)

    def unwanted(self, key: PublicKey, name: str, filters: Sequence[bytes]) -> tuple[list[str], int]:
        """Name the segments that no filter of a neighbour wants, see `maia.domain.unwanted_segments`.

        Raises:
            UnavailableError: The key asks already, or it was not its turn for too long: ``LOG_ASKED``.
            MaiaError: The name is no record's, or a filter is refused.
        """
        found = split_record(name)
        if found is None or not found[0].startswith("type="):
            raise UsageError("no name of a record of events", code="LOG_NAME")
        topic, origin = (part.partition("=")[2] for part in found[0].split("/"))
        lane = LaneId(kind="events", owner=KeyId(bytes.fromhex(origin)), topic=topic)
        with self._turn(key):
            return unwanted_segments(self._asked, key, lane, found[1], filters, monotonic=self._monotonic)

    def credentials(self) -> BrokerCredentials:
        """Give what this domain's broker shows of itself."""
        with self._lock:
            return broker_credentials(self._domain)

    @contextmanager
    def _turn(self, key: PublicKey) -> Iterator[None]:
        """Wait for a turn to ask, one at a time for all and one place in the queue for each key."""
        with self._lock:
            if key.key_id in self._under_way:
                raise UnavailableError("a key asks one question at a time", code="LOG_ASKED")
            self._under_way.add(key.key_id)
        try:
            if not self._asking.acquire(timeout=_TURN):
                raise UnavailableError("others ask about their filters; ask again", code="LOG_ASKED")
            try:
                yield
            finally:
                self._asking.release()
        finally:
            with self._lock:
                self._under_way.discard(key.key_id)

    def _hold(self, key: PublicKey, shown: BrokerCredentials) -> None:
        self._held.pop(key.key_id, None)
        if not shown.certificates:
            return
        if sum(map(len, (*shown.certificates, *shown.statements))) > _MAX_HELD:
            raise UsageError(f"a neighbour shows at most {_MAX_HELD} octets", code="TOO_MANY_CREDENTIALS")
        self._held[key.key_id] = shown
        while len(self._held) > _MOST_HELD:
            self._held.popitem(last=False)

    def _keep(self, key: PublicKey) -> None:
        self._judged[key.key_id] = self._monotonic() + KEEP
        while len(self._judged) > _MOST:
            self._judged.popitem(last=False)
