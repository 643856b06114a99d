"""What a right on a type does not give: the attributes that the type inherits, which rights on its parents decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from maia.authority import Action, Decision, KnownVersions, ask_type
from maia.domain.questions import RightQuestion
from maia.events import EventType
from maia.home import Folder, extended_definitions, words
from maia.principals import principal_id


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedRight:
    """Whether somebody holds the same right on a type that another one extends.

    Attributes:
        type: The parent, as people name it here.
        attributes: What is inherited from it, by name.
        action: What was asked for.
        decision: Whether it is held.
    """

    type: str
    attributes: tuple[str, ...]
    action: str
    decision: Decision

    def text(self, home: Folder) -> str:
        """Say it in a line."""
        names = ", ".join(f"`{name}`" for name in self.attributes) or "nothing"
        error = self.decision.error
        held = "held" if error is None else f"closed: [{error.code}] {home.decorate(error.message)}"
        return f"{self.action} {names}, inherited from `{self.type}`: {held}"

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        error = self.decision.error
        return {
            "type": self.type, "attributes": list(self.attributes), "action": self.action,
            "held": self.decision.allowed, "error": None if error is None else error.code,
        }  # fmt: skip


def inherited_rights(question: RightQuestion) -> tuple[InheritedRight, ...]:
    """Ask for the same right on every type that the types in question extend."""
    found: dict[tuple[str, str], InheritedRight] = {}
    for view in words.views(question.request.wanted.to_sexp(), question.home) or ():
        actions = [action for action in (Action.PUBLISH, Action.SUBSCRIBE) if action.value in (view.actions or ())]
        for definition in _versions(question, view):
            for parent in extended_definitions(question.home, definition):
                for action in actions:
                    name, uids = parent.name, (item.uid for item in parent.attributes)
                    known = KnownVersions.of([(name.version.text, uids)])
                    request = ask_type(action, name.owner, name.name, name.version.text, known)
                    asked = replace(question, request=request, challenge=None)
                    owner = question.home.names.get(name.owner_id) or words.show_subject(name.owner, question.home)
                    shown = f"{owner}/{name.name}@{name.version.text}"
                    found[shown, action.value] = InheritedRight(
                        type=shown, attributes=tuple(item.name for item in parent.attributes), action=action.value,
                        decision=asked.decide(),
                    )  # fmt: skip
    return tuple(found.values())


def _versions(question: RightQuestion, view: words.RightView) -> Iterator[EventType]:
    """List the versions kept here that a right is about."""
    owner = question.request.owner
    if owner is not None and view.kind == "type" and view.name is not None:
        for version in question.home.versions(principal_id(owner), view.name):
            if view.version in (None, version.name.version.text):
                yield version
