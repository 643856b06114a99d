"""A key agent: the process that unlocked a key proves it to other processes of the same user, over a socket.

Spark asks a data source for its plan in processes of its own. They can read a key that lies open in the home; for a
sealed one they ask the process whose user gave the passphrase. Rules kept here:

- the private key stays where it was unlocked; what goes over the socket is a challenge and its answer;
- the answer holds for one audience, the broker of the home, and for one challenge;
- the socket lies in a folder of the user's own, and whoever connects must be that user;
- the agent ends with the process that runs it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import struct
import tempfile
import threading
from pathlib import Path

from maia.errors import UnavailableError
from maia.principals import Authenticated, KeyId, NonceProof, PublicKey, Signer, check_nonce_proof, prove_by_nonce

_NONCE, _SIGNATURE = 32, 64
_PATIENCE = 10.0
"""Seconds within which a side must speak."""


class KeyAgent:
    """Answers challenges with one key, until it is closed."""

    def __init__(self, signer: Signer, *, audience: KeyId) -> None:
        """Listen in a folder that only this user can enter.

        Args:
            signer: The unlocked key.
            audience: To whom it is proven.
        """
        self._signer = signer
        self._audience = audience
        self._folder = Path(tempfile.mkdtemp(prefix="maia-agent-"))
        self.path = self._folder / "socket"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._serve, name="maia-agent", daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError, EOFError):
                peer.settimeout(_PATIENCE)
                self._answer(peer)

    def _answer(self, peer: socket.socket) -> None:
        if _user_of(peer) != os.geteuid():
            return
        challenge = _receive(peer, _NONCE)
        proof = prove_by_nonce(
            self._signer, audience=self._audience, challenge=challenge, own_nonce=secrets.token_bytes(_NONCE)
        )
        peer.sendall(proof.own_nonce + proof.signature)


def ask_agent(path: Path, key: PublicKey, *, audience: KeyId) -> Authenticated:
    """Let an agent prove a key.

    Raises:
        UnavailableError: Nobody answers there: ``NO_AGENT``.
        SignatureError: The answer is not one of this key.
    """
    challenge = secrets.token_bytes(_NONCE)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(_PATIENCE)
            peer.connect(str(path))
            peer.sendall(challenge)
            nonce, signature = _receive(peer, _NONCE), _receive(peer, _SIGNATURE)
    except (OSError, EOFError) as error:
        raise UnavailableError(
            "no agent answers: the process that unlocked the key has ended, or closed its domain", code="NO_AGENT"
        ) from error
    return check_nonce_proof(NonceProof(key, nonce, signature), audience=audience, challenge=challenge)


def _user_of(peer: socket.socket) -> int:
    """Ask the system whose process is at the other end."""
    found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1])


def _receive(peer: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = peer.recv(count - len(found))
        if not part:
            raise EOFError
        found += part
    return found
