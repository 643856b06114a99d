"""Of which types a home's label policy speaks, and what that says of the attributes of each type akin to them.

Rules kept here:

- a name in the policy is that of a type that the home knows. A name that stands for no type, or for one that was named
  before, closes every read. Without an owner it speaks of every type of that name: a stranger that defines another one
  closes nothing by it, and opens nothing; the check of the policy asks for the owner then;
- an attribute that a type inherits has the labels that the policy gives it in any type of the lineage; whoever reads a
  type reads the events of those that extend it too, so their labels count as well;
- what is published to a type is judged by the labels of its lineage alone, which never are above those by which it is
  read;
- a sub-topic has the labels of the topics above it, attribute by attribute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from maia.domain.snapshot import Snapshot
from maia.domain.types import find_versions, show_type
from maia.errors import EncodingError, NotFoundError, UncheckedError
from maia.events import EventType, TypeId, TypeName, lineage
from maia.home import Home
from maia.labels import PUBLIC, LabelPolicy, RelationLabel, SymbolicLabel, whole_family


def labels_of_type(
    home: Home, policy: LabelPolicy, known: Snapshot, event_type: EventType, *, sink: bool = False
) -> RelationLabel | None:
    """Label the events of a version.

    Args:
        home: Whose policy.
        policy: The policy.
        known: The home's evidence.
        event_type: The version, with what it inherits.
        sink: Whether something is published to it, and not read.

    Returns:
        The label; nothing when the policy does not speak of the type, nor of any that is akin.

    Raises:
        UncheckedError: The policy does not fit the types that are known here: ``LABELS_UNKNOWN``.
    """
    named = _label_types(home, policy, known)
    akin = {item.type_id for item in known.sessions.lineage(event_type)}
    if not sink:
        akin |= known.sessions.children(event_type.type_id).keys()
    topics = _topics_above(known, event_type)
    spoken = (akin | topics) & named.keys()
    if not spoken:
        return None
    found: dict[str, SymbolicLabel] = {}
    for type_id in sorted(spoken):
        versions = [item.event_type for item in known.versions(type_id)]
        places = _places(versions, event_type, by_name=type_id in topics)
        for attribute, label in _said(policy, named[type_id], versions).items():
            for name in places.get(attribute, ()):
                moved = _moved(label, places)
                found[name] = found[name].join(moved) if name in found else moved
    public = SymbolicLabel.of(PUBLIC)
    return RelationLabel(columns={item.name: found.get(item.name, public) for item in event_type.attributes})


def check_label_policy(home: Home, policy: LabelPolicy, known: Snapshot) -> None:
    """Refuse a policy that names types or attributes that nobody knows here.

    Raises:
        UncheckedError: It does: ``LABELS_UNKNOWN``.
    """
    named = _label_types(home, policy, known)
    for text in policy.types:
        meant = [item for item, said in named.items() if said == text]
        if len(meant) > 1:
            shown = sorted({show_type(home, item).rpartition("@")[0] for item in _named(home, text, known)})
            raise _unknown(f"`{text}` in the label policy may be any of: `{'`, `'.join(shown)}`")
    for type_id, text in named.items():
        _said(policy, text, [item.event_type for item in known.versions(type_id)])


def _label_types(home: Home, policy: LabelPolicy, known: Snapshot) -> dict[TypeId, str]:
    """Find the types that a policy names; what names one type goes before what may mean several."""
    meant = {text: {item.type_id for item in _named(home, text, known)} for text in policy.types}
    found: dict[TypeId, str] = {}
    for text, types in sorted(meant.items(), key=lambda item: len(item[1])):
        new = types - found.keys()
        if not new:
            raise _unknown(f"the label policy names `{text}` twice")
        found |= dict.fromkeys(new, text)
    return found


def _named(home: Home, text: str, known: Snapshot) -> tuple[TypeName, ...]:
    # What verifies goes first, so that a definition that somebody put beside the others makes no name unclear.
    verified = [item.event_type.name for item, _ in known.types]
    try:
        return find_versions(home, text, among=verified)
    except NotFoundError:
        pass
    try:
        return find_versions(home, text, among=known.names)
    except NotFoundError as error:
        raise _unknown(f"the label policy names `{text}`, and {error.message}") from error


def _said(policy: LabelPolicy, text: str, versions: list[EventType]) -> Mapping[str, SymbolicLabel]:
    if not versions:
        return {}  # no version verifies, so none is read
    try:
        return policy.said(text, {item.name for version in versions for item in version.attributes})
    except EncodingError as error:
        raise _unknown(error.message) from error


def _topics_above(known: Snapshot, event_type: EventType) -> set[TypeId]:
    if not event_type.options.topic:
        return set()
    above, owner = lineage(event_type.name.name)[:-1], event_type.name.owner_id
    topics = (item.event_type for item, _ in known.types if item.event_type.options.topic)
    return {item.type_id for item in topics if item.name.owner_id == owner and item.name.name in above}


def _places(versions: list[EventType], seen: EventType, *, by_name: bool) -> dict[str, set[str]]:
    """Say what attributes of any version of a type are called in the version that is seen, where they are there."""
    here = {item.name if by_name else item.uid: item.name for item in seen.attributes}
    found: dict[str, set[str]] = defaultdict(set)
    for version in versions:
        for item in version.attributes:
            name = here.get(item.name if by_name else item.uid)
            if name is not None:
                found[item.name].add(name)
    return found


def _moved(label: SymbolicLabel, places: Mapping[str, set[str]]) -> SymbolicLabel:
    """Follow carriers to a version; one that is not there stands for its whole family."""
    gone = frozenset(whole_family(item.family) for item in label.carriers if not places.get(str(item.column)))
    carriers = frozenset(
        replace(item, column=name) for item in label.carriers for name in places.get(str(item.column), ())
    )
    return replace(label, secrecy=label.secrecy | gone, carriers=carriers)


def _unknown(what: str) -> UncheckedError:
    return UncheckedError(f"{what}, so nobody knows what may flow", code="LABELS_UNKNOWN")
