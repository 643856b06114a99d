"""Validity statements: lists that revoke, lists that confirm, and answers to one question.

    (statement (version "1") (kind crl|revalidation) (signer <key>) (sequence "<n>") (in-force <from> <to>)?
               (only-revokes)? (since "<ms>" …)? (certificates <id> …))
    (statement (version "1") (kind one-time) (signer <key>) (nonce <octets>) (verifier <text>) (request <hash>)?
               (certificates <id> …))

signed like certificates, with a prefix of their own. Rules kept here:

- fields stand in this order; unknown ones refuse the whole statement;
- a timed list is in force in the half-open interval ``[from, to)``; one without an interval is a plain CRL;
- a plain CRL of a signer that has timed lists says that it only revokes, so that nobody who has no timed list, or has
  lost them, takes it for one that confirms what it does not name;
- a CRL may say since when each of its certificates is withdrawn, in milliseconds since 1970 as events are stamped and
  in the order of the certificates. What was done before that moment is judged as it was; without a moment a plain list
  withdraws for ever back, and a timed one from its start;
- sequence numbers are strict decimals, certificate ids whole hashes in strictly increasing order.
"""

from __future__ import annotations

import hashlib
from dataclasses import InitVar, dataclass
from datetime import UTC, datetime, timedelta

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, SignatureError, UsageError
from maia.principals import (
    SIGNATURE_LENGTH,
    CertificateId,
    KeyHash,
    KeyId,
    Kind,
    PublicKey,
    Signer,
    TestKind,
    check_aware,
    decode_text,
    encode_instant,
    encode_text,
    parse_instant,
    parse_principal,
    public_key,
    verify_signature,
)

