"""What everybody may ask without a session: signed objects that are believed by themselves.

    GET /v1/open/statements    the lists that count now
    GET /v1/open/answer        whether certificates are good, for one decision of one verifier
    GET /v1/open/renewal       a certificate anew, for the key that proves itself by a fresh stamp

Certificates give the address of this service, and homes fetch from there with a plain request. Rules kept here:

- an answer is a bundle of signed objects (`maia.authority.bundle`), never cached;
- a renewal is for the key that signed the stamp, which serves once;
- what is asked is bounded, and unsigned requests leave room for those inside sessions (`Envelope`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import StringConstraints

from maia.access_control import AccessControl
from maia.authority import Challenge, bundle
from maia.errors import UsageError
from maia.principals import PublicKey, StampChecker, StampedProof
from maia.services.http import Now

_KIND = "application/octet-stream"
_MAX_ASKED = 16

_Hex = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Hash = Annotated[_Hex, Query()]


def open_routes(service: AccessControl) -> APIRouter:
    """Give the routes that need no session."""
    router = APIRouter(prefix="/open", tags=["everybody"])
    stamps = StampChecker(service.key.key_id)

    @router.get("/statements", response_class=Response)
    def statements(at: Now) -> Response:
        """Give the domain's validity lists that count now."""
        return _answer(bundle(b"statements", service.statements(at=at)))

    @router.get("/answer", response_class=Response)
    def answer(
        at: Now,
        nonce: Hash,
        verifier: Annotated[str, Query(min_length=1, max_length=64, pattern="^[!-~]+$")],
        until: datetime,
        certificate: Annotated[list[_Hex], Query(min_length=1, max_length=_MAX_ASKED)],
        about: Annotated[str, Query(alias="request", pattern="^([0-9a-f]{64})?$")] = "",
    ) -> Response:
        """Answer a verifier's one-time question: which of some certificates are good."""
        challenge = Challenge(
            nonce=bytes.fromhex(nonce), verifier=verifier, until=aware(until), request=bytes.fromhex(about) or None
        )
        asked = [bytes.fromhex(text) for text in certificate]
        return _answer(bundle(b"statements", [service.answer(challenge, asked, at=at).raw]))

    @router.get("/renewal", response_class=Response)
    def renewal(
        at: Now,
        certificate: Hash,
        key: Hash,
        stamp: datetime,
        proof: Annotated[str, Query(pattern="^[0-9a-f]{128}$")],
    ) -> Response:
        """Give a certificate anew to its own key."""
        shown = StampedProof(PublicKey(bytes.fromhex(key)), aware(stamp), service.key.key_id, bytes.fromhex(proof))
        who = stamps.check(shown, at=at)
        handed = service.renew_by_id(who, bytes.fromhex(certificate), at=at)
        return _answer(bundle(b"certificates", [item.raw for item in handed.certificates]))

    return router


def _answer(content: bytes) -> Response:
    return Response(content, media_type=_KIND)


def aware(moment: datetime) -> datetime:
    """Refuse an instant without a time zone."""
    if moment.tzinfo is None:
        raise UsageError("an instant has a time zone", code="NAIVE_TIME")
    return moment
