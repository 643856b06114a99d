"""Which fields the objects of a request may have; any other is an error, wherever it stands.

A shape names its fields and, for a field that holds objects or lists of them, the shape of those. Whether a field is
there and of the right type is its reader's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from maia.errors import MalformedError

_LEAF = ""
_ANY = "any"


def _fields(leaves: str, **inner: str) -> dict[str, str]:
    return dict.fromkeys(leaves.split(), _LEAF) | inner


SHAPES: Mapping[str, Mapping[str, str]] = {
    "subject": _fields("key", name="subject", hash="subject", threshold="threshold"),
    "threshold": _fields("k n", of="subject"),
    "test": _fields("kind", signer="subject"),
    "right": _fields("actions attributes rows", type="subject", network="subject"),
    "certificate": _fields(
        "delegate tag not_before not_after name conditions raw sexp signature",
        issuer="subject", subject="subject", signed_by="subject", right="right", tests="test", tamper="certificate",
    ),
    "statement": _fields(
        "kind from to sequence certificates received nonce verifier signature",
        signer="subject", signed_by="subject", tamper="statement",
    ),
    "root": _fields("tag", subject="subject"),
    "asked": _fields("action", type="subject", network="subject"),
    "earlier": _fields("at", principal="subject", request="asked"),
    "challenge": _fields("nonce verifier until"),
    "version": _fields(
        "name version signature",
        owner="subject", signer="subject", attributes="attribute", credentials="certificate", previous="version",
        tamper="version",
    ),
    "attribute": _fields("name uid type"),
    "parcel": _fields("by at epoch", events=_ANY, type="version"),
    "edit": _fields("swap set flip", resign="subject"),
    "change": _fields("at do member valid_from valid_to"),
    "step": _fields("assert appoint retract activate as"),
    "label": _fields("S I"),
    "privileges": _fields("declassify endorse"),
    "scenario": _fields(
        "at", types="version", network="subject", certificates="certificate", statements="statement",
        subscriptions="subscription", events="event",
    ),
    "subscription": _fields("version filter", **{"as": "subject", "type": "subject"}),
    "event": _fields("version at", values=_ANY, **{"as": "subject", "type": "subject"}),
    "sexp.parse": _fields("canonical"),
    "tag.intersect": _fields("a b"),
    "tag.permits": _fields("tag request"),
    "name.resolve": _fields("at", certificates="certificate", name="subject"),
    "authority.decide": _fields(
        "at", roots="root", certificates="certificate", statements="statement", challenge="challenge",
        before="earlier", principal="subject", request="asked",
    ),
    "filter.matches": _fields("filter relation", event=_ANY, types=_ANY),
    "filter.covers": _fields("relation a b", types=_ANY),
    "filter.satisfiable": _fields("filter", types=_ANY),
    "filter.screen": _fields("rights filter", event=_ANY, types=_ANY),
    "bound.allows": _fields("bound kind side", subject=_ANY, types=_ANY),
    "type.verify": _fields("at", type="version", network="subject"),
    "type.translate": _fields("from to", versions="version", event=_ANY),
    "key.select": _fields("epochs grace skew stamp arrives"),
    "key.refreshes": _fields("period until", timeline="change"),
    "parcel.seal": _fields("epochs", type="version", parcels="parcel"),
    "parcel.open": _fields(
        "epochs grace skew open arrives", type="version", parcels="parcel", holds=_ANY, edits="edit"
    ),
    "oasis.run": _fields("rules", steps="step"),
    "label.flows": _fields("", **{"from": "label", "to": "label", "privileges": "privileges"}),
    "label.join": _fields("", labels="label"),
    "plan": _fields(
        "read select where on how group count declassify by", join="plan", union="plan", **{"from": "plan"}
    ),
    "flow.check": _fields("", sources=_ANY, plan="plan", sink="label", components=_ANY),
    "broker.run": _fields("engine", scenario="scenario"),
    "cell": _fields("attribute", type="subject", row=_ANY),
    "reason.who_can": _fields("at", scenario="scenario", cell="cell"),
    "reason.ends": _fields("at certificate", scenario="scenario"),
    "reason.compare": _fields("", a="right", b="right", types=_ANY),
    "release.apply": _fields("rules", to="destination", type="attributes", rows=_ANY),
    "destination": _fields("domain study"),
    "attributes": _fields("", attributes=_ANY),
    "xml.decide": _fields("policies at", request="xml-request"),
    "xml-request": _fields("see install"),
    "overlay.run": _fields("", brokers="place", types=_ANY, steps="move"),
    "place": _fields("name domain"),
    "move": _fields("advertise subscribe unsubscribe unadvertise kill join", publish=_ANY),
}  # fmt: skip


def check_fields(verb: str, request: Mapping[str, object]) -> None:
    """Refuse a request in which some object has a field that nobody reads.

    Raises:
        MalformedError: ``REQUEST_FIELD``, with the name of the field.

    >>> check_fields("label.join", {"id": 1, "verb": "label.join", "labels": [{"S": [], "T": []}]})
    Traceback (most recent call last):
    ...
    maia.errors.MalformedError: [REQUEST_FIELD] there is no field `T`
    """
    check_shape(verb, {name: value for name, value in request.items() if name not in ("id", "verb")})


def check_shape(shape: str, value: object) -> None:
    """Refuse an object, or a list of them, in which some object has a field that the shape does not have.

    Raises:
        MalformedError: ``REQUEST_FIELD``, with the name of the field.
    """
    stack: list[tuple[object, str]] = [(value, shape)]
    while stack:
        value, shape = stack.pop()
        if isinstance(value, list):
            stack.extend((item, shape) for item in value)
        elif isinstance(value, dict) and shape != _ANY:
            known = SHAPES.get(shape, {})
            for name, inner in value.items():
                if name not in known:
                    raise MalformedError(f"there is no field `{name}`", code="REQUEST_FIELD")
                stack.append((inner, known[name]))


def principals_in(shape: str, value: object) -> Iterator[object]:
    """Give what stands where a shape has principals, and certificates that are written as expressions.

    >>> list(principals_in("reason.who_can", {"cell": {"type": ["pito", "NP"], "row": {"key": "x"}}}))
    ['NP', 'pito']
    """
    stack: list[tuple[object, str]] = [(value, shape)]
    while stack:
        value, shape = stack.pop()
        if isinstance(value, list):
            stack.extend((item, shape) for item in value)
            continue
        if shape == "subject" or (shape == "certificate" and isinstance(value, dict) and "sexp" in value):
            yield value
        if isinstance(value, dict) and shape != _ANY:
            known = SHAPES.get(shape, {})
            stack.extend((inner, known[name]) for name, inner in value.items() if name in known)
