"""The state of a type: the last event that matches what a client subscribed to, asked for along the tree.

A question goes towards the root, and the first broker that holds the answer gives it; those on the way back keep it.
The root asks the publishers' brokers, for a time. Rules kept here:

- a question is about what the asker subscribed to: a client's own filter, or what a filter of the neighbour covers. So
  whoever asks was let in by the same check as its subscription;
- an answer counts when it comes from whom was asked, matches the question, and is an event that its publisher could
  have published: within what was advertised, and signed where this broker verifies. Anything else is no answer;
- a broker answers from what it holds only while everything that would replace it passes here: it keeps what matches as
  it passes, and forgets all when it may have missed something or what was told of its filters no longer covers it;
- of several publishers the newest answer within the limit counts, or the first, and is kept at the root;
- whatever is forgotten is found further up. When nobody answers, the state is unknown: no event, never an older one;
- questions and answers kept are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from maia.authority import Action
from maia.errors import NotFoundError
from maia.filters import TypedFilter, matches
from maia.routing.forest import Forest
from maia.routing.identifiers import Identifier
from maia.routing.lanes import NumberedLanes
from maia.routing.membership import KnownBrokers
from maia.routing.messages import AskState, Event, HeldEvent, Lane, LaneOffer, ToldState
from maia.routing.tree import Tree, covered
from maia.routing.verification import Door

MAX_QUESTIONS = 1024
"""How many questions wait for an answer, and how many askers for one."""
MAX_STATES = 64
"""How many answers are kept of a type; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class OverlayState:
    """What a client hears of the state: the event, or none where it is unknown, and how many hops away it was held."""

    client: str
    key: Identifier
    held: HeldEvent | None
    hops: int | None


@dataclass(slots=True)
class _Question:
    key: Identifier
    filter_: TypedFilter
    asked_at: float
    askers: list[tuple[Identifier, int] | str] = field(default_factory=list)
    lanes: set[Lane] | None = None
    best: HeldEvent | None = None