STATEMENT_LIMITS = SexpLimits(max_bytes=16 << 20, max_depth=8, max_atom=1 << 16)
_HASH_LENGTH = 32
_MAX_SEQUENCE_DIGITS = 18
_MAX_MOMENT_DIGITS = 15
EVER = 0
"""The moment of a withdrawal of which nobody knows when it was: it counts for whatever was done before as well."""
_VERSION_FIELD: Sexp = (b"version", b"1")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp_of(at: datetime) -> int:
    """Write an instant as events are stamped: whole milliseconds since 1970.

    >>> from datetime import UTC
    >>> stamp_of(datetime(1970, 1, 1, 0, 0, 1, 999_999, tzinfo=UTC))
    1999
    """
    return (check_aware(at) - _EPOCH) // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStatement:
    """A CRL (these are withdrawn) or a revalidation (only these are good).

    ``since`` says from which stamps on each certificate of a CRL is withdrawn, in the order of the sorted certificates;
    it is empty where the list does not say so. ``only_revokes`` is what a plain CRL beside timed lists says of itself:
    it takes away, and never confirms.
    """

    kind: TestKind
    signer: PublicKey | KeyHash
    sequence: int
    certificates: frozenset[CertificateId]
    starts: datetime | None = None
    ends: datetime | None = None
    since: tuple[int, ...] = ()
    only_revokes: bool = False

    def __post_init__(self) -> None:
        """Refuse half an interval, an empty one, a revalidation without one, and what does not fit a list."""
        if self.kind is TestKind.ONE_TIME:
            raise UsageError("a one-time answer is no list")
        if (self.starts is None) != (self.ends is None):
            raise EncodingError("a list has both ends of its interval, or neither", code="STATEMENT_INTERVAL")
        if self.starts is not None and self.ends is not None and check_aware(self.starts) >= check_aware(self.ends):
            raise EncodingError("a list whose interval is empty", code="STATEMENT_INTERVAL")
        if self.starts is None and self.kind is not TestKind.CRL:
            raise EncodingError("a revalidation needs an interval", code="STATEMENT_INTERVAL")
        if self.only_revokes and self.starts is not None:
            raise EncodingError("a list that only revokes has no interval", code="STATEMENT_INTERVAL")
        if not 0 <= self.sequence < 10**_MAX_SEQUENCE_DIGITS:
            raise EncodingError("a sequence number out of range", code="STATEMENT_SEQUENCE")
        fits = not self.since or (self.kind is TestKind.CRL and len(self.since) == len(self.certificates))
        if not fits or any(not EVER <= moment < 10**_MAX_MOMENT_DIGITS for moment in self.since):
            raise EncodingError("a CRL has a moment for each certificate, or none", code="STATEMENT_SINCE")

    @property
    def timed(self) -> bool:
        """Tell whether the list lapses by itself."""
        return self.starts is not None

    def in_force(self, at: datetime) -> bool:
        """Tell whether the list confirms what it does not revoke at an instant; a plain CRL does, or never does."""
        if self.starts is None or self.ends is None:
            return not self.only_revokes
        return self.starts <= at < self.ends

    def moments(self) -> dict[CertificateId, int]:
        """Tell from which stamp on this list withdraws each certificate that it names."""
        moments = self.since or (EVER if self.starts is None else stamp_of(self.starts),) * len(self.certificates)
        return dict(zip(sorted(self.certificates), moments, strict=True))

    def to_sexp(self) -> Sexp:
        """Write the unsigned body."""
        fields: list[Sexp] = [
            _VERSION_FIELD,
            (b"kind", self.kind.value.encode()),
            (b"signer", self.signer.to_sexp()),
            (b"sequence", b"%d" % self.sequence),
        ]
        if self.starts is not None and self.ends is not None:
            fields.append((b"in-force", encode_instant(self.starts), encode_instant(self.ends)))
        if self.only_revokes:
            fields.append((b"only-revokes",))
        if self.since:
            fields.append((b"since", *(b"%d" % moment for moment in self.since)))
        return (b"statement", *fields, (b"certificates", *sorted(self.certificates)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTimeAnswer:
    """The answer to one challenge: these certificates are good for that decision, and for no other."""

    signer: PublicKey | KeyHash
    nonce: bytes
    verifier: str
    certificates: frozenset[CertificateId]
    request: bytes | None = None

    def to_sexp(self) -> Sexp:
        """Write the unsigned body."""
        fields: list[Sexp] = [
            _VERSION_FIELD,
            (b"kind", b"one-time"),
            (b"signer", self.signer.to_sexp()),
            (b"nonce", self.nonce),
            (b"verifier", encode_text(self.verifier, "a verifier")),
        ]
        if self.request is not None:
            fields.append((b"request", self.request))
        return (b"statement", *fields, (b"certificates", *sorted(self.certificates)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The question a verifier asked: a fresh nonce, its own name, and how long it waits."""

    nonce: bytes
    verifier: str
    until: datetime
    request: bytes | None = None


@dataclass(frozen=True, slots=True)
class UnverifiedStatement:
    """A statement that was read but not checked."""

    body: ListStatement | OneTimeAnswer
    signing_key: PublicKey
    signature: bytes
    raw: bytes


class _Proof:
    """Held by `verify_statement` alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement whose signature was checked under the key it names as signer."""

    body: ListStatement | OneTimeAnswer
    raw: bytes
    digest: bytes
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_statement`, by a copy too."""
        if _proof is not _PROOF:
            raise UsageError("only verify_statement makes a Statement")

    @property
    def signer_id(self) -> KeyId:
        """The identity of the key that made the statement."""
        return self.body.signer.key_id


def issue_statement(body: ListStatement | OneTimeAnswer, signer: Signer) -> Statement:
    """Sign a statement with the key it names.

    Raises:
        UsageError: The signer holds another key.
    """
    if signer.public_key.key_id != body.signer.key_id:
        raise UsageError("a statement is signed by the key it names", code="WRONG_SIGNER")
    return verify_statement(parse_statement(unsafe_sign_statement(body, signer)))


def unsafe_sign_statement(body: ListStatement | OneTimeAnswer, signer: Signer) -> bytes:
    """Sign a statement with any key, also the wrong one; for test cases that must be refused."""
    expression = body.to_sexp()
    signature = signer.sign(Kind.STATEMENT, encode(expression))
    return encode((b"signed", expression, (b"signature", signer.public_key.to_sexp(), signature)))


def parse_statement(raw: bytes, *, limits: SexpLimits = STATEMENT_LIMITS) -> UnverifiedStatement:
    """Read a statement from its canonical bytes, believing nothing.

    Raises:
        EncodingError: The bytes are not a statement of this version in canonical form.
        KeyFormatError: A key inside is refused.
    """
    match parse_canonical(raw, limits=limits):
        case (
            b"signed",
            (b"statement", *fields),
            (b"signature", (b"public-key", (b"ed25519", bytes() as key)), bytes() as mark),
        ) if len(mark) == SIGNATURE_LENGTH:
            return UnverifiedStatement(_parse_body(fields), public_key(key), mark, bytes(raw))
        case _:
            raise EncodingError("not a signed statement", code="STATEMENT_SHAPE")


def verify_statement(statement: UnverifiedStatement) -> Statement:
    """Check that the named signer signed exactly these bytes.

    Raises:
        SignatureError: Another key signed, or the signature does not verify.
    """
    if statement.signing_key.key_id != statement.body.signer.key_id:
        raise SignatureError("a statement signed by another key than it names", code="WRONG_SIGNER")
    body = encode(statement.body.to_sexp())
    verify_signature(Kind.STATEMENT, body, statement.signature, statement.signing_key)
    return Statement(statement.body, statement.raw, hashlib.sha256(body).digest(), _PROOF)


def _parse_body(fields: list[Sexp]) -> ListStatement | OneTimeAnswer:
    match fields:
        case [version, (b"kind", bytes() as kind), (b"signer", signer), *rest, (b"certificates", *ids)]:
            if version != _VERSION_FIELD:
                raise EncodingError("a statement of an unknown version", code="STATEMENT_VERSION")
        case _:
            raise EncodingError("a statement starts with version, kind and signer", code="STATEMENT_SHAPE")
    key = parse_principal(signer)
    if not isinstance(key, (PublicKey, KeyHash)):
        raise EncodingError("a statement is signed by a key", code="PRINCIPAL_SHAPE")
    certificates = _parse_ids(ids)
    if kind == b"one-time":
        return _parse_answer(key, rest, certificates)
    if kind not in (b"crl", b"revalidation"):
        raise EncodingError("a statement of an unknown kind", code="UNKNOWN_FIELD")
    return _parse_list(TestKind(kind.decode()), key, rest, certificates)


def _parse_list(
    kind: TestKind, key: PublicKey | KeyHash, rest: list[Sexp], certificates: frozenset[CertificateId]
) -> ListStatement:
    since: tuple[int, ...] = ()
    match rest:
        case [*_, (b"since", *moments)] if moments:
            since = tuple(_parse_moment(item) for item in moments)
            rest = rest[:-1]
    starts = ends = None
    only_revokes = False
    match rest:
        case [(b"sequence", bytes() as number)]:
            pass
        case [(b"sequence", bytes() as number), (b"only-revokes",)]:
            only_revokes = True
        case [(b"sequence", bytes() as number), (b"in-force", start, end)]:
            starts, ends = parse_instant(start), parse_instant(end)
        case _:
            raise EncodingError("an unknown field in a statement", code="UNKNOWN_FIELD")
    if not number.isdigit() or len(number) > _MAX_SEQUENCE_DIGITS or (number[0] == 48 and len(number) > 1):
        raise EncodingError("a sequence number that is not a plain decimal", code="STATEMENT_SEQUENCE")
    return ListStatement(
        kind=kind, signer=key, sequence=int(number), certificates=certificates, starts=starts, ends=ends, since=since,
        only_revokes=only_revokes,
    )  # fmt: skip


def _parse_moment(item: Sexp) -> int:
    if not isinstance(item, bytes) or not item.isdigit() or len(item) > _MAX_MOMENT_DIGITS or item != b"%d" % int(item):
        raise EncodingError("a moment that is not a plain decimal", code="STATEMENT_SINCE")
    return int(item)


def _parse_answer(key: PublicKey | KeyHash, rest: list[Sexp], certificates: frozenset[CertificateId]) -> OneTimeAnswer:
    match rest:
        case [(b"nonce", bytes() as nonce), (b"verifier", verifier)]:
            request = None
        case [(b"nonce", bytes() as nonce), (b"verifier", verifier), (b"request", bytes() as request)]:
            pass
        case _:
            raise EncodingError("an unknown field in a statement", code="UNKNOWN_FIELD")
    return OneTimeAnswer(
        signer=key,
        nonce=nonce,
        verifier=decode_text(verifier, "a verifier"),
        certificates=certificates,
        request=request,
    )


def _parse_ids(ids: list[Sexp]) -> frozenset[CertificateId]:
    previous = b""
    for item in ids:
        if not isinstance(item, bytes) or len(item) != _HASH_LENGTH or item <= previous:
            raise EncodingError("certificate ids are whole hashes in increasing order", code="STATEMENT_IDS")
        previous = item
    return frozenset(CertificateId(item) for item in ids if isinstance(item, bytes))
