"""What changed between two versions, and which management right each change needs.

Attributes are matched by uid, never by name:

- a uid on both sides with another name was renamed (`editAttributeName`);
- a uid on one side only was added or removed (`addAttribute`, `removeAttribute`), whatever its name;
- a removed and an added attribute with one name and two types are one change of type (`editAttributeType`), which
  whoever may both remove and add may make as well. With one name *and* one type they are a removal and an addition: a
  new uid under an old name is not the old attribute, so nobody can pass this off as a rename;
- a uid on both sides with another type is no change at all but an error;
- an old uid under a name that another uid bore before needs the whole of `manage`: rights name uids and publishers name
  names, so whoever may only rename could otherwise lead the values of one attribute to the readers of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from maia.errors import MalformedError
from maia.events.attributes import Attribute, check_uids
from maia.events.definition import EventType


class ManageAction(StrEnum):
    """The parts into which the `manage` right divides; the words of the healthcare chapter."""

    ADD = "addAttribute"
    REMOVE = "removeAttribute"
    RENAME = "editAttributeName"
    RETYPE = "editAttributeType"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one attribute.

    Attributes:
        action: The right that allows it by itself.
        before: The attribute in the old version; ``None`` when it was added.
        after: The attribute in the new version; ``None`` when it was removed.
    """

    action: ManageAction
    before: Attribute | None = None
    after: Attribute | None = None

    def allowed_by(self, held: frozenset[ManageAction]) -> bool:
        """Tell whether these parts of `manage` allow the change."""
        if self.action in held:
            return True
        return self.action is ManageAction.RETYPE and {ManageAction.REMOVE, ManageAction.ADD} <= held

    def __str__(self) -> str:
        """Say the change in words."""
        old, new = self.before, self.after
        if old is None:
            return f"add `{new.name}` ({new.uid}, {new.type})" if new else ""
        if new is None:
            return f"remove `{old.name}` ({old.uid}, {old.type})"
        if old.uid == new.uid:
            return f"rename `{old.name}` to `{new.name}` ({old.uid})"
        return f"retype `{old.name}` from {old.type} ({old.uid}) to {new.type} ({new.uid})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What turns one version into another.

    Attributes:
        changes: Of attributes, in the order removed, renamed, retyped, added.
        options: Whether the options differ.
        extends: Whether the versions inherit from different types.
        taken: Old attributes that take over a name which another one bore before.
    """

    changes: tuple[Change, ...]
    options: bool
    extends: bool
    taken: tuple[Attribute, ...] = ()

    def of(self, action: ManageAction) -> tuple[Change, ...]:
        """Pick the changes of one kind."""
        return tuple(change for change in self.changes if change.action is action)

    def beyond(self, held: frozenset[ManageAction]) -> tuple[str, ...]:
        """Name what these parts of `manage` do not allow; options, inheritance and others' names need the whole right.

        Holding no part allows nothing, not even a version that changes nothing.
        """
        refused = [str(change) for change in self.changes if not change.allowed_by(held)]
        refused += [f"give `{item.name}`, which was another attribute, to uid `{item.uid}`" for item in self.taken]
        if self.options:
            refused.append("change the options")
        if self.extends:
            refused.append("change the inheritance")
        if not held:
            refused.append("issue a version")
        return tuple(refused)


def diff(old: EventType, new: EventType, earlier: Iterable[EventType] = ()) -> Diff:
    """Compare two versions of a type.

    Args:
        old: The version before.
        new: The version after.
        earlier: The versions before ``old``, as far as names that were borne once matter.

    Raises:
        MalformedError: They belong to two types, share a version number without being equal, or a uid changed its type.
    """
    if old.type_id != new.type_id:
        raise MalformedError("versions of two types cannot be compared", code="OTHER_TYPE")
    check_uids((old.attributes, new.attributes))
    before = {item.uid: item for item in old.attributes}
    after = {item.uid: item for item in new.attributes}
    renamed = [
        Change(action=ManageAction.RENAME, before=before[uid], after=item)
        for uid, item in after.items()
        if uid in before and before[uid].name != item.name
    ]
    gone = {item.name: item for uid, item in before.items() if uid not in after}
    come = {item.name: item for uid, item in after.items() if uid not in before}
    both = [name for name in gone if name in come and gone[name].type != come[name].type]
    retyped = [Change(action=ManageAction.RETYPE, before=gone[name], after=come[name]) for name in both]
    removed = [Change(action=ManageAction.REMOVE, before=item) for name, item in gone.items() if name not in both]
    added = [Change(action=ManageAction.ADD, after=item) for name, item in come.items() if name not in both]
    changes = (*removed, *renamed, *retyped, *added)
    if changes and old.name.version == new.name.version:
        raise MalformedError(f"two different versions are numbered `{new.name.version}`", code="VERSION_TAKEN")
    return Diff(
        changes=changes,
        options=old.options != new.options,
        extends=old.extends != new.extends,
        taken=_taken(old, new, earlier),
    )


def _taken(old: EventType, new: EventType, earlier: Iterable[EventType]) -> tuple[Attribute, ...]:
    """List the attributes of a version that are not new and bear a name that was another's, and not theirs just now."""
    bearers: dict[str, set[str]] = {}
    known: set[str] = set()
    for version in (old, *earlier):
        for item in version.attributes:
            bearers.setdefault(item.name, set()).add(item.uid)
            known.add(item.uid)
    return tuple(
        item
        for item in new.attributes
        if item.uid in known and item not in old.attributes and bearers.get(item.name, set()) - {item.uid}
    )


def check_meanings(new: EventType, previous: EventType | None, earlier: Iterable[EventType]) -> None:
    """Refuse a version in which an old uid has a new meaning.

    Args:
        new: The version to judge.
        previous: The version it came from, if that is known.
        earlier: Other versions of the type, in any order.

    Raises:
        MalformedError: A uid changes its type, or one that was removed comes back under a name it never had.
    """
    others = tuple(earlier)
    known = (new, *others) if previous is None else (new, previous, *others)
    check_uids(item.attributes for item in known)
    if previous is None:
        return
    for item in new.attributes:
        if item.uid in previous.uids:
            continue
        names = {old.name for version in others for old in version.attributes if old.uid == item.uid}
        # SECURITY: rights name uids; a removed one that returns as something else would be open to old rights.
        if names and item.name not in names:
            raise MalformedError(f"uid `{item.uid}` was another attribute before", code="UID_REUSED")
