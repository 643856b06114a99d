"""The verbs of flow labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from maia.conformance.fields import Json, objects, wrong
from maia.labels import Label, Privilege, can_flow, join


def flows(request: Json) -> bool:
    """``label.flows``: whether data may go from one label to another."""
    return can_flow(
        label_of(request.get("from"), "from"), label_of(request.get("to"), "to"), _privilege(request.get("privileges"))
    )


def join_labels(request: Json) -> dict[str, object]:
    """``label.join``: the label of what is made from all of them."""
    joined = join(label_of(value, "labels") for value in objects(request, "labels"))
    return {"S": sorted(joined.secrecy), "I": sorted(joined.integrity)}


def label_of(value: object, name: str) -> Label:
    """Read ``{"S": […], "I": […]}``; a part that is left out is empty."""
    if not isinstance(value, dict) or not set(value) <= {"S", "I"}:
        raise wrong(name, "a label")
    return Label(secrecy=_tags(value.get("S", []), name), integrity=_tags(value.get("I", []), name))


def _privilege(value: object) -> Privilege:
    if value is None:
        return Privilege()
    if not isinstance(value, dict) or not set(value) <= {"declassify", "endorse"}:
        raise wrong("privileges", "tags to declassify and to endorse")
    return Privilege(
        declassify=_tags(value.get("declassify", []), "privileges"),
        endorse=_tags(value.get("endorse", []), "privileges"),
    )


def _tags(value: object, name: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise wrong(name, "lists of tags")
    return frozenset(value)


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"label.flows": flows, "label.join": join_labels}
