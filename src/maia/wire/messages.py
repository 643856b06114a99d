"""Signed requests and signed answers: HTTP message signatures (RFC 9421) by principals' keys.

Rules kept here:

- a request's signature covers its method, host, path, query, body (by its digest), session, time, nonce and key; each
  of them must be covered, nothing else may be, and there is one signature;
- the key that signs is the principal itself: ``keyid`` is the public key, so there is no directory to trust;
- an answer's signature covers its status, its body and the signature of the request it answers, so it answers that
  request and no other, and the client knows the server by its key at each exchange;
- what is signed is Maia's prefix for requests followed by RFC 9421's signature base, so nothing that is signed here
  verifies as a certificate or a statement. That is Ed25519 with a prefix, hence the algorithm's own name;
- time is a parameter.

This module knows no server and no client library, and both sides use it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from http_message_signatures import HTTPMessageSigner, HTTPMessageVerifier, HTTPSignatureKeyResolver
from http_message_signatures.algorithms import HTTPSignatureAlgorithm
from http_message_signatures.exceptions import HTTPMessageSignaturesException
from http_message_signatures.structures import VerifyResult
from http_sf.compat import InnerList

from maia.errors import ExpiredError, MaiaError, MalformedError, SignatureError
from maia.principals import Kind, PublicKey, Signer, check_aware, public_key, verify_signature

WINDOW = timedelta(seconds=30)
"""How far a request's time may lie from the server's, on either side."""

NONCE_LENGTH = 16
SESSION_HEADER = "maia-session"
REQUEST_COMPONENTS = ("@method", "@authority", "@path", "@query", "content-digest", SESSION_HEADER)
ANSWER_COMPONENTS = ("@status", "content-digest", '"signature";req;key="maia"')
_LABEL = "maia"
_REQUEST_TAG = "maia-request"
_ANSWER_TAG = "maia-answer"
_MAX_FIELD = 4096
_BAD = "the message's signature does not verify"


class Fields(MutableMapping[str, str]):
    """Header fields by lower-case name; repeated lines of a name are joined, as RFC 9110 allows."""

    def __init__(self, lines: Iterable[tuple[str, str]] = ()) -> None:
        """Take field lines in order."""
        self._fields: dict[str, str] = {}
        for name, value in lines:
            key = name.lower()
            self._fields[key] = f"{self._fields[key]}, {value}" if key in self._fields else value

    def __getitem__(self, name: str) -> str:
        """Return a field."""
        return self._fields[name.lower()]

    def __setitem__(self, name: str, value: str) -> None:
        """Set a field."""
        self._fields[name.lower()] = value

    def __delitem__(self, name: str) -> None:
        """Drop a field."""
        del self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        """Name the fields."""
        return iter(self._fields)

    def __len__(self) -> int:
        """Count the fields."""
        return len(self._fields)


@dataclass(slots=True, kw_only=True)
class ServiceRequest:
    """A request as both sides see it: ``url`` is absolute, ``headers`` may gain signature fields."""

    method: str
    url: str
    headers: Fields = field(default_factory=Fields)
    body: bytes = b""


@dataclass(slots=True, kw_only=True)
class Answer:
    """An answer and the request that it answers."""

    status_code: int
    headers: Fields
    body: bytes
    request: ServiceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """What a request's signature proves: which key sent this message, and when it says so."""

    key: PublicKey
    nonce: bytes
    created: datetime
    session: str


def sign_request(request: ServiceRequest, signer: Signer, *, session: str, nonce: bytes, at: datetime) -> None:
    """Sign a request, adding the fields that carry the signature.

    Args:
        request: The message; its host, path, query and body are final.
        signer: Whose request it is.
        session: The session that the handshake gave.
        nonce: A fresh random number.
        at: Now.
    """
    check_aware(at)
    request.headers[SESSION_HEADER] = session
    _sign(request, signer, REQUEST_COMPONENTS, tag=_REQUEST_TAG, nonce=encode_octets(nonce), at=at)


def verify_request(request: ServiceRequest, *, at: datetime, window: timedelta = WINDOW) -> SignedRequest:
    """Check a request's signature and that it is fresh; whether it was used before is the caller's question.

    Raises:
        MalformedError: There is no signature, or not in the required form.
        SignatureError: It does not verify.
        ExpiredError: Its time lies outside the window.
    """
    check_aware(at)
    result = _verify(request, _RequestKeys(), REQUEST_COMPONENTS, tag=_REQUEST_TAG)
    created = _instant(int(result.parameters["created"]))
    if abs(at - created) > window:
        raise ExpiredError("the request is not fresh: compare the clocks", code="STALE_REQUEST")
    nonce = decode_octets(str(result.nonce), length=NONCE_LENGTH)
    key = decode_key(str(result.parameters["keyid"]))
    return SignedRequest(key=key, nonce=nonce, created=created, session=request.headers[SESSION_HEADER])


def is_signed(request: ServiceRequest) -> bool:
    """Whether a request claims to be signed, so that its answer must be."""
    return "signature" in request.headers and "signature-input" in request.headers


def sign_answer(answer: Answer, signer: Signer, *, at: datetime) -> None:
    """Sign an answer to a signed request, adding the fields that carry the signature.

    Raises:
        MalformedError: The request's signature cannot be read, so that nothing can answer it.
    """
    check_aware(at)
    _sign(answer, signer, ANSWER_COMPONENTS, tag=_ANSWER_TAG, nonce=None, at=at)


