"""What `bench_trust.py` measures: chains, a pool, and the things they are compared with."""

from __future__ import annotations

import hashlib
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import biscuit_auth
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from nacl.bindings import crypto_sign_open

from maia.authority import (
    Action,
    CertificatePool,
    Request,
    SignatureCache,
    Verifier,
    ask_cell,
    five_tuple,
    permits,
    reduce_chain,
    row_request,
    type_right,
)
from maia.principals import (
    Authorisation,
    KeySigner,
    Kind,
    Period,
    check_nonce_proof,
    issue,
    parse_certificate,
    prove_by_nonce,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
UIDS = ("1", "2", "3", "4")
Subject = Callable[[], object]


def key(name: str) -> KeySigner:
    """Give the key pair with this name."""
    return KeySigner(hashlib.sha256(f"benchmark {name}".encode()).digest())


@dataclass(frozen=True)
class Chain:
    """A chain of certificates from an owner to a principal, and the request that it proves."""

    owner: KeySigner
    principal: KeySigner
    raws: tuple[bytes, ...]
    request: Request


def make_chain(length: int) -> Chain:
    """Delegate the right to read an event type, link by link; each link is a type right with four attributes."""
    keys = [key(f"link {place}") for place in range(length + 1)]
    owner = keys[0].public_key
    tag = type_right(owner, "Numberplate", "1", actions=[Action.SUBSCRIBE], attributes=UIDS).to_sexp()
    raws = tuple(
        issue(
            Authorisation(
                issuer=giver.public_key, subject=taker.public_key, delegate=taker is not keys[-1], tag=tag,
                period=Period(None, END),
            ),
            giver,
        ).raw
        for giver, taker in pairwise(keys)
    )  # fmt: skip
    request = ask_cell(Action.SUBSCRIBE, owner, "Numberplate", "1", "1", row_request({"1": b"LB12 ABC"}))
    return Chain(keys[0], keys[-1], raws, request)


class Subscriptions:
    """Handles the same subscription again and again, as a local broker does: prove the key, then decide.

    ``off`` forgets everything in between. ``certificates`` keeps the cache of verified signatures, and ``read`` the
    certificates themselves besides, as a broker's pool does. ``decisions`` keeps the grant as well and, like the type
    cache of the thesis, is asked by a client whose key was proven before.
    """

    def __init__(self, chain: Chain, cache: str) -> None:
        """Prepare one of the four ways."""
        self.chain = chain
        self.evidence = CertificatePool(chain.raws) if cache == "read" else chain.raws
        self.cache = cache
        self.verifier = Verifier()
        self.signatures = SignatureCache()
        self.verifications = 0
        audience = chain.owner.public_key.key_id
        self.challenge = secrets.token_bytes(16)
        self.proof = prove_by_nonce(
            chain.principal, audience=audience, challenge=self.challenge, own_nonce=secrets.token_bytes(16)
        )

    def handle(self) -> bool:
        """Handle one subscription and count the signatures that were verified for it."""
        if self.cache == "off":
            self.signatures = SignatureCache()
        if self.cache != "decisions":
            self.verifier = Verifier(signatures=self.signatures)
            audience = self.chain.owner.public_key.key_id
            check_nonce_proof(self.proof, audience=audience, challenge=self.challenge)
        before = self.verifier.signatures.verifications
        decision = self.verifier.decide(
            self.chain.request, principal=self.chain.principal.public_key, evidence=self.evidence, at=NOW
        )
        self.verifications = self.verifier.signatures.verifications - before + (self.cache != "decisions")
        assert decision
        return decision.allowed


def reductions(chain: Chain) -> dict[str, Subject]:
    """Reduce a chain of tuples: as the thesis does, and link by link for one request."""
    tuples = [five_tuple(parse_certificate(raw)) for raw in chain.raws]
    ground = chain.request.ground
    assert ground is not None
    return {
        "5-tuple reduction of the chain": lambda: reduce_chain(tuples),
        "one request, link by link": lambda: all(permits(link.tag, ground) for link in tuples),
    }


def signatures(chain: Chain) -> dict[str, Callable[..., object]]:
    """Verify a signature over the body of a certificate, or over another text, by several libraries and algorithms."""
    certificate = parse_certificate(chain.raws[0])
    message, mark, raw = Kind.CERTIFICATE.value + certificate.body_bytes, certificate.signature, certificate.signer.raw
    pyca = Ed25519PublicKey.from_public_bytes(raw)
    out: dict[str, Callable[..., object]] = {
        "Ed25519, PyNaCl": lambda said=message: crypto_sign_open(mark + said, raw),
        "Ed25519, pyca": lambda said=message: pyca.verify(mark, said),
    }
    for size in (1024, 2048, 3072):  # the first as the thesis had it; nothing of Maia's takes such a key
        out[f"RSA-{size}, pyca"] = rsa_verification(size, message)
    return out


def rsa_verification(size: int, message: bytes) -> Callable[..., object]:
    """Verify one RSA signature (PKCS #1 v1.5 with SHA-256, as X.509 has it)."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=size)
    mark, public = private.sign(message, padding.PKCS1v15(), hashes.SHA256()), private.public_key()
    return lambda said=message: public.verify(mark, said, padding.PKCS1v15(), hashes.SHA256())


def decisions(chain: Chain) -> dict[str, Subject]:
    """Decide one request along a chain: cold, from a loaded pool, warm; and the plain things beside it."""
    pairs = []
    for raw in chain.raws:
        read = parse_certificate(raw)
        pairs.append((read.signature + Kind.CERTIFICATE.value + read.body_bytes, read.signer.raw))
    principal, pool, warm = chain.principal.public_key, CertificatePool(chain.raws), Verifier()
    table = {(principal.key_id, "subscribe", "Numberplate", "1", "1"): True}

    def decide(verifier: Verifier, evidence: CertificatePool | tuple[bytes, ...]) -> bool:
        decision = verifier.decide(chain.request, principal=principal, evidence=evidence, at=NOW)
        assert decision
        return decision.allowed

    return {
        "raw": lambda: [crypto_sign_open(*pair) for pair in pairs],
        "cold from bytes": lambda: decide(Verifier(), chain.raws),
        "cold from a loaded pool": lambda: decide(Verifier(), pool),
        "warm": lambda: decide(warm, chain.raws),
        "plain lookup": lambda: table[principal.key_id, "subscribe", "Numberplate", "1", "1"],
    }


def biscuit(blocks: int) -> dict[str, Subject]:
    """Parse and verify a Biscuit token with as many blocks, without and with the decision."""
    pair = biscuit_auth.KeyPair()
    until = "check if time($now), $now < 2027-01-01T00:00:00Z"
    cells = "; ".join(f'right("subscribe", "Numberplate", "1", "{uid}")' for uid in UIDS)
    token = biscuit_auth.BiscuitBuilder(f"{cells}; {until};").build(pair.private_key)
    for _ in range(blocks - 1):
        narrower = 'check if operation("subscribe", "Numberplate", "1", $uid), ["1", "2", "3", "4"].contains($uid)'
        token = token.append(biscuit_auth.BlockBuilder(f"{narrower}; {until};"))
    raw = bytes(token.to_bytes())

    def decide() -> None:
        builder = biscuit_auth.AuthorizerBuilder(
            'time(2026-06-01T12:00:00Z); operation("subscribe", "Numberplate", "1", "1");'
            "allow if operation($a, $t, $v, $u), right($a, $t, $v, $u);"
        )
        limits = builder.limits()
        limits.max_time = timedelta(seconds=1)
        builder.set_limits(limits)
        builder.build(biscuit_auth.Biscuit.from_bytes(raw, pair.public_key)).authorize()

    decide()
    return {
        "Biscuit, parse and verify": lambda: biscuit_auth.Biscuit.from_bytes(raw, pair.public_key),
        "Biscuit, parse, verify and decide": decide,
    }


def make_pool(size: int, chain: Chain, *, seed: int = 1) -> CertificatePool:
    """Hide a chain among other certificates: a tenth by its owner, the rest by two hundred other keys."""
    rng = random.Random(seed)
    others = [key(f"other {number}") for number in range(200)]
    tag = type_right(chain.owner.public_key, "Numberplate", "1", actions=[Action.SUBSCRIBE], attributes=UIDS).to_sexp()
    raws = list(chain.raws)
    while len(raws) < size:
        giver = chain.owner if rng.random() < 0.1 else rng.choice(others)
        body = Authorisation(
            issuer=giver.public_key, subject=rng.choice(others).public_key, delegate=rng.random() < 0.5, tag=tag,
            period=Period(None, END + timedelta(seconds=len(raws))),
        )  # fmt: skip
        raws.append(issue(body, giver).raw)
    rng.shuffle(raws)
    return CertificatePool(raws)
