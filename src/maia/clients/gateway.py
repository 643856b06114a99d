"""A client of a domain's gateway: the five operations over one connection, without Spark.

    with connect("https://gateway.example", key=signer, server=broker_key) as gateway:
        gateway.publish([{"ward": "A", "value": 7}], "clinic.Result")

Rules kept here:

- the broker proves its key over this very channel, and is the one that was asked for or may connect to the network that
  was named, by what it shows; before that nothing is asked of it, and no proof is given to it;
- certificates go out with the request that needs them, and no earlier;
- what is acknowledged is in the log; a publication that bears a name may be sent again, and counts once;
- all errors are Maia's.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_socket
from websockets.typing import Subprotocol

from maia import wire
from maia.authority import Action, StatementBook, Verifier, ask_network, parse_statement, verify_statement
from maia.clients.addresses import AddressPolicy, Resolver
from maia.clients.frames import Conversation
from maia.clients.subscription import GatewaySubscription
from maia.errors import MalformedError, RowsRefusedError, UnavailableError, UsageError, VerificationError
from maia.events import Value, value_to_json
from maia.principals import Principal, PublicKey, Signer

_MAX_RECEIVED = 32 << 20
_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPositions:
    """Rows of a request that went no further: their positions, the code, and the column at fault."""

    code: str
    column: str | None
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """What became of the rows of a request; what is published is in the log.

    Attributes:
        publication: Its name.
        commit: The commit of the log that holds it, perhaps with others; none when nothing was published.
        events: How many of the rows are in the log now.
        refused: The others.
        repeated: Whether it had been published before.
    """

    publication: str
    commit: int | None
    events: int
    refused: tuple[RefusedPositions, ...] = ()
    repeated: bool = False


def connect(
    address: str,
    *,
    key: Signer,
    server: PublicKey | None = None,
    network: tuple[Principal, str] | None = None,
    credentials: Iterable[bytes] = (),
    policy: AddressPolicy | None = None,
    tls: ssl.SSLContext | None = None,
    seconds: float = _SECONDS,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    resolver: Resolver | None = None,
) -> GatewayClient:
    """Connect to a gateway, as a client of its domain: both sides prove their keys.

    Args:
        address: ``https://host[:port]``, or ``http://`` on this machine where the policy allows it.
        key: The client's key.
        server: The broker's key, when it is known beforehand.
        network: The network, by its owner and name, that the broker must be allowed to connect to.
        credentials: The certificates that let the client connect, where the broker has not got them.
        policy: Where connections may go; public addresses only unless given.
        tls: Which certificate authorities are trusted; the system's unless given.
        seconds: How long connecting, and each request, may take.
        clock: Gives the time at which the broker's certificates must hold.
        resolver: Finds a name's addresses; the system's unless given.

    Raises:
        UsageError: Neither a broker nor a network is named: ``SERVER_UNKNOWN``.
        VerificationError: The broker does not prove its key, is another, or is not in the network.
        DeniedError: The broker does not let this client in.
        UnavailableError: It cannot be reached, or does not answer in time.
    """
    if server is None and network is None:
        raise UsageError("say which broker, or which network it is in: anybody can listen", code="SERVER_UNKNOWN")
    allowed, end = policy or AddressPolicy(), time.monotonic() + seconds
    connection = _open(allowed.parse(address).url, allowed, tls, seconds, resolver)
    talk = Conversation(connection, seconds=seconds)
    try:
        peer = connection.socket
        certificate = peer.getpeercert(True) if isinstance(peer, ssl.SSLSocket) else None
        channel = wire.LOOPBACK if certificate is None else wire.channel_of(certificate)
        asked = _Asked(key=key, server=server, network=network, credentials=tuple(credentials))
        return _shake_hands(talk, asked, channel, end=end, at=clock())
    except BaseException:
        talk.close()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Who connects, and to whom."""

    key: Signer
    server: PublicKey | None
    network: tuple[Principal, str] | None
    credentials: tuple[bytes, ...]


