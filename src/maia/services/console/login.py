"""Logging in by key: challenges, their answers, and addresses that are good once.

Rules kept here:

- a challenge is of this process, for a few minutes, and answered once; whoever has proven nothing costs no memory;
- an answer is checked against the host that the browser or the command says it speaks to, the broker's key, and the
  wish to look or to change, so that one for another host or with another wish is refused;
- an address that logs in is good once and for two minutes, and only who proved a key is given one;
- nothing but a proven key that oversees the domain is remembered, and only so many at once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from maia.errors import ExpiredError, SignatureError, UnavailableError, VerificationError
from maia.principals import Authenticated, KeyId, NonceProof, PublicKey, check_nonce_proof
from maia.wire import LOGIN_LENGTH, LoginChallenge, encode_octets

WINDOW = timedelta(minutes=5)
"""How long a challenge may wait for its answer."""
ONCE = timedelta(minutes=2)
"""How long an address that logs in once is good."""
_MOST = 10_000
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A key that was proven, and what for."""

    proof: Authenticated
    changes: bool


class LoginDesk:
    """Lets keys in, from any number of threads."""

    def __init__(self, console: KeyId, hosts: frozenset[str]) -> None:
        """Speak for a console.

        Args:
            console: The identity of the broker's key.
            hosts: The hosts that the console is, with ports, in small letters.
        """
        self._console, self._hosts = console, hosts
        self._secret = secrets.token_bytes(32)
        self._used: dict[bytes, datetime] = {}
        self._once: dict[bytes, tuple[Login, datetime]] = {}
        self._lock = threading.Lock()

    def challenge(self, *, at: datetime) -> bytes:
        """Make a challenge."""
        start = ((at - _EPOCH) // _MILLISECOND).to_bytes(8, "big") + secrets.token_bytes(32)
        return start + self._mark(start)

    def check(
        self, proof: NonceProof, challenge: LoginChallenge, *, oversees: Callable[[PublicKey], object], at: datetime
    ) -> Login:
        """Check the answer to a challenge, and use the challenge up.

        Args:
            proof: The answer.
            challenge: What was asked, as the browser or the command says.
            oversees: Raises when a key oversees nothing.
            at: Now.

        Raises:
            DeniedError: The key oversees nothing.
            SignatureError: It is not a challenge of this console, not for this host, or not answered by this key.
            ExpiredError: It is too old.
            VerificationError: It was answered before.
        """
        if challenge.host.lower() not in self._hosts:
            raise SignatureError("the answer is for another host", code="WRONG_HOST")
        octets = challenge.challenge
        start, mark = octets[:40], octets[40:]
        if len(octets) != LOGIN_LENGTH or not hmac.compare_digest(mark, self._mark(start)):
            raise SignatureError("the challenge is not of this console", code="UNKNOWN_CHALLENGE")
        made = _EPOCH + int.from_bytes(start[:8], "big") * _MILLISECOND
        if not made <= at + _MILLISECOND <= made + WINDOW:
            raise ExpiredError("the challenge is too old; take a new one", code="STALE_REQUEST")
        proven = check_nonce_proof(proof, audience=self._console, challenge=challenge.bound)
        # SECURITY: an answer that opens nothing is not remembered: anybody makes keys, and would fill the memory.
        oversees(proven.key)
        with self._lock:
            self._used = {used: until for used, until in self._used.items() if until > at}
            if octets in self._used:
                raise VerificationError("the challenge was answered before; take a new one", code="REPLAY")
            self._check_room(len(self._used))
            self._used[octets] = made + WINDOW + _MILLISECOND
        return Login(proof=proven, changes=challenge.changes)

    def keep(self, login: Login, *, at: datetime) -> str:
        """Keep a login for an address that is good once; return what the address has to show."""
        token = encode_octets(secrets.token_bytes(32))
        with self._lock:
            self._once = {kept: item for kept, item in self._once.items() if item[1] > at}
            self._check_room(len(self._once))
            self._once[_digest(token)] = (login, at + ONCE)
        return token

    def find(self, token: str, *, at: datetime) -> Login | None:
        """Give the login that an address stands for, without using the address up."""
        with self._lock:
            found = self._once.get(_digest(token))
        return None if found is None or found[1] <= at else found[0]

    def take(self, token: str, *, at: datetime) -> Login:
        """Use an address up.

        Raises:
            VerificationError: It was used, or is too old, or is none.
        """
        with self._lock:
            found = self._once.pop(_digest(token), None)
        if found is None or found[1] <= at:
            raise VerificationError("this address was used or is too old; run `maia login` again", code="REPLAY")
        return found[0]

    def _mark(self, start: bytes) -> bytes:
        return hmac.digest(self._secret, start, hashlib.sha256)

    def _check_room(self, count: int) -> None:
        if count >= _MOST:
            # SECURITY: forgetting one to make room would let it be used twice.
            raise UnavailableError("too many logins at once; try again", code="TOO_MANY_REQUESTS")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