class TypeStates:
    """Questions of one broker's clients and neighbours, and what is held to answer them."""

    def __init__(
        self, members: KnownBrokers, forest: Forest, lanes: NumberedLanes, door: Door, *, first: bool, limit: float
    ) -> None:
        """Be asked nothing yet.

        Args:
            members: Who is there.
            forest: The trees of the broker.
            lanes: The lanes of the broker.
            door: What verifies the events of others.
            first: Whether at the root the first answer counts; otherwise the newest.
            limit: How long the root waits for publishers, in seconds.
        """
        self._members = members
        self._forest = forest
        self._lanes = lanes
        self._door = door
        self._first = first
        self._limit = limit
        self._questions: dict[int, _Question] = {}
        self._answers: list[OverlayState] = []
        self.refused = 0
        self.asked = 0

    def ask(self, client: str, key: Identifier, *, now: float) -> None:
        """Ask for the last event that matches a client's subscription; see `take_answers`.

        Raises:
            NotFoundError: The client is not subscribed.
        """
        tree = self._forest.find(key)
        wanted = None if tree is None else tree.clients.get(client)
        if tree is None or wanted is None:
            raise NotFoundError(f"`{client}` subscribed to nothing of this type", code="NOT_SUBSCRIBED")
        self._resolve(tree, wanted.filter_, client, now)

    def take_answers(self) -> list[OverlayState]:
        """Hand over what clients hear."""
        answers, self._answers = self._answers, []
        return answers

    def forget(self) -> None:
        """Forget all answers that are held; none of them changes by it."""
        for tree in self._forest:
            tree.states.clear()

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._questions)

    @property
    def size(self) -> int:
        """How much is kept: questions, those who asked them, and answers."""
        return sum(1 + len(item.askers) for item in self._questions.values()) + sum(
            len(tree.states) for tree in self._forest
        )

    # ------------------------------------------------------------------ what the network brings

    def take(self, hop: Identifier, message: AskState | ToldState, *, now: float) -> None:
        """Take a question or an answer of a neighbour."""
        if isinstance(message, ToldState):
            self._told(hop, message, now)
        elif message.lane is not None:
            self.asked += 1
            event = self._lanes.last(message.lane, message.filter_)
            held = None if event is None else HeldEvent(message.lane, event)
            self._members.send(hop, ToldState(message.key, message.number, held), now=now)
        else:
            self._asked(hop, message, now)

    def passed(self, tree: Tree, offer: LaneOffer, *, torn: bool) -> None:
        """Keep what passes; where something did not come through here, nothing is held for certain."""
        if torn:
            tree.states.clear()
        if offer.event is None:
            return
        now = HeldEvent(offer.lane, offer.event)
        for wish, before in tree.states.items():
            if matches(wish, offer.event.values):
                tree.states[wish] = self._later(before, now)
        for question in self._questions.values():
            asked = question.filter_
            if question.key == tree.key and tree.reads(asked) and matches(asked, offer.event.values):
                question.best = self._later(question.best, now)

    def tick(self, *, now: float) -> None:
        """End the questions that wait too long: at the root with what came so far."""
        for number, question in list(self._questions.items()):
            if now - question.asked_at >= (self._limit if question.lanes is not None else 4 * self._limit):
                self._conclude(number, 0 if question.lanes is not None else None, now)

    def _asked(self, hop: Identifier, message: AskState, now: float) -> None:
        tree = self._forest.find(message.key)
        # SECURITY: only what the neighbour may have, by the check of its subscription, is told.
        wishes = () if tree is None else (wish for wish, _ in tree.children.get(hop, {}).values())
        if tree is None or not covered(wishes, message.filter_):
            self.refused += 1
            self._members.send(hop, ToldState(message.key, message.number), now=now)
            return
        self._resolve(tree, message.filter_, (hop, message.number), now)

    def _told(self, hop: Identifier, message: ToldState, now: float) -> None:
        question = self._questions.get(message.number)
        tree = None if question is None else self._forest.find(question.key)
        if question is None or tree is None:
            return
        if question.lanes is None:
            if hop != tree.parent:
                self.refused += 1
                return
            self._choose(tree, question, message.held, now)
            self._conclude(message.number, message.hops + 1, now)
            return
        mine = {lane for lane in question.lanes if lane.origin == hop}
        if not mine:
            self.refused += 1
            return
        if now - question.asked_at >= self._limit:
            self._conclude(message.number, 0, now)
            return
        question.lanes -= mine
        held = message.held
        if held is not None and (held.lane not in mine or not self._advertised(tree, held)):
            self.refused += 1
            held = None
        self._choose(tree, question, held, now)
        if not question.lanes or (self._first and question.best is not None):
            self._conclude(message.number, 0, now)

    def _choose(self, tree: Tree, question: _Question, held: HeldEvent | None, now: float) -> None:
        if held is None:
            return
        if not self._stands(tree, question, held, now):
            self.refused += 1
        elif not (self._first and question.best is not None):
            question.best = self._later(question.best, held)

    def _stands(self, tree: Tree, question: _Question, held: HeldEvent, now: float) -> bool:
        event = held.event
        if held.lane.key != tree.key or event.stamp > now or not tree.may_match(question.filter_, event.values):
            return False
        # Who could publish it then counts, not who may now: what was signed is judged at its own time.
        return self._door.admits(event.evidence, Action.PUBLISH, tree.key, event.values, at=event.stamp)

    def _advertised(self, tree: Tree, held: HeldEvent) -> bool:
        return any(tree.admitted(hop, held.lane, held.event.values) for hop in tree.lanes)

    # ------------------------------------------------------------------ answers

    def _resolve(self, tree: Tree, wish: TypedFilter, asker: tuple[Identifier, int] | str, now: float) -> None:
        found = self._find(tree, wish)
        if found is not None:
            self._answer(tree.key, [asker], found, 0, now)
            return
        for question in self._questions.values():
            if question.key == tree.key and question.filter_ == wish and len(question.askers) < MAX_QUESTIONS:
                question.askers.append(asker)
                return
        if len(self._questions) >= MAX_QUESTIONS or not tree.attached:
            self._answer(tree.key, [asker], None, None, now)
            return
        number = self._forest.number()
        question = self._questions[number] = _Question(tree.key, wish, now, [asker])
        if tree.parent is not None:
            self._members.send(tree.parent, AskState(tree.key, number, wish), now=now)
            return
        question.lanes = set()
        self._ask_publishers(tree, number, question, now)
        if not question.lanes or (self._first and question.best is not None):
            self._conclude(number, 0, now)

    def _ask_publishers(self, tree: Tree, number: int, question: _Question, now: float) -> None:
        own = self._lanes.lane(tree.key)
        event: Event | None = self._lanes.last(own, question.filter_) if tree.publishers else None
        if event is not None:
            question.best = HeldEvent(own, event)
        lanes = dict.fromkeys(lane for items in tree.lanes.values() for lane, item in items.items() if not item.closed)
        for lane in lanes:
            if lane.origin not in self._members.down:
                question.lanes = (question.lanes or set()) | {lane}
                self._members.send(lane.origin, AskState(tree.key, number, question.filter_, lane), now=now)

    def _find(self, tree: Tree, wish: TypedFilter) -> HeldEvent | None:
        """What is held that answers: the last of all that a wider filter admits is the last of what this one admits."""
        for wider, held in tree.states.items():
            if wider == wish or (tree.reads(wish) and matches(wish, held.event.values) and covered([wider], wish)):
                return held
        return None

    def _conclude(self, number: int, hops: int | None, now: float) -> None:
        question = self._questions.pop(number)
        tree = self._forest.find(question.key)
        if question.best is not None and tree is not None and tree.attached and tree.reads(question.filter_):
            tree.states.pop(question.filter_, None)
            tree.states[question.filter_] = question.best
            if len(tree.states) > MAX_STATES:
                del tree.states[next(iter(tree.states))]
        self._answer(question.key, question.askers, question.best, hops, now)

    def _answer(
        self,
        key: Identifier,
        askers: Iterable[tuple[Identifier, int] | str],
        held: HeldEvent | None,
        hops: int | None,
        now: float,
    ) -> None:
        for asker in askers:
            if isinstance(asker, str):
                self._answers.append(OverlayState(asker, key, held, hops if held is not None else None))
            else:
                self._members.send(asker[0], ToldState(key, asker[1], held, hops or 0), now=now)

    def _later(self, before: HeldEvent | None, after: HeldEvent) -> HeldEvent:
        if before is None or self._first or _age(after) > _age(before):
            return after
        return before


def _age(held: HeldEvent) -> tuple[float, int, int]:
    return held.event.stamp, held.lane.origin, held.event.number
