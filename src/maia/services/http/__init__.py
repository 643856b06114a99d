"""What the services share over HTTP: signed messages, handshakes, limits, problem details.

The messages and the handshake are for both sides; `make_app` and `Signed` need FastAPI and load it on first use.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

from maia.services.http.handshake import (
    CHALLENGE_LENGTH,
    LOOPBACK,
    RANDOM_LENGTH,
    Challenger,
    ServerProof,
    answer_challenge,
    channel_of,
)
from maia.services.http.messages import (
    NONCE_LENGTH,
    WINDOW,
    Answer,
    Fields,
    Request,
    SignedRequest,
    decode_blob,
    decode_key,
    decode_octets,
    encode_key,
    encode_octets,
    sign_answer,
    sign_request,
    verify_answer,
    verify_request,
)
from maia.services.http.strict_json import read_json

if _typing.TYPE_CHECKING:
    from maia.services.http.app import Body, Signed, blob_field, make_app, octets_field
    from maia.services.http.envelope import HttpLimits
    from maia.services.http.serving import Listening, running, serve
    from maia.services.http.sessions import Caller
    from maia.services.http.standby import Standby

__all__ = [
    "CHALLENGE_LENGTH",
    "LOOPBACK",
    "NONCE_LENGTH",
    "RANDOM_LENGTH",
    "WINDOW",
    "Answer",
    "Body",
    "Caller",
    "Challenger",
    "Fields",
    "HttpLimits",
    "Listening",
    "Request",
    "ServerProof",
    "Signed",
    "SignedRequest",
    "Standby",
    "answer_challenge",
    "blob_field",
    "channel_of",
    "decode_blob",
    "decode_key",
    "decode_octets",
    "encode_key",
    "encode_octets",
    "make_app",
    "octets_field",
    "read_json",
    "running",
    "serve",
    "sign_answer",
    "sign_request",
    "verify_answer",
    "verify_request",
]

_ON_FIRST_USE = {
    "Body": "app",
    "Caller": "sessions",
    "HttpLimits": "envelope",
    "Listening": "serving",
    "Signed": "app",
    "Standby": "standby",
    "blob_field": "app",
    "make_app": "app",
    "octets_field": "app",
    "running": "serving",
    "serve": "serving",
}


def __getattr__(name: str) -> object:
    """Load the server's side when it is asked for."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module `maia.services.http` has no attribute `{name}`")
    value: object = getattr(_import_module(f"maia.services.http.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = value
    return value
