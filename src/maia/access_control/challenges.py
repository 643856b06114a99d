"""Random numbers for those who prove a key: each serves once, for a minute; nothing of it is kept in the database."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from datetime import datetime, timedelta
from threading import Lock

from maia.errors import VerificationError
from maia.principals import Authenticated, KeyId, NonceProof, check_aware, check_nonce_proof

_NONCE = 32
_LIFE = timedelta(seconds=60)
_MAX_OPEN = 10_000


class Challenges:
    """The challenges of one process that are open, at most ten thousand."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = Lock()
        self._open: OrderedDict[bytes, datetime] = OrderedDict()

    def make(self, *, at: datetime) -> bytes:
        """Give a new one."""
        with self._lock:
            for nonce in [nonce for nonce, until in self._open.items() if until < at]:
                del self._open[nonce]
            if len(self._open) >= _MAX_OPEN:
                self._open.popitem(last=False)  # whoever was slowest asks again
            nonce = secrets.token_bytes(_NONCE)
            self._open[nonce] = check_aware(at) + _LIFE
            return nonce

    def check(self, proof: NonceProof, challenge: bytes, *, audience: KeyId, at: datetime) -> Authenticated:
        """Check the answer to one; it is spent, whatever comes of it.

        Raises:
            VerificationError: The challenge was not made here, or was used, or is too old.
            SignatureError: The answer does not fit it.
        """
        with self._lock:
            until = self._open.pop(challenge, None)
        if until is None or until < at:
            raise VerificationError("no such challenge is open", code="NO_CHALLENGE")
        return check_nonce_proof(proof, audience=audience, challenge=challenge)
