"""Frames between a gateway and its clients: one JSON object a message, over WebSocket (``maia.json.v1``).

    client                          gateway
    hello     key, nonce            challenge  key, challenge, nonce, proof, certificates, statements
    prove     own_nonce, proof      welcome    client, limits
    advertise, unadvertise          done       id
    publish                         published  id, commit, events, refused …
    subscribe                       subscribed id, name, after
    unsubscribe                     done       id
    credit    name, events          events     name, rows, after
                                    ended      name, status, code
                                    problem    id, status, code

The handshake is that of the services (handshake.py): both sides sign the other's random number, the other's identity
and the channel. Rules kept here:

- a frame is an object with one reading, with just the fields of its operation, each of its kind and within its limit;
  one that is not is refused, and so is an operation that is none: clients manage no types here;
- a request has a number of its client's, and its answer the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maia.errors import MalformedError
from maia.wire.handshake import RANDOM_LENGTH
from maia.wire.messages import decode_blob, decode_octets
from maia.wire.problems import Problem
from maia.wire.strict_json import read_json

JSON_PROTOCOL = "maia.json.v1"
GATEWAY_PATH = "/v1/connect"
OPERATIONS = ("advertise", "publish", "subscribe", "unadvertise", "unsubscribe")
"""What a client may ask for, and nothing else."""
MAX_FRAME = 1 << 20
MAX_ROWS = 10_000
MAX_CREDIT = 10_000
MAX_CREDENTIALS = 16
_MAX_CERTIFICATE = 16 << 10
_MAX_DEFINITION = 256 << 10
_MAX_TEXT = 4096
_MAX_NUMBER = 2**53 - 1
MAX_HELLO = 1 << 10
MAX_PROVE = MAX_HELLO + MAX_CREDENTIALS * (_MAX_CERTIFICATE * 4 // 3 + 8)
"""What a client needs at most before its key is proven: a `hello`, and a `prove` with all its certificates."""

# For each operation its fields: the kind of each, and whether it must be there.
_SHAPES: Mapping[str, Mapping[str, tuple[str, bool]]] = {
    "hello": {"key": ("key", True), "nonce": ("random", True)},
    "prove": {"own_nonce": ("random", True), "proof": ("signature", True), "credentials": ("certificates", False)},
    "advertise": {
        "id": ("number", True), "type": ("text", False), "definition": ("definition", False),
        "version": ("text", False), "where": ("text", False), "credentials": ("certificates", False),
    },
    "unadvertise": {"id": ("number", True), "type": ("text", True), "version": ("text", False)},
    "publish": {
        "id": ("number", True), "type": ("text", True), "version": ("text", False), "rows": ("rows", True),
        "publication": ("text", False),
    },
    "subscribe": {
        "id": ("number", True), "name": ("text", True), "type": ("text", False), "definition": ("definition", False),
        "version": ("text", False), "where": ("text", False), "after": ("text", False), "credit": ("credit", False),
        "credentials": ("certificates", False),
    },
    "unsubscribe": {"id": ("number", True), "name": ("text", True)},
    "credit": {"name": ("text", True), "events": ("credit", True)},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GatewayFrame:
    """What a client says: an operation and its fields, read and within their limits."""

    operation: str
    fields: Mapping[str, Any]

    @property
    def number(self) -> int | None:
        """The number of the request; none in the handshake, and of credit."""
        found: int | None = self.fields.get("id")
        return found


class FrameError(MalformedError):
    """A frame that is refused; of which request it was, where that can be told."""

    default_code = "FRAME"

    def __init__(self, message: str, *, number: int | None = None) -> None:
        """Keep the request's number."""
        super().__init__(message)
        self.number = number


def read_frame(data: bytes) -> GatewayFrame:
    """Read what a client sent.

    Raises:
        FrameError: It is no frame of this protocol.

    >>> read_frame(b'{"op": "unsubscribe", "id": 7, "name": "mine"}').fields["name"]
    'mine'
    >>> read_frame(b'{"op": "addEventType", "id": 8}')
    Traceback (most recent call last):
    ...
    maia.wire.gateway.FrameError: [FRAME] there is no operation `addEventType` ...
    """
    try:
        value = read_json(data)
    except MalformedError as error:
        raise FrameError(error.message) from error
    if not isinstance(value, dict):
        raise FrameError("a frame is an object with an operation, `op`")
    operation, number = value.pop("op", None), value.get("id")
    number = number if _is_number(number, _MAX_NUMBER) else None
    shape = _SHAPES.get(operation) if isinstance(operation, str) else None
    if shape is None:
        raise FrameError(
            f"there is no operation `{str(operation)[:50]}`: a client has {', '.join(OPERATIONS)}", number=number
        )
    unknown = next((name for name in value if name not in shape), None)
    if unknown is not None:
        raise FrameError(f"`{operation}` has no field `{unknown[:50]}`", number=number)
    missing = next((name for name, (_, needed) in shape.items() if needed and name not in value), None)
    if missing is not None:
        raise FrameError(f"`{operation}` needs the field `{missing}`", number=number)
    try:
        return GatewayFrame(operation, {name: _field(shape[name][0], item) for name, item in value.items()})
    except MalformedError as error:
        raise FrameError(f"in `{operation}`: {error.message}", number=number) from error


def write_frame(operation: str, **fields: object) -> str:
    """Write a frame.

    >>> write_frame("done", id=7)
    '{"op":"done","id":7}'
    """
    return json.dumps({"op": operation, **fields}, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def problem_frame(problem: Problem, *, number: int | None = None) -> str:
    """Write a refusal, of a request or of the whole connection."""
    of = {} if number is None else {"id": number}
    detail = {"detail": problem.detail} if problem.detail else {}
    return write_frame("problem", **of, status=problem.status, code=problem.code, **detail)


def _field(kind: str, value: object) -> object:
    if kind == "number" and _is_number(value, _MAX_NUMBER):
        return value
    if kind == "credit" and _is_number(value, MAX_CREDIT):
        return value
    if kind == "rows" and isinstance(value, list) and len(value) <= MAX_ROWS:
        return value
    if kind == "certificates" and isinstance(value, list) and len(value) <= MAX_CREDENTIALS:
        return tuple(decode_blob(_text(item, 2 * _MAX_CERTIFICATE), limit=_MAX_CERTIFICATE) for item in value)
    if kind == "definition":
        return decode_blob(_text(value, 2 * _MAX_DEFINITION), limit=_MAX_DEFINITION)
    if kind in ("key", "random"):
        return decode_octets(_text(value, 64), length=RANDOM_LENGTH)
    if kind == "signature":
        return decode_octets(_text(value, 128), length=64)
    if kind == "text":
        return _text(value, _MAX_TEXT)
    raise MalformedError(f"a field is no {kind}, or too large", code="FRAME")


def _text(value: object, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit:
        raise MalformedError(f"a text has at most {limit} characters", code="FRAME")
    return value


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
