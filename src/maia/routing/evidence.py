"""Requests that any broker can check: what a client asks, when, by which credentials, under its own signature.

A request travels with an advertisement, a subscription or an event. Rules kept here: the signature covers the action,
the type, the subject and the stamp; a stamp outside the window is a replay; the key that signed must hold the right by
the credentials that came along, judged like any other request.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from maia.authority import Action, Verifier, ask_type
from maia.encoding import Sexp, encode
from maia.errors import ExpiredError, UsageError
from maia.principals import Kind, Principal, PublicKey, Signer, check_aware, principal_id, verify_signature

REPLAY_WINDOW = timedelta(minutes=5)
MAX_CREDENTIALS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRequest:
    """What a client asks of the network.

    Attributes:
        action: Publish or subscribe; advertising asks to publish.
        owner: Who owns the type.
        name: The type's name.
        subject: A hash of what exactly: a filter, or values.
        stamp: When the client asked.
        key: Who asks.
        signature: Its signature over the above.
        credentials: The certificates that give it the right.
    """

    action: Action
    owner: Principal
    name: str
    subject: bytes
    stamp: datetime
    key: PublicKey
    signature: bytes
    credentials: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        """Refuse more credentials than anybody looks at."""
        if len(self.credentials) > MAX_CREDENTIALS:
            raise UsageError(f"a request carries at most {MAX_CREDENTIALS} credentials", code="TOO_MANY_CREDENTIALS")

    @property
    def digest(self) -> bytes:
        """What tells this request from every other."""
        return hashlib.sha256(self.signature + _body(self)).digest()


def sign_request(
    signer: Signer,
    action: Action,
    owner: Principal,
    name: str,
    *,
    subject: bytes,
    at: datetime,
    credentials: tuple[bytes, ...] = (),
) -> NetworkRequest:
    """Ask for something, signed.

    >>> from datetime import UTC, datetime
    >>> from maia.principals import KeySigner
    >>> owner, now = KeySigner(bytes(32)), datetime(2026, 1, 1, tzinfo=UTC)
    >>> asked = sign_request(owner, Action.SUBSCRIBE, owner.public_key, "T", subject=b"x > 1", at=now)
    >>> verify_request(asked, Verifier(), at=now)
    1
    """
    made = NetworkRequest(
        action=action, owner=owner, name=name, subject=subject, stamp=check_aware(at), key=signer.public_key,
        signature=b"", credentials=credentials,
    )  # fmt: skip
    body = _body(made)
    return NetworkRequest(
        action=action, owner=owner, name=name, subject=subject, stamp=at, key=signer.public_key,
        signature=signer.sign(Kind.REQUEST, body), credentials=credentials,
    )  # fmt: skip


def verify_request(
    request: NetworkRequest, verifier: Verifier, *, at: datetime, window: timedelta = REPLAY_WINDOW
) -> int:
    """Check a request as any broker can.

    Returns:
        How many signatures stand behind it: the client's, and one for each link of its chain.

    Raises:
        ExpiredError: It was signed too long ago, or in the future; a copy of an old request is a replay.
        VerificationError: The signature or the right is not proven.
    """
    if abs(check_aware(at) - request.stamp) > window:
        raise ExpiredError("the request was not signed just now; sign it anew", code="STALE_REQUEST")
    verify_signature(Kind.REQUEST, _body(request), request.signature, request.key)
    grant = verifier.verify(
        ask_type(request.action, request.owner, request.name, None),
        principal=request.key, evidence=request.credentials, at=at,
    )  # fmt: skip
    return 1 + len(grant.proof.certificate_ids())


def _body(request: NetworkRequest) -> bytes:
    body: Sexp = (
        b"overlay-request", request.action.to_sexp(), principal_id(request.owner), request.name.encode(),
        request.subject, request.stamp.astimezone(UTC).isoformat(timespec="microseconds").encode(),
    )  # fmt: skip
    return encode(body)
