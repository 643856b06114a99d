"""Who calls: the server's side of handshakes and of signed requests.

Rules kept here:

- a request counts only inside a session that a mutual handshake over this channel has opened, signed by the key that
  opened it, for this host, within the window, and once;
- used nonces and the floor of the service's time are in the database, so a restart or a standby forgets neither;
- sessions are in memory: after a restart clients shake hands again;
- the number of sessions is limited, for one key as well; the oldest give way, which costs its owner a handshake.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from maia import database
from maia.errors import SignatureError, VerificationError
from maia.principals import Authenticated, KeyId, NonceProof, PublicKey, Signer
from maia.wire import (
    NONCE_LENGTH,
    RANDOM_LENGTH,
    WINDOW,
    Challenger,
    ServerProof,
    ServiceRequest,
    encode_octets,
    verify_request,
)

LIFETIME = timedelta(minutes=10)
MAX_SESSIONS = 10_000
MAX_SESSIONS_OF_KEY = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent this very request, and the service's time at which it counts."""

    authenticated: Authenticated
    at: datetime

    @property
    def key(self) -> PublicKey:
        """The caller's key."""
        return self.authenticated.key


@dataclass(frozen=True, slots=True)
class _Session:
    authenticated: Authenticated
    until: datetime


class ServiceSessions:
    """The handshakes and sessions of one service in one process; for any number of threads."""

    def __init__(
        self,
        signer: Signer,
        memory: database.RequestMemory,
        *,
        channel: bytes,
        clock: Callable[[], datetime],
        window: timedelta = WINDOW,
    ) -> None:
        """Serve.

        Args:
            signer: The service's key.
            memory: Remembers used nonces and the floor of time.
            channel: `channel_of` the service's certificate, or `LOOPBACK`.
            clock: Gives the time.
            window: How far a request's time may be from the service's.
        """
        self._challenger = Challenger(signer, channel=channel, secret=secrets.token_bytes(32))
        self._server = signer.public_key
        self._memory = memory
        self._clock = clock
        self._window = window
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._of_key: dict[KeyId, OrderedDict[str, None]] = {}
        self._lock = threading.Lock()

    @property
    def server(self) -> PublicKey:
        """The service's key."""
        return self._server

    def now(self) -> datetime:
        """Return the service's time, which never falls."""
        return self._memory.now(self._clock())

    def challenge(self, client: PublicKey, random: bytes) -> ServerProof:
        """Start a handshake."""
        own, nonce = secrets.token_bytes(RANDOM_LENGTH), secrets.token_bytes(RANDOM_LENGTH)
        return self._challenger.challenge(client, random, own=own, nonce=nonce, at=self.now())

    def open(self, proof: NonceProof, *, random: bytes, challenge: bytes) -> tuple[str, datetime]:
        """End a handshake: check the client's proof, once, and give it a session.

        Returns:
            The session's name and its end.

        Raises:
            VerificationError: The proof does not answer a challenge of this server over this channel, or did before.
        """
        now = self.now()
        proven = self._challenger.check(proof, random=random, challenge=challenge, at=now, window=self._window)
        # Used up only now: what has no proof costs no memory.
        until = now + self._window + self._window
        self._memory.use(proof.key.key_id, challenge[8 : 8 + RANDOM_LENGTH], until=until, at=now)
        session, end = encode_octets(secrets.token_bytes(NONCE_LENGTH)), now + LIFETIME
        with self._lock:
            mine = self._of_key.setdefault(proof.key.key_id, OrderedDict())
            while len(mine) >= MAX_SESSIONS_OF_KEY:
                self._drop(next(iter(mine)))
            while len(self._sessions) >= MAX_SESSIONS:
                self._drop(next(iter(self._sessions)))
            self._sessions[session] = _Session(proven, end)
            self._of_key.setdefault(proof.key.key_id, mine)[session] = None
        return session, end

    def authenticate(self, request: ServiceRequest) -> Caller:
        """Check a signed request and use it up.

        Raises:
            MalformedError: The request has no signature, or not in the required form.
            VerificationError: It is not signed by the session's key, not fresh, or was used before.
            UnavailableError: The database does not answer.
        """
        now = self.now()
        signed = verify_request(request, at=now, window=self._window)
        with self._lock:
            session = self._sessions.get(signed.session)
            if session is not None and session.until <= now:
                self._drop(signed.session)
                session = None
        if session is None:
            raise VerificationError("there is no such session: shake hands again", code="NO_SESSION")
        if session.authenticated.key != signed.key:
            raise SignatureError("the session is another key's", code="WRONG_KEY")
        self._memory.use(signed.key.key_id, signed.nonce, until=signed.created + self._window, at=now)
        return Caller(authenticated=session.authenticated, at=now)

    def _drop(self, session: str) -> None:
        key = self._sessions.pop(session).authenticated.key.key_id
        mine = self._of_key[key]
        del mine[session]
        if not mine:
            del self._of_key[key]
