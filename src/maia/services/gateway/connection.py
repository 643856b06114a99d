"""One client's connection: the handshake, its requests, and the events of the subscriptions that it follows.

Rules kept here:

- nothing is done for a client before both sides have proven their keys over this connection, and it may connect;
- before that its frames are small, and a large one is read beside the loop that serves the others;
- a proof answers this connection's random number, so that one that was overheard is worth nothing;
- a frame that cannot be read is answered with its code, and the connection ends;
- events are sent while the client has given credit for them. None wait in memory: what is not sent stays in the outbox,
  so a slow client costs itself, and whoever is cut off goes on from its place;
- each piece of events is judged by the rights of its moment: a right that ended ends the subscription here, with its
  code; a doubt waits.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from maia.domain import OutboxPlace, ProvenClient
from maia.errors import (
    DeniedError,
    MaiaError,
    NotFoundError,
    UnavailableError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.log import hash_subscription
from maia.principals import NonceProof, public_key
from maia.services.gateway import broker
from maia.services.gateway.refusals import BUSY, refusal_of
from maia.wire import (
    JSON_PROTOCOL,
    MAX_CREDIT,
    MAX_HELLO,
    MAX_PROVE,
    RANDOM_LENGTH,
    FrameError,
    GatewayFrame,
    Problem,
    authentication_problem,
    encode_key,
    encode_octets,
    problem_frame,
    read_frame,
    write_frame,
)

if TYPE_CHECKING:
    from maia.services.gateway.gateway import Gateway

_PROTOCOL_ERROR, _POLICY, _TOO_BUSY, _SLOW = 1002, 1008, 1013, 1008
_AGAIN_SECONDS = 1.0
_READ_BESIDE = 16 << 10
_log = logging.getLogger(__name__)


class _EndError(Exception):
    """Ends the connection, with what the client is told."""

    def __init__(self, problem: Problem, code: int = _POLICY, *, number: int | None = None) -> None:
        super().__init__(problem.code)
        self.problem, self.code, self.number = problem, code, number


@dataclass(slots=True, eq=False)
class FollowedSubscription:
    """A subscription that this connection follows.

    Attributes:
        name: Its name.
        place: How far the client was sent its events.
        credit: How many more it wants now.
        judge: Whether its right is to be judged although there is nothing to send.
        look: Set when there may be something to do.
        task: Sends it.
    """

    name: str
    place: OutboxPlace
    credit: int = 0
    judge: bool = False
    look: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Connection:
    """Serves one client until it goes."""

    def __init__(self, gateway: Gateway, socket: WebSocket) -> None:
        """Take a connection that was not accepted yet."""
        self._gateway = gateway
        self._socket = socket
        self._limits = gateway.limits
        self._followed: dict[str, FollowedSubscription] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve, and say why when it ends by the gateway's will."""
        if JSON_PROTOCOL not in self._socket.scope["subprotocols"]:
            await self._socket.close()
            return
        await self._socket.accept(subprotocol=JSON_PROTOCOL)
        try:
            await self._serve()
        except _EndError as end:
            await self._end(end)
        except MaiaError as error:
            await self._end(_EndError(refusal_of(error), _TOO_BUSY))
        except (WebSocketDisconnect, TimeoutError):
            await self._close(_SLOW)
        except Exception:  # noqa: BLE001 - the last line of defence: even a bug is answered, and says nothing
            _log.exception("a connection failed")
            await self._end(_EndError(Problem(status=500, code="INTERNAL"), 1011))
        finally:
            await self._let_go()

    async def _serve(self) -> None:
        with self._gateway.room.unproven():
            try:
                async with asyncio.timeout(self._limits.handshake_seconds):
                    client = await self._shake_hands()
            except TimeoutError:
                raise _EndError(Problem(status=408, code="HANDSHAKE_TOO_SLOW")) from None
        with self._gateway.room.of_key(client):
            limits = {"frame": self._gateway.max_frame, "in_flight": self._limits.in_flight, "credit": MAX_CREDIT}
            await self._send(write_frame("welcome", client=client.name, limits=limits))
            while True:
                await self._take(client, *await self._next())

    # -- the handshake

    async def _shake_hands(self) -> ProvenClient:
        gateway, hello = self._gateway, await self._expect("hello", MAX_HELLO)
        try:
            key = public_key(hello.fields["key"])
        except MaiaError as error:
            raise _EndError(authentication_problem(error)) from error
        random = hello.fields["nonce"]
        own, nonce = secrets.token_bytes(RANDOM_LENGTH), secrets.token_bytes(RANDOM_LENGTH)
        offer = gateway.challenger.challenge(key, random, own=own, nonce=nonce, at=gateway.clock())
        shown = await gateway.credentials()
        await self._send(
            write_frame(
                "challenge", key=encode_key(gateway.key), challenge=encode_octets(offer.challenge),
                nonce=encode_octets(offer.nonce), proof=encode_octets(offer.signature),
                certificates=[encode_octets(raw) for raw in shown.certificates],
                statements=[encode_octets(raw) for raw in shown.statements],
            )
        )  # fmt: skip
        answer = await self._expect("prove", MAX_PROVE)
        proof = NonceProof(key, answer.fields["own_nonce"], answer.fields["proof"])
        try:
            proven = gateway.challenger.check(proof, random=random, challenge=offer.challenge, at=gateway.clock())
        except VerificationError as error:
            await gateway.tell_unproven(key, error.code)
            raise _EndError(authentication_problem(error)) from error
        try:
            return await gateway.sessions.run(broker.admit, proven, answer.fields.get("credentials", ()))
        except (UsageError, NotFoundError) as error:  # a stranger, or a key of the domain's own services
            await gateway.tell_unproven(key, error.code)
            raise _EndError(refusal_of(DeniedError("no client of this domain has this key"))) from error
        except MaiaError as error:
            await gateway.tell_unproven(key, error.code)
            raise _EndError(refusal_of(error)) from error

    async def _expect(self, operation: str, most: int) -> GatewayFrame:
        frame, _ = await self._next(most)
        if frame.operation != operation:
            raise _EndError(Problem(status=401, code="NOT_AUTHENTICATED", detail="prove your key first"))
        return frame

    # -- requests

    async def _next(self, most: int | None = None) -> tuple[GatewayFrame, int]:
        """Give the next frame, of at most so many octets, and its size."""
        try:
            async with asyncio.timeout(None if self._followed else self._limits.idle_seconds):
                message = await self._socket.receive()
        except TimeoutError:
            raise _EndError(Problem(status=408, code="IDLE")) from None
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        text = message.get("text")
        if text is None:
            raise _EndError(Problem(status=400, code="FRAME", detail="a frame is text in UTF-8"), _PROTOCOL_ERROR)
        data = text.encode()
        if most is not None and len(data) > most:
            told = Problem(status=400, code="FRAME", detail=f"before the key is proven this has at most {most} octets")
            raise _EndError(told, _PROTOCOL_ERROR)
        try:
            small = len(data) <= _READ_BESIDE
            return read_frame(data) if small else await asyncio.to_thread(read_frame, data), len(data)
        except FrameError as error:
            told = Problem(status=400, code=error.code, detail=error.message)
            raise _EndError(told, _PROTOCOL_ERROR, number=error.number) from error

    async def _take(self, client: ProvenClient, frame: GatewayFrame, octets: int) -> None:
        """Begin to answer a request; others are taken meanwhile, within the limits."""
        if frame.operation == "credit":
            self._give_credit(frame)
            return
        if frame.number is None:
            raise _EndError(Problem(status=400, code="FRAME", detail="the handshake is over"), _PROTOCOL_ERROR)
        if len(self._answering) >= self._limits.in_flight:
            await self._send(problem_frame(Problem(status=429, code=BUSY), number=frame.number))
            return
        task = asyncio.create_task(self._answer(client, frame, octets))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, client: ProvenClient, frame: GatewayFrame, octets: int) -> None:
        try:
            with self._gateway.places.take(octets):
                text = await self._perform(client, frame)
        except MaiaError as error:
            text = problem_frame(refusal_of(error), number=frame.number)
        except Exception:  # noqa: BLE001 - even a bug is answered, and says nothing
            _log.exception("a request failed")
            text = problem_frame(Problem(status=500, code="INTERNAL"), number=frame.number)
        with suppress(WebSocketDisconnect, TimeoutError, RuntimeError):
            await self._send(text)
            followed = self._followed.get(frame.fields.get("name", ""))
            if frame.operation == "subscribe" and followed is not None:
                followed.look.set()  # events come behind the answer

    async def _perform(self, client: ProvenClient, frame: GatewayFrame) -> str:
        """Do what a request asks for, in a thread, and write its answer."""
        sessions, fields = self._gateway.sessions, frame.fields
        if frame.operation == "publish":
            done = await self._gateway.groups.publish(
                client, fields["rows"], type=fields["type"], version=fields.get("version"),
                publication=fields.get("publication"),
            )  # fmt: skip
            return write_frame("published", id=frame.number, **done.to_json())
        if frame.operation == "subscribe":
            place = await self._follow(client, frame)
            return write_frame("subscribed", id=frame.number, name=fields["name"], after=str(place))
        if frame.operation == "unsubscribe":
            await sessions.run(broker.unsubscribe, client, fields)
            await self._unfollow(fields["name"])
        elif frame.operation == "advertise":
            await sessions.run(broker.advertise, client, fields)
        else:
            await sessions.run(broker.unadvertise, client, fields)
        return write_frame("done", id=frame.number)

    # -- events

    async def _follow(self, client: ProvenClient, frame: GatewayFrame) -> OutboxPlace:
        name = frame.fields["name"]
        if name in self._followed:
            raise UsageError(f"`{name[:100]}` is followed by this connection already", code="SUBSCRIPTION_OPEN")
        if len(self._followed) >= self._limits.subscriptions:
            raise UsageError(
                f"a connection follows at most {self._limits.subscriptions} subscriptions",
                code="TOO_MANY_SUBSCRIPTIONS",
            )
        followed = self._followed[name] = FollowedSubscription(name, OutboxPlace(), frame.fields.get("credit", 0))
        try:
            followed.place = await self._gateway.sessions.run(broker.subscribe, client, frame.fields)
        except BaseException:
            self._followed.pop(name, None)
            raise
        followed.task = asyncio.create_task(self._feed(client, followed))
        self._gateway.followers.add(hash_subscription(name), followed)
        self._gateway.pump.nudge()
        return followed.place

    def _give_credit(self, frame: GatewayFrame) -> None:
        followed = self._followed.get(frame.fields["name"])
        if followed is not None:  # one that ended meanwhile needs none
            had, followed.credit = followed.credit, min(MAX_CREDIT, followed.credit + frame.fields["events"])
            if not had:  # with credit left it looks when there is something new, however often credit comes
                followed.look.set()

    async def _feed(self, client: ProvenClient, followed: FollowedSubscription) -> None:
        """Send events while there are any, and credit for them."""
        try:
            while True:
                await followed.look.wait()
                followed.look.clear()
                if followed.judge:
                    await self._judge(client, followed)
                while followed.credit and await self._send_piece(client, followed):
                    pass
        except (MaiaError, UnicodeError, ValueError) as error:
            told = refusal_of(error) if isinstance(error, MaiaError) else Problem(status=500, code="INTERNAL")
            self._forget(followed)
            with suppress(WebSocketDisconnect, TimeoutError, RuntimeError):
                await self._send(write_frame("ended", name=followed.name, status=told.status, code=told.code))
        except (WebSocketDisconnect, TimeoutError, RuntimeError):
            await self._close(_SLOW)  # it does not read what it asked for

    async def _judge(self, client: ProvenClient, followed: FollowedSubscription) -> None:
        """Ask whether the client still has its right, when something about rights has changed.

        Raises:
            MaiaError: It has not, or the subscription is gone.
        """
        followed.judge = False
        try:
            await self._gateway.delivery.run(broker.judge, client, followed.name)
        except NotFoundError:
            raise
        except (UncheckedError, UnavailableError) as error:
            _log.info("a right is in doubt: %s", error.code)

    async def _send_piece(self, client: ProvenClient, followed: FollowedSubscription) -> bool:
        """Send one frame of events; false when there is nothing to send.

        Raises:
            MaiaError: The client has no right any more, or the subscription is gone.
        """
        try:
            piece = await self._gateway.delivery.run(
                broker.next_piece, client, followed.name, after=followed.place, most=followed.credit
            )
        except NotFoundError:
            raise
        except (UncheckedError, UnavailableError) as error:
            _log.info("events wait: %s", error.code)
            await asyncio.sleep(_AGAIN_SECONDS)
            return True
        if not piece.text:
            return False
        followed.credit -= piece.events
        followed.place = piece.place
        await self._send(piece.text)
        return True

    async def _unfollow(self, name: str) -> None:
        followed = self._followed.get(name)
        if followed is not None:
            self._forget(followed)
            await _stopped(followed.task)

    def _forget(self, followed: FollowedSubscription) -> None:
        self._followed.pop(followed.name, None)
        self._gateway.followers.discard(hash_subscription(followed.name), followed)

    # -- the socket

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(self._limits.send_seconds):
            await self._socket.send_text(text)

    async def _end(self, end: _EndError) -> None:
        with suppress(WebSocketDisconnect, TimeoutError, RuntimeError):
            await self._send(problem_frame(end.problem, number=end.number))
        await self._close(end.code)

    async def _close(self, code: int) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(WebSocketDisconnect, TimeoutError, RuntimeError):
                async with asyncio.timeout(self._limits.send_seconds):
                    await self._socket.close(code)

    async def _let_go(self) -> None:
        for followed in list(self._followed.values()):
            self._forget(followed)
            await _stopped(followed.task)
        for task in list(self._answering):
            await _stopped(task)


async def _stopped(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
