"""Work for workers: what a task must know, sealed to the keys that may do it, and signed by whoever gives it.

    (signed (work (version 1) (for (<key id> <sealed content key>) …) (body <nonce and ciphertext>))
            <public key> <signature>)

Rules kept here:

- each work has a content key of its own, drawn fresh; the body is sealed under it once (AES-256-GCM), and it is sealed
  (HPKE of RFC 9180, base mode with X25519, HKDF-SHA-256 and AES-256-GCM) to every recipient by itself;
- a recipient is an Ed25519 key, and what is sealed to is the Montgomery form of its point: one key, one certificate;
- the signature is checked before anything is opened, and by the key that the recipient expects: HPKE alone does not
  say who sealed. Everything in the list and the body is under it;
- whoever is not in the list learns how many are, and how long the body is.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from nacl.bindings import crypto_sign_ed25519_pk_to_curve25519, crypto_sign_ed25519_sk_to_curve25519

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import DeniedError, EncodingError, SealError, SignatureError
from maia.principals import SIGNATURE_LENGTH, KeyId, KeySigner, Kind, PublicKey, Signer, verify_signature

WORK_LIMITS = SexpLimits(max_bytes=128 << 20, max_depth=5, max_atom=96 << 20)
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_KEY, _NONCE = 32, 12


def seal_work(plain: bytes, recipients: Iterable[PublicKey], *, signer: Signer) -> bytes:
    """Seal what a task must know to those who may do it, and sign it.

    >>> giver, worker, stranger = (KeySigner(bytes([number]) * 32) for number in (1, 2, 3))
    >>> work = seal_work(b"an epoch key", [worker.public_key], signer=giver)
    >>> b"an epoch key" in work, open_work(work, worker, giver.public_key)
    (False, b'an epoch key')
    >>> open_work(work, stranger, giver.public_key)
    Traceback (most recent call last):
    ...
    maia.errors.DeniedError: [NOT_A_WORKER] ...
    >>> open_work(work, worker, stranger.public_key)
    Traceback (most recent call last):
    ...
    maia.errors.SignatureError: [WORK_SIGNER] ...
    """
    content, nonce = secrets.token_bytes(_KEY), secrets.token_bytes(_NONCE)
    keys = {key.key_id: key for key in recipients}
    wrapped: list[Sexp] = [
        (identity, _SUITE.encrypt(content, _agreed(keys[identity]), info=_info(identity, signer.public_key)))
        for identity in sorted(keys)
    ]
    sealed = nonce + AESGCM(content).encrypt(nonce, plain, _associated(signer.public_key))
    body = encode((b"work", (b"version", b"1"), (b"for", *wrapped), (b"body", sealed)))
    return encode((b"signed", body, signer.public_key.raw, signer.sign(Kind.WORK, body)))


def open_work(data: bytes, key: KeySigner, giver: PublicKey) -> bytes:
    """Check who gave a work and open it.

    Args:
        data: What `seal_work` made.
        key: The recipient's.
        giver: Whose work the recipient does.

    Raises:
        EncodingError: It is no work: ``WORK_SHAPE``.
        SignatureError: Somebody else gave it: ``WORK_SIGNER``; or it was altered.
        DeniedError: It is not for this recipient: ``NOT_A_WORKER``.
        SealError: It does not open.
    """
    match parse_canonical(data, limits=WORK_LIMITS):
        case (b"signed", bytes(body), bytes(raw), bytes(signature)) if len(signature) == SIGNATURE_LENGTH:
            pass
        case _:
            raise EncodingError("not a work", code="WORK_SHAPE")
    if raw != giver.raw:
        raise SignatureError("this work was given by another broker than the worker's own", code="WORK_SIGNER")
    # SECURITY: before anything in it is looked at; who may send plans to a cluster need not be this broker.
    verify_signature(Kind.WORK, body, signature, giver)
    match parse_canonical(body, limits=WORK_LIMITS):
        case (b"work", (b"version", b"1"), (b"for", *wrapped), (b"body", bytes(sealed))):
            pass
        case _:
            raise EncodingError("not a work", code="WORK_SHAPE")
    mine = key.public_key.key_id
    for item in wrapped:
        match item:
            case (bytes(identity), bytes(content)) if identity == mine:
                return _opened(content, sealed, key, giver)
            case _:
                continue
    raise DeniedError(
        f"the worker `{key.public_key.fingerprint}` is not among those for whom this work is: it is not in the "
        "broker's group `workers`, or not any more",
        code="NOT_A_WORKER",
    )


def _opened(wrapped: bytes, sealed: bytes, key: KeySigner, giver: PublicKey) -> bytes:
    seed = key.export_seed() + key.public_key.raw
    private = X25519PrivateKey.from_private_bytes(crypto_sign_ed25519_sk_to_curve25519(seed))
    try:
        content = _SUITE.decrypt(wrapped, private, info=_info(key.public_key.key_id, giver))
        return AESGCM(content).decrypt(sealed[:_NONCE], sealed[_NONCE:], _associated(giver))
    except (InvalidTag, ValueError) as error:
        raise SealError("the work cannot be opened") from error


def _agreed(key: PublicKey) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(crypto_sign_ed25519_pk_to_curve25519(key.raw))


def _info(recipient: KeyId, giver: PublicKey) -> bytes:
    return encode((b"maia/1 work key", recipient, giver.raw))


def _associated(giver: PublicKey) -> bytes:
    return encode((b"maia/1 work body", giver.raw))
