"""How a key logs in to a console: what is signed, and how challenge and answer are written for people to carry.

    maia-login:HOST:look|change:CHALLENGE      what a console shows
    KEY.NONCE.SIGNATURE                        what answers it

Rules kept here:

- what is signed names the host as the one who signs knows it, the broker's key, and whether the session may change
  things: a page elsewhere that shows a console's challenge gets an answer that this console refuses;
- a challenge is text of a few known letters, so that it can be copied, and an answer too.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

from maia.encoding import encode
from maia.errors import MalformedError
from maia.principals import KeyId, NonceProof, Signer, prove_by_nonce
from maia.wire.messages import decode_key, decode_octets, encode_key, encode_octets

LOGIN_LENGTH = 8 + 32 + 32
"""Octets of a challenge: its time, a random number, and a mark by which its console knows it again."""
_NONCE, _SIGNATURE, _MAX_TEXT = 32, 64, 1024
_TEXT = re.compile(r"maia-login:([A-Za-z0-9.:\[\]-]{1,255}):(look|change):([A-Za-z0-9_-]{90,100})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginChallenge:
    """What a console asks to be signed.

    Attributes:
        host: The console, with its port, as a browser writes it.
        changes: Whether the session may change things.
        challenge: Its random octets.
    """

    host: str
    changes: bool
    challenge: bytes

    @property
    def bound(self) -> bytes:
        """What stands for all of it in the proof."""
        wish = b"change" if self.changes else b"look"
        return hashlib.sha256(encode((b"maia/1 console", self.challenge, self.host.encode(), wish))).digest()

    def __str__(self) -> str:
        """Write it for people to carry."""
        return f"maia-login:{self.host}:{'change' if self.changes else 'look'}:{encode_octets(self.challenge)}"

    @classmethod
    def parse(cls, text: str) -> LoginChallenge:
        """Read it.

        Raises:
            MalformedError: It is none: ``LOGIN_TEXT``.
        """
        found = _TEXT.fullmatch(text.strip()) if len(text) <= _MAX_TEXT else None
        if found is None:
            raise MalformedError("this is no challenge of a console: `maia-login:…`", code="LOGIN_TEXT")
        octets = decode_octets(found[3], length=LOGIN_LENGTH)
        return cls(host=found[1], changes=found[2] == "change", challenge=octets)


def answer_login(challenge: LoginChallenge, signer: Signer, *, console: KeyId) -> str:
    """Answer a console's challenge with a key.

    Args:
        challenge: What it asks.
        signer: Who logs in.
        console: The identity of the console's key, which is the broker's.
    """
    proof = prove_by_nonce(signer, audience=console, challenge=challenge.bound, own_nonce=secrets.token_bytes(_NONCE))
    return ".".join((encode_key(proof.key), encode_octets(proof.own_nonce), encode_octets(proof.signature)))


def parse_login(text: str) -> NonceProof:
    """Read the answer to a challenge.

    Raises:
        MalformedError: It is none.
    """
    parts = text.strip().split(".") if len(text) <= _MAX_TEXT else []
    if len(parts) != 3:
        raise MalformedError("this is no answer to a challenge: three parts with dots between them", code="LOGIN_TEXT")
    key, nonce, signature = parts
    return NonceProof(
        decode_key(key), decode_octets(nonce, length=_NONCE), decode_octets(signature, length=_SIGNATURE)
    )  # fmt: skip