def verify_answer(answer: Answer, server: PublicKey) -> None:
    """Check that an answer is the server's, and to this very request.

    Its time is not asked: the request that it answers was fresh.

    Raises:
        MalformedError: There is no signature, or not in the required form.
        SignatureError: It does not verify under the server's key.
    """
    _verify(answer, _OneKey(server), ANSWER_COMPONENTS, tag=_ANSWER_TAG)


def encode_octets(octets: bytes) -> str:
    """Write octets as base64url without padding."""
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")


def decode_octets(text: str, *, length: int) -> bytes:
    """Read exactly ``length`` octets from base64url without padding, in its one spelling.

    Raises:
        MalformedError: It is something else.
    """
    try:
        octets = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedError("not octets in base64url", code="OCTETS") from error
    if len(octets) != length or encode_octets(octets) != text:
        raise MalformedError(f"not {length} octets in base64url", code="OCTETS")
    return octets


def decode_blob(text: str, *, limit: int) -> bytes:
    """Read up to ``limit`` octets from base64url without padding, in its one spelling.

    Raises:
        MalformedError: It is something else, or more.
    """
    length = len(text) * 6 // 8
    if length > limit:
        raise MalformedError(f"more than {limit} octets", code="OCTETS")
    return decode_octets(text, length=length)


def encode_key(key: PublicKey) -> str:
    """Write a public key as it stands in ``keyid``."""
    return encode_octets(key.raw)


def decode_key(text: str) -> PublicKey:
    """Read a public key as it stands in ``keyid``.

    Raises:
        MalformedError: It is none.
    """
    return public_key(decode_octets(text, length=32))


class _PrefixedEd25519(HTTPSignatureAlgorithm):
    """Ed25519 over Maia's prefix for requests and the signature base."""

    algorithm_id = "maia-1-ed25519"

    def __init__(self, public_key: PublicKey | None = None, private_key: object = None) -> None:
        """Verify under a key; signing is the signer's, which shows no key."""
        del private_key
        self._key = public_key

    def verify(self, signature: bytes, message: bytes) -> None:
        """Check a signature."""
        if self._key is None:
            raise SignatureError(_BAD)
        verify_signature(Kind.REQUEST, message, signature, self._key)


class _RequestKeys(HTTPSignatureKeyResolver):
    """A request names its key."""

    def resolve_public_key(self, key_id: str) -> PublicKey:
        """Read the key."""
        return decode_key(key_id)


class _OneKey(HTTPSignatureKeyResolver):
    """An answer is of the one server that was asked."""

    def __init__(self, key: PublicKey) -> None:
        """Expect a key."""
        self._key = key

    def resolve_public_key(self, key_id: str) -> PublicKey:
        """Refuse any other key."""
        if key_id != encode_key(self._key):
            raise SignatureError(_BAD)
        return self._key


class _Verifier(HTTPMessageVerifier):
    """Leaves time to `verify_request`, which is told what time it is."""

    def validate_created_and_expires(self, sig_input: InnerList, max_age: object = None) -> None:
        """Ask only that there is a time, and no parameter that Maia does not use."""
        del max_age
        if set(sig_input.params) - {"nonce"} != {"created", "keyid", "alg", "tag"}:
            raise MalformedError("a signature with other parameters than Maia's", code="SIGNATURE_FORM")


def _sign(
    message: ServiceRequest | Answer,
    signer: Signer,
    components: tuple[str, ...],
    *,
    tag: str,
    nonce: str | None,
    at: datetime,
) -> None:
    http = HTTPMessageSigner(signature_algorithm=_PrefixedEd25519)
    try:
        prepared = http.prepare(
            message,
            key_id=encode_key(signer.public_key),
            created=at,
            nonce=nonce,
            label=_LABEL,
            tag=tag,
            covered_component_ids=components,
            body=message.body,
        )
        http.apply(message, prepared, signer.sign(Kind.REQUEST, prepared.signature_base))
    except (HTTPMessageSignaturesException, ValueError) as error:
        raise MalformedError("the message cannot be signed", code="SIGNATURE_FORM") from error


def _verify(
    message: ServiceRequest | Answer, keys: HTTPSignatureKeyResolver, components: tuple[str, ...], *, tag: str
) -> VerifyResult:
    fields = message.headers
    for name in ("signature-input", "signature", "content-digest"):
        if name not in fields:
            raise MalformedError(f"the message has no `{name}`", code="NOT_SIGNED")
        if len(fields[name]) > _MAX_FIELD:
            raise MalformedError(f"`{name}` is too long", code="SIGNATURE_FORM")
    http = _Verifier(signature_algorithm=_PrefixedEd25519, key_resolver=keys)
    try:
        results = http.verify(message, max_age=None, expect_tag=tag, require_components=components, body=message.body)
    except MaiaError:
        raise
    except (HTTPMessageSignaturesException, ValueError) as error:
        raise _cause_of(error) from error
    if len(results) != 1 or len(results[0].covered_components) != len(components) + 1:
        raise MalformedError("a message has one signature over just what Maia asks for", code="SIGNATURE_FORM")
    return results[0]


def _instant(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise MalformedError("a signature of no time", code="SIGNATURE_FORM") from error


def _cause_of(error: Exception) -> MaiaError:
    """Tell a form that is wrong, which the library wraps, from a signature that does not verify."""
    cause = error.__cause__
    return cause if isinstance(cause, MaiaError) else SignatureError(_BAD)