def _shake_hands(talk: Conversation, asked: _Asked, channel: bytes, *, end: float, at: datetime) -> GatewayClient:
    """Let the broker prove its key and its place in the network, and only then prove the client's."""
    random, own = secrets.token_bytes(wire.RANDOM_LENGTH), secrets.token_bytes(wire.RANDOM_LENGTH)
    talk.say("hello", key=wire.encode_key(asked.key.public_key), nonce=wire.encode_octets(random))
    offer = talk.hear("challenge", seconds=end - time.monotonic())
    broker = wire.decode_key(_text(offer, "key"))
    if asked.server is not None and broker != asked.server:
        raise VerificationError("the gateway is another broker's", code="WRONG_SERVER")
    proof = wire.answer_challenge(
        wire.ServerProof(
            challenge=wire.decode_octets(_text(offer, "challenge"), length=wire.CHALLENGE_LENGTH),
            nonce=wire.decode_octets(_text(offer, "nonce"), length=wire.RANDOM_LENGTH),
            signature=wire.decode_octets(_text(offer, "proof"), length=64),
        ),
        signer=asked.key, server=broker, random=random, own_nonce=own, channel=channel,
    )  # fmt: skip
    if asked.network is not None:
        _check_network(broker, asked.network, offer, at=at)
    talk.say(
        "prove", own_nonce=wire.encode_octets(own), proof=wire.encode_octets(proof.signature),
        **_shown(asked.credentials),
    )  # fmt: skip
    welcome = talk.hear("welcome", seconds=end - time.monotonic())
    return GatewayClient(talk, name=_text(welcome, "client"), server=broker)


