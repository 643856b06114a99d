"""Certificates in the shapes of RFC 2693: authorisation (5-tuples) and names (4-tuples).

    (signed "1" (cert (issuer <key>) (subject <subject>) (propagate)? (tag <tag>) (condition <text>)* (valid …)?
                      (renew <uri>)?)
                (signature <public-key> <64 octets>))
    (signed "1" (cert (issuer (name <key> <text>)) (subject <principal>) (valid …)?) (signature …))

Rules kept here:

- the version stands in the envelope, so that bodies are plain RFC 2693, and in the prefix that is signed along;
- fields stand in this order, each at most once; an unknown or missing field refuses the whole certificate, and a
  certificate without a tag grants nothing rather than everything;
- an issuer is a key or the hash of one; a name certificate's issuer is exactly one name in that key's namespace;
- the key in the signature must be the issuer: one object, one signer;
- the identity of a certificate is the hash of its unsigned body, so no second signature gives it a second identity;
- `UnverifiedCertificate` is what reading gives. A `Certificate` exists only after `verify_certificate` checked the
  signature; functions that decide accept nothing else.
"""

from __future__ import annotations

import hashlib
from dataclasses import InitVar, dataclass
from typing import NewType, TypeAlias

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, SignatureError, UsageError
from maia.principals.keys import KeyId, PublicKey, public_key
from maia.principals.principal import (
    KeyHash,
    Name,
    ObjectHash,
    Principal,
    Subject,
    decode_text,
    encode_text,
    parse_principal,
    parse_subject,
)
from maia.principals.signing import SIGNATURE_LENGTH, Kind, Signer, verify_signature
from maia.principals.validity import ALWAYS, OnlineTest, Period, parse_validity, validity_to_sexp

CertificateId = NewType("CertificateId", bytes)
"""SHA-256 over the canonical bytes of an unsigned certificate body."""

