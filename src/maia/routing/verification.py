"""What a broker verifies of the requests that pass: its own clients' always, those of others by its strategy."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from maia.authority import Action, Verifier
from maia.errors import SignatureError, UncheckedError, UsageError, VerificationError
from maia.events import type_id
from maia.filters import TypedFilter, format_filter
from maia.routing.evidence import REPLAY_WINDOW, NetworkRequest, verify_request
from maia.routing.identifiers import Identifier, rendezvous
from maia.routing.messages import Advertise, AdvertisedLane, Pulled, Subscribe, WantedFilter

Subject: TypeAlias = TypedFilter | Mapping[str, object]
"""What a request is about: a filter, or the values of an event."""

MAX_SEEN = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Strategy:
    """With which probability a broker verifies what a neighbour passes on: 0 is edge only, 1 is every request.

    >>> Strategy.parse("edge"), Strategy.parse("0.25")
    (Strategy(probability=0.0), Strategy(probability=0.25))
    """

    probability: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        if not 0.0 <= self.probability <= 1.0:
            raise UsageError("a probability lies between 0 and 1", code="STRATEGY")

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """Read `edge`, `always` or a probability.

        Raises:
            UsageError: It is none of them.
        """
        named = {"edge": 0.0, "always": 1.0}.get(text)
        try:
            return cls(float(text) if named is None else named)
        except ValueError as error:
            raise UsageError(f"`{text}` is none of `edge`, `always` or a probability", code="STRATEGY") from error


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """What a message asks for, with which the request that comes along must agree; any subject when ``None``."""

    action: Action
    key: Identifier
    subject: bytes | None = None


class Gate:
    """Verifies requests by a strategy, and counts what that costs."""

    def __init__(self, strategy: Strategy, verifier: Verifier, draw: Callable[[], float]) -> None:
        """Verify nothing yet.

        Args:
            strategy: How often a neighbour's requests are verified.
            verifier: Who decides.
            draw: Gives numbers from 0 up to 1, all as likely.
        """
        self._strategy = strategy
        self._verifier = verifier
        self._draw = draw
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self.requests = 0
        self.signatures = 0

    def require(self, request: NetworkRequest | None, asked: AskedRequest, *, at: float) -> None:
        """Let a request of an own client in.

        Raises:
            VerificationError: It is not proven, is about something else, or came before.
            UncheckedError: Too many requests came within one window to remember them all.
        """
        if request is None:
            raise SignatureError("a request without a signature; sign it", code="UNSIGNED_REQUEST")
        self._verify(request, asked, at)
        while self._seen and at - next(iter(self._seen.values())) > 2 * REPLAY_WINDOW.total_seconds():
            self._seen.popitem(last=False)
        if request.digest in self._seen:
            raise VerificationError("the request came before; sign a new one", code="REPLAYED_REQUEST")
        if len(self._seen) >= MAX_SEEN:
            # SECURITY: forgetting one to make room would let it be replayed.
            raise UncheckedError("too many requests within one window", code="LIMIT_EXCEEDED")
        self._seen[request.digest] = at

    def admits(self, request: NetworkRequest | None, asked: AskedRequest, *, at: float) -> bool:
        """Whether a neighbour's request may pass: unlooked at, or verified."""
        if self._draw() >= self._strategy.probability:
            return True
        if request is None:
            return False
        try:
            self._verify(request, asked, at)
        except VerificationError:
            return False
        return True

    def _verify(self, request: NetworkRequest, asked: AskedRequest, at: float) -> None:
        self.requests += 1
        if request.action is not asked.action or rendezvous(type_id(request.owner, request.name)) != asked.key:
            raise VerificationError("the request is about something else", code="OTHER_REQUEST")
        if asked.subject is not None and request.subject != asked.subject:
            raise VerificationError("the request is about something else", code="OTHER_REQUEST")
        self.signatures += verify_request(request, self._verifier, at=_EPOCH + timedelta(seconds=at))


def subject_of(what: Subject) -> bytes:
    """Hash what a request is about: a filter, or the values of an event."""
    if isinstance(what, TypedFilter):
        return hashlib.sha256(format_filter(what).encode()).digest()
    return hashlib.sha256(repr(sorted(what.items())).encode()).digest()


class Door:
    """What a broker does with a request: it asks its gate; without one, everything may pass."""

    def __init__(self, gate: Gate | None) -> None:
        """Stand in front of a gate, or of none."""
        self._gate = gate

    def require(
        self, request: NetworkRequest | None, action: Action, key: Identifier, what: Subject | None, *, at: float
    ) -> None:
        """Let a request of an own client in; see `Gate.require`."""
        if self._gate is not None:
            self._gate.require(request, _asked(action, key, what), at=at)

    def admits(
        self, request: NetworkRequest | None, action: Action, key: Identifier, what: Subject | None, *, at: float
    ) -> bool:
        """Whether a neighbour's request may pass; see `Gate.admits`."""
        return self._gate is None or self._gate.admits(request, _asked(action, key, what), at=at)

    def events(self, answer: Pulled) -> Pulled:
        """Those of the events that a lane's own broker handed over later that may pass, judged at their own time."""
        good = (
            item
            for item in answer.events
            if self.admits(item.evidence, Action.PUBLISH, answer.lane.key, item.values, at=item.stamp)
        )
        return replace(answer, events=tuple(good))

    def wishes(self, message: Subscribe, *, at: float) -> list[WantedFilter]:
        """Those of a neighbour's filters that may pass."""
        return [
            item
            for item in message.added
            if self.admits(item.evidence, Action.SUBSCRIBE, message.key, item.filter_, at=at)
        ]

    def lanes(self, message: Advertise, *, at: float) -> list[AdvertisedLane]:
        """Those of a neighbour's lanes that may be brought: all who publish to them proved that they may."""
        return [
            item
            for item in message.lanes
            if item.closed
            or all(self.admits(one, Action.PUBLISH, message.key, None, at=at) for one in item.evidence or (None,))
        ]


def _asked(action: Action, key: Identifier, what: Subject | None) -> AskedRequest:
    return AskedRequest(action, key, None if what is None else subject_of(what))
