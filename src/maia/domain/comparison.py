"""What principals of a home are shown of a type, compared: implies, equivalent, disjoint, always, never, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from maia.authority import Action
from maia.encoding import html_table
from maia.errors import UncheckedError
from maia.events import EventType, TypeName, value_to_json
from maia.principals import KeyId
from maia.reasoning import (
    AttributeRight,
    Rights,
    Verdict,
    World,
    always,
    disjoint,
    equivalent,
    errors,
    implies,
    never,
    offers_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The answer to one question.

    Attributes:
        question: ``implies``, ``equivalent`` or ``disjoint``; ``always`` or ``never`` of one attribute.
        attribute: The attribute in question, or the one of the cell that shows that the answer is no.
        holds: Yes, no, or nothing when it cannot be told.
        witness: A row that shows that the answer is no, by name.
        doubt: Why it cannot be told.
    """

    question: str
    attribute: str
    holds: bool | None
    witness: Mapping[str, object] | None = None
    doubt: str = ""

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "question": self.question, "attribute": self.attribute, "holds": self.holds,
            "witness": None if self.witness is None else dict(self.witness), "doubt": self.doubt,
        }  # fmt: skip

    def __str__(self) -> str:
        """Say it."""
        what = f"{self.question} {self.attribute}".rstrip() if self.question in ("always", "never") else self.question
        if self.holds is None:
            return f"{what:<24} cannot be told: {self.doubt}"
        if self.holds:
            return f"{what:<24} yes"
        where = f" in `{self.attribute}`" if self.question not in ("always", "never") else ""
        return f"{what:<24} no{where}: {dict(self.witness or {})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What one principal is shown of a type, beside another or alone."""

    left: str
    right: str | None
    type: str
    answers: tuple[Compared, ...]
    errors: tuple[str, ...]

    def __getitem__(self, question: str) -> bool | None:
        """Give the answer to a question between two: ``implies``, ``equivalent``, ``disjoint``."""
        return next(item.holds for item in self.answers if item.question == question)

    @property
    def witness(self) -> Mapping[str, object] | None:
        """A row that shows the first answer that is no."""
        return next((item.witness for item in self.answers if item.holds is False), None)

    @property
    def complete(self) -> bool:
        """Whether all questions were answered."""
        return all(item.holds is not None for item in self.answers)

    def lines(self) -> list[str]:
        """Say it, one question a line."""
        other = "" if self.right is None else f" and {self.right}"
        out = [f"{self.left}{other}, of `{self.type}`", *(f"  {item}" for item in self.answers)]
        return out + [f"  error: {line}" for line in self.errors]

    def __str__(self) -> str:
        """Say it in one text."""
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        """Say it as `str` does."""
        return f"<{'; '.join(self.lines())}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = [(item.question, item.attribute, str(item.holds), str(item.witness or "")) for item in self.answers]
        return html_table(self.lines()[0], ("question", "attribute", "holds", "witness"), rows)

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "left": self.left, "right": self.right, "type": self.type,
            "answers": [item.to_json() for item in self.answers], "errors": list(self.errors),
            "complete": self.complete,
        }  # fmt: skip


def compare_principals(
    name: TypeName,
    left: tuple[str, KeyId, World],
    right: tuple[str, KeyId, World] | None,
    action: Action = Action.SUBSCRIBE,
) -> Comparison:
    """Compare what two principals are shown, each in a world of its own; or what one is always and never shown.

    Args:
        name: The type.
        left: What the first is called, its key, and the world in which it is looked at.
        right: The second.
        action: Whether they read or write.
    """
    first, names = _rights(name, left, action), _names(name, left[2])
    if right is None:
        asked = [
            _ask(question, attribute, partial(ask, first, uid), names)
            for uid, attribute in names.items()
            for question, ask in (("always", always), ("never", never))
        ]
    else:
        names = _names(name, right[2]) | names
        second = _rights(name, right, action)
        pairs = (("implies", implies), ("equivalent", equivalent), ("disjoint", disjoint))
        asked = [_ask(question, "", partial(ask, first, second), names) for question, ask in pairs]
    return Comparison(
        left=left[0], right=None if right is None else right[0], type=name.name, answers=tuple(asked),
        errors=_errors(first, names),
    )  # fmt: skip


def _rights(name: TypeName, who: tuple[str, KeyId, World], action: Action) -> Rights[str]:
    """Give what a principal is shown of all versions of a type."""
    _, key, world = who
    offers: dict[str, list[AttributeRight]] = {}
    for version in world.versions(name.type_id):
        clauses = world.clauses(key, action, version)
        for item in version.attributes:
            offers.setdefault(str(item.uid), []).extend(offers_of(clauses, str(item.uid)))
    return Rights(world.sessions.kinds(name.type_id), offers)


def _names(name: TypeName, world: World) -> dict[str, str]:
    versions: tuple[EventType, ...] = world.versions(name.type_id)
    return {str(item.uid): item.name for version in reversed(versions) for item in version.attributes}


def _ask(question: str, attribute: str, look: Callable[[], Verdict[str]], names: Mapping[str, str]) -> Compared:
    try:
        found = look().witness
    except UncheckedError as error:
        return Compared(question=question, attribute=attribute, holds=None, doubt=f"[{error.code}] {error.message}")
    if found is None:
        return Compared(question=question, attribute=attribute, holds=True)
    row = {names[uid]: value_to_json(value) for uid, value in found.row.items() if uid in names}
    return Compared(question=question, attribute=attribute or names[found.place], holds=False, witness=row)


def _errors(rights: Rights[str], names: Mapping[str, str]) -> tuple[str, ...]:
    try:
        found = errors(rights)
    except UncheckedError as error:
        return (f"[{error.code}] {error.message}",)
    return tuple(
        f"what a right on `{names[place]}` asks of `{names.get(uid, uid)}` no value meets" for place, uid in found
    )
