"""Conversations between two brokers: every message arrives once and in order, or the other one is lost.

The network below may lose, repeat, delay and reorder packets. Messages are numbered, acknowledged and sent again. Who
hears nothing of somebody it watches, although it asked, says that the other is lost, forgets what was under way and
begins another conversation (a higher *epoch*) when it hears of it again; the other follows. A broker that comes back
begins another *life*, which ends all its conversations. Either way both sides are told that the talk begins afresh,
and nothing of an earlier epoch counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from maia.routing.identifiers import Identifier
from maia.routing.messages import Message, Packet

WINDOW = 64
"""How many messages are under way at once; the rest waits."""
MAX_WAITING = 100_000
"""How many messages wait for one neighbour before it counts as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a broker waits, in seconds.

    Attributes:
        beat: Somebody silent for so long is asked.
        again: What was not acknowledged for so long is sent again.
        lost: Somebody silent for so long is lost.
    """

    beat: float = 1.0
    again: float = 0.5
    lost: float = 4.0


@dataclass(slots=True)
class _Talk:
    epoch: int = 0
    life: int = 0
    sent: int = 0
    waiting: deque[tuple[int, Message]] = field(default_factory=deque)
    sent_at: float = 0.0
    received: int = 0
    early: dict[int, Message] = field(default_factory=dict)
    heard_at: float | None = None
    asked_at: float = 0.0

    def restart(self, epoch: int) -> None:
        """Begin afresh, in both directions."""
        self.epoch = epoch
        self.sent = self.received = 0
        self.waiting.clear()
        self.early.clear()


@dataclass(frozen=True, slots=True)
class HeardPacket:
    """What a packet brought: messages in order, and whether the conversation began afresh before them."""

    messages: tuple[Message, ...] = ()
    afresh: bool = False
    counts: bool = True


class Links:
    """All conversations of one broker. Packets to send are collected in ``out``."""

    def __init__(self, own: Identifier, *, life: int, patience: Patience) -> None:
        """Talk to nobody yet."""
        self._own = own
        self._life = life
        self._patience = patience
        self._talks: dict[Identifier, _Talk] = {}
        self.out: list[Packet] = []

    def send(self, peer: Identifier, message: Message, *, now: float) -> None:
        """Say something; it arrives in order, once, unless the conversation begins afresh."""
        talk = self._talk(peer)
        talk.sent += 1
        if not talk.waiting:
            talk.sent_at = now
        talk.waiting.append((talk.sent, message))
        if len(talk.waiting) <= WINDOW:
            self._emit(peer, talk, talk.sent, message)

    def take_packets(self) -> list[Packet]:
        """Hand over the packets that are to be sent."""
        packets, self.out = self.out, []
        return packets

    def ask(self, peer: Identifier, *, now: float) -> None:
        """Ask whether somebody is there."""
        talk = self._talk(peer)
        talk.asked_at = now
        self._emit(peer, talk, 0, None, asks=True)

    def receive(self, packet: Packet, *, now: float) -> HeardPacket:
        """Take a packet from the network."""
        talk = self._talk(packet.source)
        if packet.life < talk.life:
            return HeardPacket(counts=False)
        afresh = False
        if packet.life > talk.life:
            if talk.life:
                talk.restart(max(talk.epoch, packet.epoch) + 1)
                afresh = True
            talk.life = packet.life
        if packet.epoch > talk.epoch:
            talk.restart(packet.epoch)
            afresh = True
        talk.heard_at = now
        if packet.epoch < talk.epoch:
            if packet.asks or packet.sequence:
                self._emit(packet.source, talk, 0, None)
            return HeardPacket(afresh=afresh)
        while talk.waiting and talk.waiting[0][0] <= packet.received:
            talk.waiting.popleft()
            talk.sent_at = now
            if len(talk.waiting) >= WINDOW:
                self._emit(packet.source, talk, *talk.waiting[WINDOW - 1])
        ready = self._in_order(talk, packet)
        if packet.asks or packet.sequence:
            self._emit(packet.source, talk, 0, None)
        return HeardPacket(tuple(ready), afresh)

    def _in_order(self, talk: _Talk, packet: Packet) -> list[Message]:
        ready: list[Message] = []
        if packet.message is not None and talk.received < packet.sequence <= talk.received + 2 * WINDOW:
            talk.early[packet.sequence] = packet.message
            while talk.received + 1 in talk.early:
                talk.received += 1
                ready.append(talk.early.pop(talk.received))
        return ready

    def tick(self, watched: Iterable[Identifier], *, now: float) -> list[Identifier]:
        """Send again what is late, ask who is silent, and name those who are lost."""
        lost = []
        for peer in sorted({*watched, *(peer for peer, talk in self._talks.items() if talk.waiting)}):
            talk = self._talk(peer)
            if talk.heard_at is None:
                talk.heard_at = now
            silent = now - talk.heard_at
            if silent >= self._patience.lost or len(talk.waiting) > MAX_WAITING:
                lost.append(peer)
                continue
            if talk.waiting and now - talk.sent_at >= self._patience.again:
                talk.sent_at = now
                for sequence, message in list(talk.waiting)[:WINDOW]:
                    self._emit(peer, talk, sequence, message)
            elif silent >= self._patience.beat and now - talk.asked_at >= self._patience.beat:
                self.ask(peer, now=now)
        for peer in lost:
            self.forget(peer)
        return lost

    def forget(self, peer: Identifier) -> None:
        """End a conversation; the next one has a higher epoch."""
        talk = self._talk(peer)
        talk.restart(talk.epoch + 1)
        talk.heard_at = None

    @property
    def busy(self) -> bool:
        """Whether something that was said is not acknowledged."""
        return any(talk.waiting for talk in self._talks.values())

    @property
    def size(self) -> int:
        """How many messages are kept, of both directions."""
        return sum(len(talk.waiting) + len(talk.early) for talk in self._talks.values())

    def _talk(self, peer: Identifier) -> _Talk:
        talk = self._talks.get(peer)
        if talk is None:
            talk = self._talks[peer] = _Talk()
        return talk

    def _emit(
        self, peer: Identifier, talk: _Talk, sequence: int, message: Message | None, *, asks: bool = False
    ) -> None:
        self.out.append(Packet(self._own, peer, self._life, talk.epoch, sequence, talk.received, message, asks))