class GatewayClient:
    """One client's connection to its broker; for any number of threads. Only `connect` makes one.

    Attributes:
        name: What the domain calls the client.
        server: The broker's key.
    """

    def __init__(self, talk: Conversation, *, name: str, server: PublicKey) -> None:
        """Take a connection over which both keys were proven."""
        self._talk = talk
        self.name = name
        self.server = server
        self._talk.start()

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connection; the broker remembers subscriptions and advertisements."""
        self._talk.close()

    def advertise(
        self,
        type: str | bytes,  # noqa: A002 - as everywhere
        *,
        version: str | None = None,
        where: str | None = None,
        credentials: Iterable[bytes] = (),
    ) -> None:
        """Say that this client will publish a type, by name or by its signed definition.

        Args:
            type: ``owner/name@version`` with what is clear left out, or the definition.
            version: Which version, when the type does not say.
            where: What will be published, as a filter whose constraints are alternatives.
            credentials: The certificates that prove the right, where the broker has not got them.

        Raises:
            MaiaError: The client or the broker has no right.
        """
        self._talk.ask(
            "advertise", "done", **_named(type), **_given(version=version, where=where), **_shown(credentials)
        )

    def unadvertise(self, type: str, *, version: str | None = None) -> None:  # noqa: A002 - as everywhere
        """Take back what was advertised.

        Raises:
            DeniedError: Nothing of it was advertised: ``NOT_ADVERTISED``.
        """
        self._talk.ask("unadvertise", "done", type=type, **_given(version=version))

    def publish(
        self,
        rows: Sequence[Mapping[str, Value]],
        type: str,  # noqa: A002 - as everywhere
        *,
        version: str | None = None,
        publication: str | None = None,
    ) -> Acknowledged:
        """Publish rows; what is acknowledged is in the log.

        Args:
            rows: Attributes by name.
            type: ``owner/name@version`` with what is clear left out.
            version: Which version, when the type does not say.
            publication: Names it: sent again under this name it counts once.

        Raises:
            RowsRefusedError: Every row was refused, so that nothing is published.
            MaiaError: The client or the broker has no right, or too much is asked at once.
        """
        sent = [{name: value_to_json(value) for name, value in row.items()} for row in rows]
        found = self._talk.ask(
            "publish", "published", type=type, rows=sent, **_given(version=version, publication=publication)
        )
        done = _acknowledged(found)
        if done.refused and not done.events:
            why = ", ".join(f"{item.code} in `{item.column}`" if item.column else item.code for item in done.refused)
            raise RowsRefusedError(f"every row is refused, so nothing is published: {why}", published=done)
        return done

    def subscribe(
        self,
        type: str | bytes,  # noqa: A002 - as everywhere
        *,
        where: str = "",
        callback: Callable[[dict[str, Any]], None] | None = None,
        name: str | None = None,
        version: str | None = None,
        after: str = "",
        window: int = 1000,
        credentials: Iterable[bytes] = (),
    ) -> GatewaySubscription:
        """Follow a type as this client may see it, or go on with a subscription from a place.

        Args:
            type: ``owner/name@version`` with what is clear left out, or its signed definition.
            where: The client's filter; it may speak of attributes that are open to the client.
            callback: Called with each event, in a thread of its own; without it the subscription is iterated over.
            name: The broker remembers it under this name; made of client, type and filter by default.
            version: Which version to see events as, when the type does not say.
            after: The place from which to go on: ``after`` of the subscription as it was.
            window: How many events may be under way or wait here.
            credentials: The certificates that prove the right, where the broker has not got them.

        Raises:
            MaiaError: The client has no right, or not any more; the filter is refused; or the place is not of this
                broker's outbox.
        """
        if not 1 <= window <= wire.MAX_CREDIT:
            raise UsageError(f"a window is of 1 to {wire.MAX_CREDIT} events", code="OPTION_VALUE")
        called = name or _default_name(self.name, type, version, where)
        made = GatewaySubscription(self._talk, called, after=after, window=window, callback=callback)
        self._talk.follow(made)
        try:
            found = self._talk.ask(
                "subscribe", "subscribed", name=called, where=where, after=after, credit=window,
                **_named(type), **_given(version=version), **_shown(credentials),
            )  # fmt: skip
        except BaseException:
            self._talk.forget(called)
            raise
        made.begin(_text(found, "after"))
        return made

    def unsubscribe(self, subscription: GatewaySubscription | str) -> None:
        """End a subscription: the broker remembers it no longer, and delivers nothing more to it.

        Raises:
            NotFoundError: There is none: ``NO_SUBSCRIPTION``.
            DeniedError: It is somebody else's: ``NOT_YOUR_SUBSCRIPTION``.
        """
        name = subscription if isinstance(subscription, str) else subscription.name
        self._talk.ask("unsubscribe", "done", name=name)
        self._talk.forget(name)


def _open(
    url: str, policy: AddressPolicy, tls: ssl.SSLContext | None, seconds: float, resolver: Resolver | None
) -> ClientConnection:
    """Open a connection to an address that was checked."""
    place = policy.parse(url)
    secure = place.scheme == "https"
    problem: Exception | None = None
    for address in policy.resolve(place.host, place.port, seconds=seconds, resolver=resolver):
        try:
            raw = socket.create_connection((address, place.port), timeout=seconds)
            made = connect_socket(
                f"{'wss' if secure else 'ws'}://{place.authority}{wire.GATEWAY_PATH}",
                sock=raw, ssl=(tls or ssl.create_default_context()) if secure else None, proxy=None, compression=None,
                subprotocols=[Subprotocol(wire.JSON_PROTOCOL)], open_timeout=seconds, close_timeout=1.0,
                max_size=_MAX_RECEIVED, user_agent_header=None,
            )  # fmt: skip
            return ExitStack().enter_context(made)  # it is open until `Conversation.close`
        except (OSError, WebSocketException, TimeoutError) as error:
            problem = error
    raise UnavailableError("the gateway cannot be reached", code="PEER_UNAVAILABLE") from problem


def _check_network(
    broker: PublicKey, network: tuple[Principal, str], offer: Mapping[str, Any], *, at: datetime
) -> None:
    """Refuse a broker that does not prove that it may connect to a network.

    Raises:
        VerificationError: It does not.
    """
    book = StatementBook()
    for raw in _blobs(offer, "statements"):
        book.accept_unless_known(verify_statement(parse_statement(raw)))
    request = ask_network(Action.CONNECT, *network)
    Verifier(statements=book).verify(request, principal=broker, evidence=_blobs(offer, "certificates"), at=at)


def _blobs(offer: Mapping[str, Any], name: str) -> tuple[bytes, ...]:
    items = offer.get(name, [])
    if not isinstance(items, list) or len(items) > 256 or not all(isinstance(item, str) for item in items):
        raise MalformedError(f"`{name}` is no list of octets", code="ANSWER")
    return tuple(wire.decode_blob(item, limit=256 << 10) for item in items)


def _acknowledged(found: Mapping[str, Any]) -> Acknowledged:
    try:
        refused = tuple(
            RefusedPositions(code=str(item["code"]), column=item["column"], rows=tuple(item["rows"]))
            for item in found["refused"]
        )
        return Acknowledged(
            publication=str(found["publication"]), commit=found["commit"], events=int(found["events"]),
            refused=refused, repeated=bool(found["repeated"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedError("an answer of another shape", code="ANSWER") from error


def _named(type_: str | bytes) -> dict[str, str]:
    return {"type": type_} if isinstance(type_, str) else {"definition": wire.encode_octets(type_)}


def _given(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


def _shown(credentials: Iterable[bytes]) -> dict[str, list[str]]:
    shown = [wire.encode_octets(raw) for raw in credentials]
    return {"credentials": shown} if shown else {}


def _default_name(client: str, type_: str | bytes, version: str | None, where: str) -> str:
    what = repr((client, type_, version, where)).encode()
    return f"{client} {hashlib.sha256(what).hexdigest()[:16]}"


def _text(frame: Mapping[str, Any], name: str) -> str:
    value = frame.get(name)
    if not isinstance(value, str):
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return value
