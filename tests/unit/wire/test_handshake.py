"""The mutual handshake: both sides prove their keys over one channel, and somebody in between gains nothing."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from maia.errors import ExpiredError, MalformedError, SignatureError
from maia.principals import Authenticated, KeySigner, NonceProof
from maia.wire import LOOPBACK, Challenger, ServerProof, answer_challenge, channel_of

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
CLIENT, SERVER, EVE = KeySigner(b"c" * 32), KeySigner(b"s" * 32), KeySigner(b"e" * 32)
RANDOM, OWN, NONCE, MINE = b"r" * 32, b"o" * 32, b"n" * 32, b"m" * 32


def challenger(signer: KeySigner = SERVER, *, channel: bytes = LOOPBACK, secret: bytes = b"x" * 32) -> Challenger:
    """Make a server's side."""
    return Challenger(signer, channel=channel, secret=secret)


def offer(server: Challenger | None = None) -> ServerProof:
    """Start a handshake."""
    return (server or challenger()).challenge(CLIENT.public_key, RANDOM, own=OWN, nonce=NONCE, at=NOON)


def answer(given: ServerProof, *, signer: KeySigner = CLIENT, channel: bytes = LOOPBACK) -> NonceProof:
    """Answer as a client that knows the server's key."""
    return answer_challenge(
        given, signer=signer, server=SERVER.public_key, random=RANDOM, own_nonce=MINE, channel=channel
    )


def finish(
    given: ServerProof, proof: NonceProof, server: Challenger | None = None, *, at: datetime = NOON
) -> Authenticated:
    """End a handshake."""
    return (server or challenger()).check(proof, random=RANDOM, challenge=given.challenge, at=at)


def test_both_sides_are_proven() -> None:
    """After both proofs, the server has the client's key and the client has checked the server's."""
    given = offer()
    assert finish(given, answer(given)).key == CLIENT.public_key


def test_a_client_answers_no_server_but_its_own() -> None:
    """Another key's proof ends the handshake before the client proves anything."""
    with pytest.raises(SignatureError):
        answer(offer(challenger(EVE)))


def test_a_client_answers_only_what_it_asked() -> None:
    """The server's proof over another random number is not for this client."""
    given = challenger().challenge(CLIENT.public_key, b"q" * 32, own=OWN, nonce=NONCE, at=NOON)
    with pytest.raises(SignatureError):
        answer(given)


def test_somebody_in_between_has_another_channel() -> None:
    """The server's proof is bound to its own certificate, which the client does not see."""
    server = challenger(channel=b"certificate of the server")
    with pytest.raises(SignatureError):
        answer(offer(server), channel=b"certificate of somebody in between")


def test_a_proof_for_another_channel_convinces_no_server() -> None:
    """Even where the client was made to answer, its proof is worth nothing elsewhere."""
    between = challenger(channel=b"in between")
    proof = answer(offer(between), channel=b"in between")
    with pytest.raises(SignatureError):
        finish(offer(), proof)


@pytest.mark.threat("T3")
def test_a_proof_of_one_key_serves_no_other() -> None:
    """A challenge given to one key cannot be answered by another, nor a proof be shown as another's."""
    given = offer()
    with pytest.raises(SignatureError):
        finish(given, answer_as(EVE, given))
    proof = answer(given)
    with pytest.raises(SignatureError):
        finish(given, NonceProof(EVE.public_key, proof.own_nonce, proof.signature))


def answer_as(signer: KeySigner, given: ServerProof) -> NonceProof:
    """Answer somebody else's challenge, without the checks of an honest client."""
    from maia.principals import prove_by_nonce
    from maia.wire.handshake import _bound

    audience = SERVER.public_key.key_id
    return prove_by_nonce(
        signer, audience=audience, challenge=_bound(b"client", given.challenge, LOOPBACK), own_nonce=MINE
    )


def test_a_challenge_of_another_process_is_not_recognised() -> None:
    """The mark is made with a secret of this process."""
    given = offer(challenger(secret=b"y" * 32))
    with pytest.raises(SignatureError) as refusal:
        finish(given, answer(given))
    assert refusal.value.code == "UNKNOWN_CHALLENGE"


@pytest.mark.parametrize("seconds", [31, -31, 3600])
def test_a_challenge_is_answered_in_time(seconds: int) -> None:
    """An old challenge is as good as none."""
    given = offer()
    with pytest.raises(ExpiredError):
        finish(given, answer(given), at=NOON + timedelta(seconds=seconds))


def test_a_challenge_has_a_fixed_length() -> None:
    """A short one is refused before it is signed over."""
    given = offer()
    short = ServerProof(challenge=given.challenge[:16], nonce=given.nonce, signature=given.signature)
    with pytest.raises(MalformedError):
        answer(short)


def certificate(
    private: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, digest: hashes.HashAlgorithm | None
) -> bytes:
    """Make a certificate with one hash."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "keys.example")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(private.public_key())
    dated = builder.serial_number(1).not_valid_before(NOON).not_valid_after(NOON + timedelta(days=1))
    return dated.sign(private, digest).public_bytes(serialization.Encoding.DER)


CURVE = ec.generate_private_key(ec.SECP256R1())
HASHES = {
    "SHA-256": (CURVE, hashes.SHA256(), "sha256"),
    "SHA-384": (CURVE, hashes.SHA384(), "sha384"),
    "SHA-512": (CURVE, hashes.SHA512(), "sha512"),
    "none of its own": (ed25519.Ed25519PrivateKey.generate(), None, "sha256"),
}


@pytest.mark.parametrize("private, digest, name", HASHES.values(), ids=HASHES)
def test_a_channel_is_the_hash_of_the_certificate(private: object, digest: object, name: str) -> None:
    """RFC 5929: hashed with the hash of its own signature."""
    der = certificate(private, digest)  # type: ignore[arg-type]
    assert channel_of(der) == b"tls-server-end-point:" + hashlib.new(name, der).digest()


def test_what_is_no_certificate_is_no_channel() -> None:
    """Garbage is refused."""
    with pytest.raises(MalformedError):
        channel_of(b"garbage")
