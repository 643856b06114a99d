"""The state of validity topics along a dissemination tree: the first broker that holds it answers.

A broker's cache keeps the signed statements of the topics that passed through it. A question goes up, from the broker
that asks to the rendezvous, and the first holder answers; the rendezvous may ask the publishers. Rules kept here (rows
13.13 to 13.15, threat T33):

- a cache holds signed objects and checks them before it answers: what is forged, damaged or over is dropped, and the
  question goes on up;
- caches may drop anything at any time: an answer is found further up, and is the same;
- of several publishers the newest answer within a time limit counts, or the first, as the topic's owner chose. What was
  resolved is kept at the rendezvous, so that everybody gets the same;
- when nobody answers the state is unknown, which is no statement, which denies. What the principal itself presents is
  tried first (choice C18), and goes through the same checks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from maia.authority import ListStatement, Statement, StatementBook, parse_statement, verify_statement
from maia.errors import MaiaError, UsageError, VerificationError
from maia.principals import CertificateId, KeyId, OnlineTest, TestKind

MAX_STATE = 64
"""Most statements that describe the state of one topic: lists in force, successors and withdrawals."""
MAX_TREE = 256
"""Longest way to the rendezvous."""


class StateChoice(Enum):
    """Which of several publishers' answers counts."""

    NEWEST = "newest"
    FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReply:
    """What one publisher answers.

    Attributes:
        statements: Signed statements of the topic.
        stamp: When the publisher made the answer.
        delay: How long the answer took to arrive.
    """

    statements: tuple[bytes, ...]
    stamp: datetime
    delay: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """The state of a topic, checked: its statements, and how many hops away they were held."""

    statements: tuple[Statement, ...]
    hops: int


AskPublisher = Callable[[KeyId], StateReply | None]
"""Asks one publisher for the state of a topic; ``None`` when it is gone or has none."""


class StateCache:
    """The cache of one broker. The one without a parent is the rendezvous."""

    def __init__(
        self,
        parent: StateCache | None = None,
        *,
        publishers: Sequence[AskPublisher] = (),
        choice: StateChoice = StateChoice.NEWEST,
        limit: timedelta = timedelta(seconds=10),
        capacity: int = 10_000,
    ) -> None:
        """Stand in the tree below a parent, or at its top.

        Args:
            parent: The next broker towards the rendezvous.
            publishers: Whom the rendezvous asks.
            choice: Which of several answers counts.
            limit: How long it waits for them.
            capacity: How many topics are kept; the oldest goes first.
        """
        if parent is not None and publishers:
            raise UsageError("only the rendezvous asks publishers")
        if capacity < 1:
            raise UsageError("a cache holds at least one topic")
        self.parent = parent
        self._publishers = tuple(publishers)
        self._choice = choice
        self._limit = limit
        self._capacity = capacity
        self._held: OrderedDict[KeyId, tuple[bytes, ...]] = OrderedDict()

    def ask(self, topic: KeyId, *, at: datetime) -> TopicState | None:
        """Find the state of a topic; ``None`` is `unknown`.

        The caches between the holder and this one keep it too.
        """
        node: StateCache | None = self
        passed: list[StateCache] = []
        for hops in range(MAX_TREE):
            if node is None:
                return None
            found = node.held(topic, at=at)
            if not found and node.parent is None:
                found = node.ask_publishers(topic, at=at)
            if found:
                for cache in passed:
                    cache.learn(topic, (item.raw for item in found))
                return TopicState(statements=found, hops=hops)
            passed.append(node)
            node = node.parent
        raise UsageError(f"the rendezvous is more than {MAX_TREE} hops away", code="TREE_TOO_DEEP")

    def learn(self, topic: KeyId, statements: Iterable[bytes]) -> None:
        """Keep what passes on its way down, in addition to what is held of the topic; unchecked until it is used."""
        held = dict.fromkeys((*self._held.get(topic, ()), *statements))
        self._held[topic] = tuple(held)[-MAX_STATE:]
        self._held.move_to_end(topic)
        while len(self._held) > self._capacity:
            self._held.popitem(last=False)

    def evict(self, topic: KeyId) -> None:
        """Forget a topic."""
        self._held.pop(topic, None)

    def flush(self) -> None:
        """Forget everything."""
        self._held.clear()

    def held(self, topic: KeyId, *, at: datetime) -> tuple[Statement, ...]:
        """Return what this broker holds of a topic and can still serve, dropping the rest; nothing without a list now.

        An answer without a timed list in force, where the topic has timed lists, would be silence: somebody further up
        may know better.
        """
        good = checked(topic, self._held.get(topic, ()), at=at)
        bodies = [item.body for item in good if isinstance(item.body, ListStatement)]
        if not any(body.in_force(at) for body in bodies if body.timed or not any(other.timed for other in bodies)):
            self.evict(topic)
            return ()
        self._held[topic] = tuple(item.raw for item in good)
        return good

    def ask_publishers(self, topic: KeyId, *, at: datetime) -> tuple[Statement, ...]:
        """Ask the publishers and keep the answer that counts."""
        replies = [reply for ask in self._publishers if (reply := ask(topic)) is not None]
        in_time = [reply for reply in replies if reply.delay <= self._limit]
        if self._choice is StateChoice.NEWEST:
            in_time.sort(key=lambda reply: reply.stamp, reverse=True)
        else:
            in_time.sort(key=lambda reply: reply.delay)
        for reply in in_time:  # an answer that does not stand up to checking is none
            good = checked(topic, reply.statements, at=at)
            if good:
                self._held.pop(topic, None)
                self.learn(topic, (item.raw for item in good))
                return good
        return ()


def checked(topic: KeyId, raws: Iterable[bytes], *, at: datetime) -> tuple[Statement, ...]:
    """Return the lists that the topic's signer made and that are not over."""
    found = []
    for raw in tuple(raws)[-MAX_STATE:]:
        try:
            statement = verify_statement(parse_statement(raw))
        except MaiaError:
            continue
        body = statement.body
        if statement.signer_id == topic and isinstance(body, ListStatement) and (body.ends is None or body.ends > at):
            found.append(statement)
    return tuple(found)


def learn_state(
    book: StatementBook,
    tests: Iterable[tuple[OnlineTest, CertificateId]],
    *,
    presented: Iterable[Statement] = (),
    cache: StateCache | None = None,
    at: datetime,
) -> None:
    """Fill a verifier's book for the tests of a decision: what the principal presents, then what the tree knows.

    A statement that is refused teaches nothing. After this the book alone decides; `unknown` leaves it as it was.
    """
    for statement in presented:
        _offer(book, statement)
    for test, identity in tests:
        if test.kind is TestKind.ONE_TIME or cache is None or _answered(book, test, identity, at):
            continue
        state = cache.ask(test.signer.key_id, at=at)
        for statement in () if state is None else state.statements:
            _offer(book, statement)


def _answered(book: StatementBook, test: OnlineTest, identity: CertificateId, at: datetime) -> bool:
    try:
        book.check(test, identity, at=at)
    except VerificationError as error:
        return error.code == "REVOKED"
    return True


def _offer(book: StatementBook, statement: Statement) -> None:
    try:
        book.accept(statement)
    except VerificationError:
        return