VERSION = b"1"
CERTIFICATE_LIMITS = SexpLimits(max_bytes=1 << 16, max_depth=64, max_atom=1 << 15)
MAX_CONDITIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorisation:
    """The body of a 5-tuple: issuer gives subject a right, perhaps to pass on, for a time.

    ``tag`` is the expression inside ``(tag …)``; what it means is the authority floor's business.
    """

    issuer: PublicKey | KeyHash
    subject: Subject
    delegate: bool
    tag: Sexp
    period: Period = ALWAYS
    tests: tuple[OnlineTest, ...] = ()
    conditions: tuple[str, ...] = ()
    renew: str | None = None

    def __post_init__(self) -> None:
        """Bound what the issuer may pile up."""
        if len(self.conditions) > MAX_CONDITIONS:
            raise UsageError(f"a certificate has at most {MAX_CONDITIONS} conditions")

    @property
    def issuer_id(self) -> KeyId:
        """The identity of the key that must sign."""
        return self.issuer.key_id

    def to_sexp(self) -> Sexp:
        """Write the unsigned body."""
        fields: list[Sexp] = [(b"issuer", self.issuer.to_sexp()), (b"subject", self.subject.to_sexp())]
        if self.delegate:
            fields.append((b"propagate",))
        fields.append((b"tag", self.tag))
        fields.extend((b"condition", encode_text(condition, "a condition")) for condition in self.conditions)
        fields.extend(validity_to_sexp(self.period, self.tests))
        if self.renew is not None:
            fields.append((b"renew", encode_text(self.renew, "an address")))
        return (b"cert", *fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The body of a 4-tuple: in the issuer's namespace, ``name`` means (also) ``subject``."""

    issuer: PublicKey | KeyHash
    name: str
    subject: Principal
    period: Period = ALWAYS
    tests: tuple[OnlineTest, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a name that means a threshold: names stand for keys."""
        if not isinstance(self.subject, (PublicKey, KeyHash, Name)):
            raise EncodingError("a name stands for keys, not for a threshold or an object", code="NAME_SUBJECT")

    @property
    def issuer_id(self) -> KeyId:
        """The identity of the key that must sign, whose namespace this is."""
        return self.issuer.key_id

    def to_sexp(self) -> Sexp:
        """Write the unsigned body."""
        issuer = Name(self.issuer, (self.name,)).to_sexp()
        valid = validity_to_sexp(self.period, self.tests)
        return (b"cert", (b"issuer", issuer), (b"subject", self.subject.to_sexp()), *valid)


Body: TypeAlias = "Authorisation | Naming"


class _Proof:
    """Held by this module alone; without it neither form of a certificate comes into being, by a copy either."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class UnverifiedCertificate:
    """A certificate that was read but not checked. Nothing may be concluded from it."""

    body: Body
    signer: PublicKey
    signature: bytes
    raw: bytes
    certificate_id: CertificateId
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `parse_certificate`."""
        # INVARIANT: the body is what the bytes say, so that the signature over the bytes is one over the body.
        if _proof is not _PROOF:
            raise UsageError("only parse_certificate makes an UnverifiedCertificate")

    @property
    def body_bytes(self) -> bytes:
        """The canonical bytes that the signature covers."""
        return self.raw[len(_OPENING) : -_TAIL_LENGTH]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate whose signature was checked under its issuer's key.

    That says who wrote it and that it is unaltered; whether it is in force is decided at each use.
    """

    body: Body
    raw: bytes
    certificate_id: CertificateId
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_certificate`."""
        # INVARIANT: a Certificate's signature was verified in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_certificate makes a Certificate")

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as bytes and be verified again on arrival."""
        return (_verify_raw, (self.raw,))


def _signature_sexp(signer: PublicKey, signature: bytes) -> Sexp:
    return (b"signature", signer.to_sexp(), signature)


_OPENING = b"(6:signed1:1"
_TAIL_HEAD = b"(9:signature(10:public-key(7:ed2551932:"
_TAIL_MIDDLE = b"))64:"
_TAIL_END = b"))"
_TAIL_LENGTH = len(_TAIL_HEAD) + 32 + len(_TAIL_MIDDLE) + SIGNATURE_LENGTH + len(_TAIL_END)


def issue(body: Body, signer: Signer) -> Certificate:
    """Sign a certificate body with its issuer's key.

    Args:
        body: An authorisation or a naming.
        signer: Holds the issuer's private key.

    Returns:
        The certificate, verified.

    Raises:
        UsageError: The signer does not hold the issuer's key.
    """
    if signer.public_key.key_id != body.issuer_id:
        raise UsageError("a certificate is signed by its issuer", code="WRONG_SIGNER")
    return verify_certificate(parse_certificate(unsafe_sign_certificate(body, signer)))


def unsafe_sign_certificate(body: Body, signer: Signer) -> bytes:
    """Sign a body with any key, also the wrong one; for test cases that must be refused."""
    expression = body.to_sexp()
    signature = signer.sign(Kind.CERTIFICATE, encode(expression))
    return unsafe_seal_certificate(expression, signer.public_key, signature)


def unsafe_seal_certificate(expression: Sexp, signer: PublicKey, signature: bytes) -> bytes:
    """Put a body and any signature into one envelope; for test cases that must be refused."""
    return encode((b"signed", VERSION, expression, _signature_sexp(signer, signature)))


def rejoin_certificate(body: Body, signature: bytes) -> UnverifiedCertificate:
    """Join a body and a signature that came apart, as in another notation; nothing is believed yet.

    Raises:
        UsageError: The issuer is known by a hash alone: ``WRONG_SIGNER``.
        EncodingError: It is no signature.
    """
    if not isinstance(body.issuer, PublicKey):
        raise UsageError("the key of the issuer is needed, not its hash", code="WRONG_SIGNER")
    return parse_certificate(encode((b"signed", VERSION, body.to_sexp(), _signature_sexp(body.issuer, signature))))


def parse_certificate(raw: bytes, *, limits: SexpLimits = CERTIFICATE_LIMITS) -> UnverifiedCertificate:
    """Read a certificate from its canonical bytes, believing nothing.

    Raises:
        EncodingError: The bytes are not a certificate of this version in canonical form.
        KeyFormatError: A key inside is refused.
    """
    match parse_canonical(raw, limits=limits):
        case (b"signed", version, (b"cert", *fields), (b"signature", (b"public-key", (b"ed25519", key)), mark)):
            if version != VERSION:
                raise EncodingError("a certificate of an unknown version", code="CERT_VERSION")
        case _:
            raise EncodingError("not a signed certificate", code="CERT_SHAPE")
    if not isinstance(key, bytes) or not isinstance(mark, bytes) or len(mark) != SIGNATURE_LENGTH:
        raise EncodingError(f"a signature has a key and {SIGNATURE_LENGTH} octets", code="CERT_SHAPE")
    signer = public_key(key)
    raw = bytes(raw)
    identity = CertificateId(hashlib.sha256(raw[len(_OPENING) : -_TAIL_LENGTH]).digest())
    return UnverifiedCertificate(_parse_body(fields), signer, mark, raw, identity, _PROOF)


def verify_certificate(certificate: UnverifiedCertificate) -> Certificate:
    """Check that the issuer signed exactly these bytes.

    Raises:
        SignatureError: The signing key is not the issuer, or the signature does not verify.
    """
    if certificate.signer.key_id != certificate.body.issuer_id:
        raise SignatureError(
            f"signed by `{certificate.signer.fingerprint}`, which is not the issuer", code="WRONG_SIGNER"
        )
    verify_signature(Kind.CERTIFICATE, certificate.body_bytes, certificate.signature, certificate.signer)
    return Certificate(certificate.body, certificate.raw, certificate.certificate_id, _PROOF)


def _verify_raw(raw: bytes) -> Certificate:
    return verify_certificate(parse_certificate(raw))


def _parse_body(fields: list[Sexp]) -> Body:
    match fields[:2]:
        case [(b"issuer", issuer), (b"subject", subject)]:
            rest = fields[2:]
        case _:
            raise EncodingError("a certificate starts with issuer and subject", code="CERT_SHAPE")
    match issuer:
        case (b"name", *_):
            return _parse_naming(issuer, subject, rest)
        case _:
            return _parse_authorisation(issuer, subject, rest)


def _parse_authorisation(issuer: Sexp, subject: Sexp, rest: list[Sexp]) -> Authorisation:
    key = parse_principal(issuer)
    if not isinstance(key, (PublicKey, KeyHash)):
        raise EncodingError("the issuer of a certificate is one key", code="CERT_ISSUER")
    delegate = rest[:1] == [(b"propagate",)]
    if delegate:
        rest = rest[1:]
    # SECURITY: no tag is no certificate; reading it as "everything" is what an attacker hopes for.
    match rest[:1]:
        case [(b"tag", tag)]:
            rest = rest[1:]
        case _:
            raise EncodingError("an authorisation without a tag", code="CERT_NO_TAG")
    conditions: list[str] = []
    for field in rest:
        match field:
            case (b"condition", source):
                conditions.append(decode_text(source, "a condition"))
            case _:
                break
    rest = rest[len(conditions) :]
    if len(conditions) > MAX_CONDITIONS:
        raise EncodingError(f"a certificate has at most {MAX_CONDITIONS} conditions", code="TOO_MANY_CONDITIONS")
    period, tests, rest = _take_validity(rest)
    renew = None
    match rest[:1]:
        case [(b"renew", address)]:
            renew, rest = decode_text(address, "an address"), rest[1:]
    _expect_end(rest)
    return Authorisation(
        issuer=key, subject=parse_subject(subject), delegate=delegate, tag=tag, period=period, tests=tests,
        conditions=tuple(conditions), renew=renew,
    )  # fmt: skip


def _parse_naming(issuer: Sexp, subject: Sexp, rest: list[Sexp]) -> Naming:
    name = parse_principal(issuer)
    if not isinstance(name, Name) or len(name.parts) != 1:
        raise EncodingError("a name certificate defines one name of its issuer", code="CERT_ISSUER")
    means = parse_subject(subject)
    if isinstance(means, ObjectHash):
        raise EncodingError("a name stands for keys, not for a threshold or an object", code="NAME_SUBJECT")
    period, tests, rest = _take_validity(rest)
    _expect_end(rest)
    return Naming(issuer=name.base, name=name.parts[0], subject=means, period=period, tests=tests)


def _take_validity(rest: list[Sexp]) -> tuple[Period, tuple[OnlineTest, ...], list[Sexp]]:
    match rest[:1]:
        case [(b"valid", *fields)]:
            period, tests = parse_validity(tuple(fields))
            return period, tests, rest[1:]
    return ALWAYS, (), rest


def _expect_end(rest: list[Sexp]) -> None:
    # SECURITY: a field we do not know may be one that narrows; ignoring it would widen.
    if rest:
        raise EncodingError("an unknown field in a certificate", code="UNKNOWN_FIELD")
