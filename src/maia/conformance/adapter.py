"""`maia conformance`: answers one JSON object a line with one JSON object a line, on the real functions.

Nothing here decides: verbs turn JSON into Maia's values, call the function that the product itself uses, and turn the
answer back. The process answers every line, also one that makes no sense, and never dies of one.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import BinaryIO

from maia.conformance.fields import VerbAnswer
from maia.conformance.lines import MAX_LINE, parse_line
from maia.conformance.shapes import check_fields
from maia.errors import MaiaError, VerificationError

Handler = Callable[[Mapping[str, object]], object]
FAMILIES = {
    "sexp": "trust",
    "tag": "trust",
    "name": "trust",
    "authority": "trust",
    "filter": "filters",
    "bound": "filters",
    "type": "types",
    "key": "keys",
    "parcel": "parcels",
    "oasis": "roles",
    "broker": "scenarios",
    "label": "labels",
    "reason": "reasoning",
    "release": "releases",
    "flow": "flow",
    "xml": "xml_policies",
    "overlay": "overlay",
}
_log = logging.getLogger(__name__)
_warming: list[threading.Thread] = []


def run(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer lines until the input ends."""
    while line := requests.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            while not line.endswith(b"\n") and line:
                line = requests.readline(MAX_LINE)  # the rest of a line that is too long
            reply: dict[str, object] = {"id": None, "error": "LINE_TOO_LONG", "message": "the line is too long"}
        elif not line.strip():
            continue
        else:
            reply = answer_line(line)
        answers.write(json.dumps(reply, ensure_ascii=True, allow_nan=False).encode() + b"\n")
        answers.flush()


def answer_line(line: bytes) -> dict[str, object]:
    """Answer one request line."""
    identity: object = None
    try:
        request = parse_line(line)
        identity = request.get("id")
        verb = request.get("verb")
        if not isinstance(verb, str):
            return {"id": identity, "error": "REQUEST_FIELD", "message": "field `verb` is not a str"}
        handler = _handler(verb)
        if handler is None:
            return {"id": identity, "error": "unknown-verb", "message": "the verb is unknown"}
        check_fields(verb, request)
        return {"id": identity, **_answer(handler, request)}
    except MaiaError as error:
        return {"id": identity, "error": error.code, "message": error.message}
    except Exception:  # noqa: BLE001 - the process answers every line and never dies of one
        _log.exception("a fault of the adapter itself")
        return {"id": identity, "error": "internal", "message": "a fault of the adapter itself"}


def _answer(handler: Handler, request: Mapping[str, object]) -> dict[str, object]:
    try:
        result = handler(request)
    except VerificationError as error:
        result = VerbAnswer("refused", error.code)
    return result.to_json() if isinstance(result, VerbAnswer) else {"result": result}


def _handler(verb: str) -> Handler | None:
    family = FAMILIES.get(verb.partition(".")[0])
    if family is None:
        return None
    if family == "scenarios":
        _warm_up_once()
    return _verbs(family).get(verb)


def _verbs(family: str) -> Mapping[str, Handler]:  # noqa: C901 - a table
    """Load a family of verbs when the first of them is asked for."""
    match family:
        case "trust":
            from maia.conformance.trust import VERBS
        case "filters":
            from maia.conformance.filters import VERBS
        case "types":
            from maia.conformance.types import VERBS
        case "keys":
            from maia.conformance.keys import VERBS
        case "parcels":
            from maia.conformance.parcels import VERBS
        case "roles":
            from maia.conformance.roles import VERBS
        case "scenarios":
            from maia.conformance.scenarios import VERBS
        case "reasoning":
            from maia.conformance.reasoning import VERBS
        case "releases":
            from maia.conformance.releases import VERBS
        case "flow":
            from maia.conformance.flow import VERBS
        case "xml_policies":
            from maia.conformance.xml_policies import VERBS
        case "overlay":
            from maia.conformance.overlay import VERBS
        case _:
            from maia.conformance.labels import VERBS
    return VERBS


def _warm_up_once() -> None:
    """Begin to start Spark when scenarios come, so that the first one that asks for it waits less."""
    if not _warming:
        from maia.conformance.spark_engine import warm_up

        _warming.append(threading.Thread(target=warm_up, daemon=True))
        _warming[0].start()
