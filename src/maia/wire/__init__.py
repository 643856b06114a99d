"""What services and their clients say to each other: signed messages, handshakes, problems."""

from __future__ import annotations

from maia.wire.handshake import (
    CHALLENGE_LENGTH,
    LOOPBACK,
    RANDOM_LENGTH,
    Challenger,
    ServerProof,
    answer_challenge,
    channel_of,
)
from maia.wire.messages import (
    NONCE_LENGTH,
    WINDOW,
    Answer,
    Fields,
    ServiceRequest,
    decode_blob,
    decode_key,
    decode_octets,
    encode_key,
    encode_octets,
    is_signed,
    sign_answer,
    sign_request,
    verify_answer,
    verify_request,
)
from maia.wire.problems import (
    MEDIA_TYPE,
    SCHEMA,
    Problem,
    UnauthenticatedError,
    authentication_problem,
    declared,
    problem_of,
)
from maia.wire.strict_json import read_json

__all__ = [
    "CHALLENGE_LENGTH",
    "LOOPBACK",
    "MEDIA_TYPE",
    "NONCE_LENGTH",
    "RANDOM_LENGTH",
    "SCHEMA",
    "WINDOW",
    "Answer",
    "Challenger",
    "Fields",
    "Problem",
    "ServerProof",
    "ServiceRequest",
    "UnauthenticatedError",
    "answer_challenge",
    "authentication_problem",
    "channel_of",
    "declared",
    "decode_blob",
    "decode_key",
    "decode_octets",
    "encode_key",
    "encode_octets",
    "is_signed",
    "problem_of",
    "read_json",
    "sign_answer",
    "sign_request",
    "verify_answer",
    "verify_request",
]
