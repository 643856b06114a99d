"""The conformance verb of XML policies: texts and a request, answered by `maia.policy.xml`."""

from __future__ import annotations

from collections.abc import Callable

from maia.conformance.fields import Json, VerbAnswer, field, wrong
from maia.policy import PolicySyntaxError, xml


def xml_decide(request: Json) -> dict[str, object] | VerbAnswer:
    """Decide under all texts together; refused when one of them is not valid."""
    texts = request.get("policies")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise wrong("policies", "a list of texts")
    at = xml.parse_clock(field(request, "at", str))
    if at is None:
        raise wrong("at", "a time of the day, `HH:MM`")
    asked = _asked(field(request, "request", dict))
    try:
        policies = [xml.parse_xml(text) for text in texts]
    except PolicySyntaxError as error:
        return VerbAnswer("refused", error.code)
    decision = xml.decide(policies, asked, at=at)
    return {
        "decision": "allow" if decision else "deny",
        "handlers": [handler.to_json() for handler in decision.handlers],
    }


def _asked(request: Json) -> xml.See | xml.Install:
    match dict(request):
        case {"see": [str(user), str(camera)], **others} if not others:
            return xml.See(user=user, camera=camera)
        case {"install": [str(user), str(filter_), str(channel)], **others} if not others:
            return xml.Install(user=user, filter=filter_, channel=channel)
    raise wrong("request", "`see` with user and camera, or `install` with user, filter and channel")


VERBS: dict[str, Callable[[Json], object]] = {"xml.decide": xml_decide}
