"""Image streams on their way to clients: read once from the log, handed to each sink through the handlers it is due.

A source publishes an event once, and knows no sink. Rules kept here:

- the stream is opened by its operator, a client with the right to subscribe to it; a sink sees what its handlers make;
- a sink needs the right ``route`` on the type, and what it installs the three rights. They are proven when it is bound,
  and again when certificates, statements or their times changed, or where they have conditions; never for each event;
- policies are the home's own, and name the type's name as camera and as channel, so that nobody says which it is. They
  are asked for each batch, by the domain's clock: the next frame obeys a policy that was replaced;
- a sink that may not see any more is closed, with the reason, and the audit is told. Others go on;
- an event that is no frame costs itself, and a fault of a sink's handlers costs that sink. So does their slowness: what
  a sink installed has a share of the time, and is taken off when that is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from maia.authority import Action
from maia.domain.handlers.catalogue import forced_handler, open_handler
from maia.domain.handlers.entitlement import TypeChannel, decide_view, install_rights, names_of, prove_rights
from maia.domain.handlers.frame_files import BATCH, MAX_DEAD
from maia.domain.log_parts import begin_read, parts_of, scan
from maia.domain.operations import audit_of, note_session, refusals
from maia.domain.possession import ProvenClient
from maia.domain.stretches import type_stretch
from maia.domain.types import show_type
from maia.domain.xml_policies import OWN_ZONE, OwnPolicies, policy_clock
from maia.errors import MaiaError, MalformedError, UsageError
from maia.events import TypeName
from maia.kernel import (
    DEFAULT_HANDLER_BUDGET,
    FRAME_SCHEMA,
    DeadFrame,
    Frame,
    FrameHandler,
    HandlerBudget,
    HandlerLine,
    HandlerPost,
)
from maia.log import OK, AuditRow, Places
from maia.policy import xml

if TYPE_CHECKING:
    from maia.domain.domain import Domain
    from maia.domain.snapshot import Snapshot

_MOST_COMMITS = 16
"""Of one stretch; what is known of revocations is looked at before each."""
_SHARE = 0.1
"""Seconds that what a sink installed may take for a frame, on average: sinks are handed theirs one after another."""


@dataclass(slots=True, kw_only=True)
class Sink:
    """What became of one client's way to a stream. Only `ImageChannel.bind` makes one.

    Attributes:
        client: Who gets the frames.
        handlers: What it installed, in order.
        target: The type that they make.
        posts: What frames go through: what is forced first.
        verifications: How often its rights were proven.
        written: How many frames it was handed.
        octets: Of their pixels.
        lost: How many a handler lost.
        dead: The first of those, with handler and reason.
        closed: Why it gets nothing any more.
    """

    client: ProvenClient
    handlers: tuple[FrameHandler, ...]
    target: str
    posts: tuple[HandlerPost, ...] = ()
    verifications: int = 0
    written: int = 0
    octets: int = 0
    lost: int = 0
    dead: list[DeadFrame] = field(default_factory=list)
    closed: MaiaError | None = None

    def tell(self, item: DeadFrame) -> None:
        """Count a frame that a handler lost."""
        self.lost += 1
        if len(self.dead) < MAX_DEAD:
            self.dead.append(item)


Take = Callable[[Sink, Sequence[Frame]], None]
"""Hears what a sink is handed."""


@dataclass(slots=True, kw_only=True)
class _Bound:
    """A sink, and what was decided for it last."""

    sink: Sink
    names: frozenset[str] = frozenset()
    moment: tuple[object, ...] | None = None
    forced: tuple[xml.ForcedHandler, ...] | None = None
    line: HandlerLine = field(default_factory=lambda: HandlerLine(()))
    noted: int = 0


class ImageChannel:
    """The stream of an event type whose events are frames, and the sinks that are bound to it.

    Attributes:
        name: The type.
        read: How many events were frames.
        malformed: How many were none; they reach nobody.
    """

    def __init__(
        self,
        domain: Domain,
        type: str,  # noqa: A002 - as everywhere
        *,
        operator: str,
        budget: HandlerBudget = DEFAULT_HANDLER_BUDGET,
        strikes: int = 3,
        batch: int = BATCH,
    ) -> None:
        """Open the stream of a type; nothing is read yet.

        Args:
            domain: Whose log, policies and clients.
            type: The type, with the attributes ``number``, ``height``, ``width``, ``channels`` and ``pixels``.
            operator: Who opens the stream: a client of the home, by name, which proves its key and may subscribe.
            budget: What a handler may use.
            strikes: After how many faults one is taken off.
            batch: How many frames go through the handlers together; 1 is packet by packet. What comes out is the same.

        Raises:
            UsageError: The type lacks one of these attributes: ``CHANNEL_TYPE``.
            MaiaError: There is no such type, or it does not verify.
        """
        self.name: TypeName = domain.find_type(type)
        at = domain.clock()
        known = {item.name for item in domain.event_type(self.name, at=at).attributes}
        lacking = [name for name in FRAME_SCHEMA.names if name not in known]
        if lacking:
            raise UsageError(
                f"events of `{self.name.name}` are no frames: they lack `{lacking[0]}`", code="CHANNEL_TYPE"
            )
        if batch < 1:
            raise UsageError("a batch has at least one frame", code="OPTION_VALUE")
        self._bound: list[_Bound] = []
        self.read = self.malformed = 0
        self._domain = domain
        self._operator = domain.prove(operator)
        self._type = show_type(domain.home, self.name)
        self._budget, self._strikes, self._batch = budget, strikes, batch
        self._policies = OwnPolicies(domain.home.folder)
        self._places: Places = {}

    @property
    def camera(self) -> str:
        """What policies call the stream, as camera and as channel: the name of its type."""
        return self.name.name

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Those that were bound, closed ones too."""
        return tuple(bound.sink for bound in self._bound)

    @property
    def _source(self) -> str:
        return f"channel {self.camera}"

    def bind(self, client: str, handlers: Sequence[str] = (), *, target: str | None = None) -> Sink:
        """Bind a client to what its rights and the policies leave it of the stream; it gets what is pumped from now on.

        Args:
            client: Who gets the frames: a client of the home, by name, which proves its key.
            handlers: What it installs behind what the policies force: ``greyscale``, ``blur:lower-half``, … or files.
            target: The type that these make; the stream's own by default.

        Raises:
            DeniedError: It lacks the right ``route``, or one of the three to install (``HANDLER_RIGHT``); or a policy
                keeps it from seeing (``XML_DENIED``) or installing (``INSTALL_DENIED``).
            MalformedError: What it installs is no handler: ``HANDLER_CODE``.
            MaiaError: A policy or the register cannot be read, which refuses as well.
        """
        domain, at = self._domain, self._domain.follow()
        proven, own = domain.prove(client), tuple(open_handler(text) for text in handlers)
        bound = _Bound(sink=Sink(client=proven, handlers=own, target=target or self._type))
        with refusals(domain.home, proven, self.name, at=at):
            self._judge(bound, domain.known(at=at), at=at, anew=True)
        # SECURITY: code is opened for whoever may install it, and for nobody else.
        for handler in own:
            handler.prepare()
        note_session(domain.home, "subscribe", proven, self.name.type_id, source=self._source, at=at)
        self._bound.append(bound)
        return bound.sink

    def pump(self, take: Take) -> int:
        """Hand what the log holds since the last time to the sinks, a stretch at most; count the events.

        What fails before a stretch is through is handed out again the next time.

        Args:
            take: Is given what each sink gets, batch after batch.

        Raises:
            MaiaError: The operator has no right any more, or the log cannot be read.
        """
        domain, at = self._domain, self._domain.follow()
        known, before = domain.known(at=at), self.read + self.malformed
        if not [bound for bound in self._open() if self._check(bound, known, at=at, anew=True)]:
            return 0
        found = type_stretch(domain, self.name, after=self._places, at=at, most=_MOST_COMMITS)
        if found.commits:
            operator, names = self._operator, FRAME_SCHEMA.names
            plan = domain.deliver_plan(
                self.name, client=operator, commits=found.commits, at=at, followed=True, known=known
            )  # fmt: skip
            number = begin_read(domain.home, plan, found.commits, operator, attributes=names, parts=1, at=at)
            batches = scan(
                domain.home, plan, parts_of(found.commits, plan), client=operator.name, columns=names,
                with_event_id=False, clock=domain.clock, operation=number,
            )  # fmt: skip
            try:
                for batch in batches:
                    for start in range(0, batch.num_rows, self._batch):
                        self._hand(list(self._frames(batch.slice(start, self._batch))), known, take)
            finally:
                self._note()
        self._places = found.upto
        return self.read + self.malformed - before

    def _open(self) -> list[_Bound]:
        return [bound for bound in self._bound if bound.sink.closed is None]

    def _frames(self, batch: pa.RecordBatch) -> Iterator[Frame]:
        """Give the rows that are frames; others are counted."""
        for row in batch.to_pylist():
            try:
                frame = None if None in row.values() else Frame(**row)
            except MalformedError:
                frame = None
            if frame is None:
                self.malformed += 1
                continue
            self.read += 1
            yield frame

    def _hand(self, frames: list[Frame], known: Snapshot, take: Take) -> None:
        for bound in self._open():
            # SECURITY: asked for each batch, so that the next frame obeys what was replaced.
            if not self._check(bound, known, at=self._domain.clock()):
                continue
            sink, made = bound.sink, bound.line.handle(frames, bound.sink.tell)
            if made:
                sink.written += len(made)
                sink.octets += sum(len(frame.pixels) for frame in made)
                take(sink, made)

    def _check(self, bound: _Bound, known: Snapshot, *, at: datetime, anew: bool = False) -> bool:
        """Ask whether a sink may go on; close it when it may not."""
        home, sink = self._domain.home, bound.sink
        try:
            with refusals(home, sink.client, self.name, at=at):
                self._judge(bound, known, at=at, anew=anew)
        except MaiaError as error:
            sink.closed = error
            note_session(home, "unsubscribe", sink.client, self.name.type_id, source=self._source, at=at)
        return sink.closed is None

    def _judge(self, bound: _Bound, known: Snapshot, *, at: datetime, anew: bool) -> None:
        """Prove a sink's rights where something changed; let the home's policies decide, and put up what they force.

        ``anew`` asks the home's register for the roles of its client as well.
        """
        sink, moment = bound.sink, known.sessions.moment(known.pool, at=at)
        if moment != bound.moment:
            needed = [(Action.ROUTE, self._type)]
            if sink.handlers:
                needed += install_rights(TypeChannel(source=self._type, target=sink.target))
            proven = prove_rights(self._domain, sink.client, needed, at=at)
            sink.verifications += 1
            # SECURITY: whether a condition holds may change with every minute.
            bound.moment = None if any(grant.conditions for grant in proven) else moment
        if anew:
            bound.names = names_of(self._domain, sink.client, at=at)
        forced = decide_view(
            self._policies.now(), sink.client, bound.names, sink.handlers, camera=self.camera, channel=self.camera,
            at=policy_clock(at, OWN_ZONE),
        )  # fmt: skip
        if forced == bound.forced:
            return
        own = sink.posts[len(bound.forced or ()) :] or tuple(map(HandlerPost, sink.handlers))
        # SECURITY: what a policy forces comes first, on the source's own pixels, whatever is installed behind it.
        sink.posts = (*(HandlerPost(forced_handler(item), forced=True) for item in forced), *own)
        bound.forced, bound.line = forced, self._line(sink.posts)

    def _line(self, posts: Sequence[HandlerPost]) -> HandlerLine:
        return HandlerLine(posts, budget=self._budget, strikes=self._strikes, share=_SHARE)

    def _note(self) -> None:
        """Tell the audit how many events each sink was handed."""
        at, type_id, rows = self._domain.clock(), self.name.type_id.hex(), list[AuditRow]()
        for bound in self._bound:
            client, handed = bound.sink.client, bound.sink.written - bound.noted
            bound.noted = bound.sink.written
            if handed:
                rows.append(AuditRow(
                    at=at, kind="deliver", principal=client.key.fingerprint, type_id=type_id, source=self._source,
                    subject=client.name, code=OK, events=handed,
                ))  # fmt: skip
        if rows:
            audit_of(self._domain.home).note(rows)
