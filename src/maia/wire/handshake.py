"""The mutual challenge-response of a client and a service, bound to the channel between them (ISO 9798-3).

    client -> server   POST /v1/challenge   key A, random r_A
    server -> client                        random r_B (with the server's mark), its proof over (server, r_A, channel)
                                            for A
    client -> server   POST /v1/session     key A, r_A, r_B, its proof over (client, r_B, channel) for B
    server -> client                        a session, in which A's requests are signed

Each proof says who speaks, so that one that a key made as a server is worth nothing as a client's, whatever the random
numbers are. Both proofs cover the channel: the hash of the server's certificate (``tls-server-end-point``, RFC 5929),
or the word for a loopback connection, where there is nobody in between. Somebody in between has another certificate, so
what the client proves to him convinces no server, and no server's proof convinces the client.

The server keeps nothing for a client that has proven nothing: r_B carries a mark that only this server can make, over
its time, the client's key, r_A and the channel. A proof is used once.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from maia.encoding import encode
from maia.errors import ExpiredError, MalformedError, SignatureError
from maia.principals import Authenticated, NonceProof, PublicKey, Signer, check_nonce_proof, prove_by_nonce
from maia.wire.messages import WINDOW

LOOPBACK = b"loopback"
"""The channel between two processes of one machine, without TLS."""

RANDOM_LENGTH = 32
CHALLENGE_LENGTH = 8 + RANDOM_LENGTH + 32
_CLIENT, _SERVER = b"client", b"server"
"""Who speaks, which both proofs say."""
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProof:
    """What the server answers: its challenge to the client, and its own proof."""

    challenge: bytes
    nonce: bytes
    signature: bytes


class Challenger:
    """The server's side of the handshake: makes challenges and recognises them."""

    def __init__(self, signer: Signer, *, channel: bytes, secret: bytes) -> None:
        """Speak for a server.

        Args:
            signer: The server's key.
            channel: What both sides see of the connection: `channel_of` the server's certificate, or `LOOPBACK`.
            secret: 32 random octets of this process; challenges of another process are not recognised.
        """
        self._signer = signer
        self._channel = channel
        self._secret = secret

    def challenge(self, client: PublicKey, random: bytes, *, own: bytes, nonce: bytes, at: datetime) -> ServerProof:
        """Prove the server's key to a client and challenge it.

        Args:
            client: The key that the client says it has.
            random: The client's random number.
            own: A fresh random number for the challenge.
            nonce: Another, for the server's own proof.
            at: Now.
        """
        start = _stamp(at) + own
        proof = prove_by_nonce(
            self._signer, audience=client.key_id, challenge=_bound(_SERVER, random, self._channel), own_nonce=nonce
        )
        return ServerProof(challenge=start + self._mark(start, client, random), nonce=nonce, signature=proof.signature)

    def check(
        self, proof: NonceProof, *, random: bytes, challenge: bytes, at: datetime, window: timedelta = WINDOW
    ) -> Authenticated:
        """Check that a client answers a challenge of this server, in time; use it up afterwards.

        Raises:
            SignatureError: The challenge is not this server's for this client, or the proof does not answer it.
            ExpiredError: It is too old.
        """
        start, mark = challenge[: 8 + RANDOM_LENGTH], challenge[8 + RANDOM_LENGTH :]
        if not hmac.compare_digest(mark, self._mark(start, proof.key, random)):
            raise SignatureError("the challenge is not of this server", code="UNKNOWN_CHALLENGE")
        made = _EPOCH + int.from_bytes(start[:8], "big") * _MILLISECOND
        if abs(at - made) > window:
            raise ExpiredError("the challenge is too old", code="STALE_REQUEST")
        audience = self._signer.public_key.key_id
        return check_nonce_proof(proof, audience=audience, challenge=_bound(_CLIENT, challenge, self._channel))

    def _mark(self, start: bytes, client: PublicKey, random: bytes) -> bytes:
        body = encode((start, client.raw, random, self._channel))
        return hmac.digest(self._secret, body, hashlib.sha256)


def answer_challenge(
    offer: ServerProof, *, signer: Signer, server: PublicKey, random: bytes, own_nonce: bytes, channel: bytes
) -> NonceProof:
    """Check the server's proof, and only then answer its challenge: the client's side of the handshake.

    Raises:
        SignatureError: The server has not proven its key over this channel.
        MalformedError: Its challenge has another form.
    """
    if len(offer.challenge) != CHALLENGE_LENGTH:
        raise MalformedError("a challenge of another length", code="OCTETS")
    proof = NonceProof(server, offer.nonce, offer.signature)
    check_nonce_proof(proof, audience=signer.public_key.key_id, challenge=_bound(_SERVER, random, channel))
    return prove_by_nonce(
        signer, audience=server.key_id, challenge=_bound(_CLIENT, offer.challenge, channel), own_nonce=own_nonce
    )


def channel_of(certificate: bytes) -> bytes:
    """Hash a server's certificate (DER) as ``tls-server-end-point`` of RFC 5929 does.

    Raises:
        MalformedError: It is no certificate.
    """
    try:
        algorithm = x509.load_der_x509_certificate(certificate).signature_hash_algorithm
    except UnsupportedAlgorithm:
        algorithm = None
    except ValueError as error:
        raise MalformedError("not a certificate of a server", code="TLS_CERTIFICATE") from error
    # RFC 5929, 4.1: MD5 and SHA-1 give way to SHA-256; signatures without a hash of their own are not covered there.
    weak = algorithm is None or isinstance(algorithm, hashes.MD5 | hashes.SHA1)
    digest = hashes.Hash(hashes.SHA256() if algorithm is None or weak else algorithm)
    digest.update(certificate)
    return b"tls-server-end-point:" + digest.finalize()


def _bound(role: bytes, random: bytes, channel: bytes) -> bytes:
    """Join who speaks, a random number and the channel into what a proof answers."""
    # SECURITY: what somebody proves as a server must not stand for what it would prove as a client, nor the other way.
    return hashlib.sha256(encode((b"maia/1 handshake", role, random, channel))).digest()


def _stamp(at: datetime) -> bytes:
    return ((at - _EPOCH) // _MILLISECOND).to_bytes(8, "big")
