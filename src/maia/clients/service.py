"""A client of one of Maia's services: handshake, signed requests, verified answers.

Rules kept here:

- the server is known by its key, which the caller has from its configuration; nothing the server says changes it;
- nothing is asked of a server that has not proven its key over this channel, and each answer is checked anew;
- an exchange has a limit of time and its answer one of octets; a redirect is never followed; no proxy is used;
- a peer that failed is left alone for a while (resting.py);
- an answer that is not the server's is an error and never data; all errors are Maia's.
"""

from __future__ import annotations

import json
import secrets
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import httpcore2
import httpx2

from maia import wire
from maia.clients.addresses import AddressPolicy, Resolver
from maia.clients.resting import Rest
from maia.clients.transport import Channel, ChannelChangedError, Deadline, PinnedTransport
from maia.errors import (
    DeniedError,
    MaiaError,
    MalformedError,
    NotFoundError,
    UnavailableError,
    UncheckedError,
    UsageError,
    VerificationError,
)
from maia.principals import PublicKey, Signer

_MIN_ANSWER, _MAX_ANSWER = 64 << 10, 1 << 20
_CODE_LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What one exchange may take.

    Attributes:
        seconds: From its beginning to the last octet of its answer, a handshake included.
        answer: Octets of an answer's body: from 64 KiB to 1 MiB.
    """

    seconds: float = 3.0
    answer: int = 256 << 10

    def __post_init__(self) -> None:
        """Refuse what would be no limit."""
        if not (0 < self.seconds <= 60 and _MIN_ANSWER <= self.answer <= _MAX_ANSWER):
            raise UsageError("an exchange takes up to 60 s and its answer 64 KiB to 1 MiB", code="CLIENT_LIMITS")


class ServiceClient:
    """Talks to one service as one principal; for any number of threads, one exchange at a time."""

    def __init__(
        self,
        url: str,
        *,
        signer: Signer,
        server_key: PublicKey,
        policy: AddressPolicy | None = None,
        limits: ClientLimits | None = None,
        tls: ssl.SSLContext | None = None,
        rest: Rest | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        resolver: Resolver | None = None,
    ) -> None:
        """Know a service; no connection is made yet.

        Args:
            url: The service's address, ``https://host[:port]``, or ``http://`` on this machine.
            signer: Who asks.
            server_key: The service's key.
            policy: Where connections may go; public addresses only unless given.
            limits: What one exchange may take.
            tls: Which certificate authorities are trusted; the system's unless given.
            rest: Shared by clients of one peer.
            clock: Gives the time that requests are signed with.
            resolver: Finds a name's addresses; the system's unless given.

        Raises:
            MalformedError: The address is refused.
        """
        self._policy = policy or AddressPolicy()
        self._origin = self._policy.parse(url)
        self._signer = signer
        self._server = server_key
        self._limits = limits or ClientLimits()
        self._rest = rest or Rest()
        self._clock = clock
        self._deadline = Deadline()
        self._channel = Channel()
        self._session: str | None = None
        self._lock = threading.Lock()
        transport = PinnedTransport(self._policy, self._deadline, self._channel, tls=tls, resolver=resolver)
        self._http = httpx2.Client(transport=transport, follow_redirects=False, trust_env=False)

    def __repr__(self) -> str:
        """Show the address and the server's key."""
        return f"{type(self).__name__}({self._origin.url}, {self._server.fingerprint})"

    def __enter__(self) -> Self:
        """Use it for a while."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the client may be used again."""
        with self._lock:
            self._session = None
            self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str | int] | None = None,
    ) -> object:
        """Ask the service something.

        Args:
            method: ``GET``, ``POST``, …
            path: From ``/v1/`` on; its parts are already safe for a URL.
            body: Sent as JSON.
            query: Sent in the URL.

        Returns:
            The answer's JSON, proven to be the service's answer to this request.

        Raises:
            DeniedError: The service says no.
            VerificationError: The answer is not proven to be the service's, or the service did not accept our proof.
            MalformedError: The service could not read the request.
            UsageError: The request conflicts with the service's state.
            UnavailableError: There is no answer within the limits, or the service cannot answer now.
        """
        target = path + (f"?{urlencode(query)}" if query else "")
        return _read(self._answer(method, target, b"" if body is None else _write(body)))

    def fetch(self, path: str, *, query: Mapping[str, str | int]) -> bytes:
        """Ask the service for octets; they are proven to be its answer to this request.

        Raises:
            MaiaError: As `call` does.
        """
        answer = self._answer("GET", f"{path}?{urlencode(query)}", b"")
        if answer.status_code != 200:
            _read(answer)
            raise MalformedError("an answer of another shape", code="ANSWER")
        return answer.body

    def _answer(self, method: str, target: str, content: bytes) -> wire.Answer:
        self._rest.enter()
        with self._lock:
            self._deadline.start(self._limits.seconds)
            try:
                answer = self._ask(method, target, content)
            except MaiaError:
                self._rest.failed()
                raise
            if answer.status_code in (429, 503):
                self._rest.failed()
            else:
                self._rest.answered()
        return answer

    def _ask(self, method: str, target: str, content: bytes) -> wire.Answer:
        """Ask inside a session; where it is gone, or the server's certificate has changed, shake hands once more."""
        if self._session is not None:
            try:
                answer = self._ask_in_session(method, target, content)
            except ChannelChangedError:
                answer = None
            if answer is not None and not _lacks_session(answer):
                return answer
        self._shake_hands()
        try:
            return self._ask_in_session(method, target, content)
        except ChannelChangedError as error:
            raise UnavailableError("the service changes its certificate all the time", code="PEER_GARBLED") from error

    def _ask_in_session(self, method: str, target: str, content: bytes) -> wire.Answer:
        request = wire.ServiceRequest(method=method, url=self._origin.url + target, body=content)
        if self._session is None:
            raise UncheckedError("there is no session", code="NO_SESSION")
        nonce = secrets.token_bytes(wire.NONCE_LENGTH)
        wire.sign_request(request, self._signer, session=self._session, nonce=nonce, at=self._clock())
        answer = self._exchange(request)
        wire.verify_answer(answer, self._server)
        return answer

    def _shake_hands(self) -> None:
        self._session = self._channel.expected = None
        random, key = secrets.token_bytes(wire.RANDOM_LENGTH), wire.encode_key(self._signer.public_key)
        offer = self._ask_openly("/v1/challenge", {"key": key, "nonce": wire.encode_octets(random)})
        proof = wire.answer_challenge(
            wire.ServerProof(
                challenge=_octets(offer, "challenge", wire.CHALLENGE_LENGTH),
                nonce=_octets(offer, "nonce", wire.RANDOM_LENGTH),
                signature=_octets(offer, "proof", 64),
            ),
            signer=self._signer,
            server=self._server,
            random=random,
            own_nonce=(own := secrets.token_bytes(wire.RANDOM_LENGTH)),
            channel=self._channel.seen,
        )
        self._channel.expected = self._channel.seen
        given = self._ask_openly(
            "/v1/session",
            {
                "key": key,
                "nonce": wire.encode_octets(random),
                "challenge": _text(offer, "challenge"),
                "own_nonce": wire.encode_octets(own),
                "proof": wire.encode_octets(proof.signature),
            },
        )
        self._session = wire.encode_octets(_octets(given, "session", wire.NONCE_LENGTH))

    def _ask_openly(self, path: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Ask a question of the handshake, whose answers are not signed: only the proofs in them count."""
        answer = self._exchange(wire.ServiceRequest(method="POST", url=self._origin.url + path, body=_write(body)))
        if answer.status_code in (429, 503):
            raise UnavailableError("the service cannot answer now", code="PEER_UNAVAILABLE")
        if answer.status_code != 200:
            raise VerificationError("the service refuses the handshake", code="HANDSHAKE_REFUSED")
        value = _read(answer)
        if not isinstance(value, dict):
            raise MalformedError("an answer of another shape", code="ANSWER")
        return value

    def _exchange(self, request: wire.ServiceRequest) -> wire.Answer:
        """Send a request and read its answer, all of it, within the limits."""
        if request.body:
            request.headers["content-type"] = "application/json"
        request.headers["accept-encoding"] = "identity"
        try:
            with self._http.stream(
                request.method, request.url, content=request.body, headers=dict(request.headers)
            ) as answer:
                if answer.is_redirect or 300 <= answer.status_code < 400:
                    raise UncheckedError("the service sends elsewhere; it is not followed", code="ANSWER_REDIRECTS")
                if answer.headers.get("content-encoding", "identity").lower() != "identity":
                    raise UncheckedError("the service packs its answer", code="ANSWER_PACKED")
                parts, size = [], 0
                for part in answer.iter_raw():
                    size += len(part)
                    if size > self._limits.answer:
                        raise UncheckedError("the service's answer is too large", code="ANSWER_TOO_LARGE")
                    parts.append(part)
                fields = wire.Fields(answer.headers.multi_items())
        except ChannelChangedError:
            raise
        except (httpcore2.TimeoutException, httpx2.TimeoutException) as error:
            raise UnavailableError("the service took too long", code="PEER_TIMEOUT") from error
        except (httpcore2.ProtocolError, httpx2.ProtocolError, httpx2.InvalidURL, UnicodeError) as error:
            raise UnavailableError("the service does not speak HTTP", code="PEER_GARBLED") from error
        except (httpcore2.NetworkError, httpx2.HTTPError, ssl.SSLError, OSError) as error:
            raise UnavailableError("the service cannot be reached", code="PEER_UNAVAILABLE") from error
        return wire.Answer(status_code=answer.status_code, headers=fields, body=b"".join(parts), request=request)


def _write(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _read(answer: wire.Answer) -> object:
    """Read an answer's JSON, or raise the refusal that it is."""
    status = answer.status_code
    if status == 204:
        return None
    value = wire.read_json(answer.body) if answer.body else None
    if 200 <= status < 300:
        return value
    code, detail = "REFUSED", "the service refuses"
    if isinstance(value, dict):
        code = safe_code(value.get("code"))
        detail = safe_text(value.get("detail") or value.get("title") or detail)
    raise error_of(status, detail, code)


def error_of(status: int, detail: str, code: str) -> MaiaError:
    """Make the error that a service's refusal is."""
    if status == 401:
        return VerificationError(detail, code=code)
    if status == 403:
        return DeniedError(detail, code=code)
    if status == 404:
        return NotFoundError(detail, code=code)
    if status == 409:
        return UsageError(detail, code=code)
    if status in (400, 405, 413, 415, 422):
        return MalformedError(detail, code=code)
    return UnavailableError(detail, code=code)


def _lacks_session(answer: wire.Answer) -> bool:
    return answer.status_code == 401 and b'"NO_SESSION"' in answer.body


def safe_code(code: object) -> str:
    """Take a code from a service, if it is one."""
    text = code if isinstance(code, str) else ""
    fits = 0 < len(text) <= _CODE_LENGTH and text.isascii() and text.replace("_", "A").isalnum() and text.isupper()
    return text if fits else "REFUSED"


def safe_text(text: object) -> str:
    """Take a message from a service, in one line of bounded length."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)[:500])


def _text(table: Mapping[str, object], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str):
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return value


def _octets(table: Mapping[str, object], name: str, length: int) -> bytes:
    return wire.decode_octets(_text(table, name), length=length)
