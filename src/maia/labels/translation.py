"""A label policy in the flow tags of one node: names of other nodes become those of this one, or deny.

Rules kept here:

- a URI that stands for a tag of this node, or that somebody resolves, is that tag, whatever it is called here;
- one that nobody resolves stays on data and is taken from everybody else: no reader, sink or component has it, so what
  carries it flows nowhere. Nobody vouches with it, and who asks for data that is vouched for by it gets none;
- tags of this node are not asked for: they flow on, whoever is away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from maia.errors import FlowError
from maia.labels.label import Label
from maia.labels.local import LocalTags, Resolve
from maia.labels.policy import DeclaredComponent, LabelPolicy, LabelReader
from maia.labels.symbolic import Carrier, SymbolicLabel


def known_tags(policy: LabelPolicy, resolve: Resolve) -> LocalTags:
    """Give the flow tags of a node whose policy this is, with those URIs that are resolved now."""
    found = LocalTags(resolve=resolve)
    asking = LocalTags(resolve=resolve)
    for name, uri in policy.names.items():
        found.create(name, uri=uri if _known(asking, uri) is not None else None)
    return found


def translated_policy(policy: LabelPolicy, tags: LocalTags) -> LabelPolicy:
    """Write a policy in the flow tags of this node.

    >>> from maia.labels import parse_label_policy
    >>> said = parse_label_policy(b'''
    ...     names.ident = "https://nhs.example/t/identifiable"
    ...     types.T.a.S = ["https://nhs.example/t/identifiable"]
    ...     types.T.b.S = ["https://else.example/t"]
    ...     readers.r.S = ["ident", "https://else.example/t"]''')
    >>> found = translated_policy(said, known_tags(said, lambda uri: uri.startswith("https://nhs.example/")))
    >>> sorted(found.types["T"]["a"].secrecy | found.types["T"]["b"].secrecy), sorted(found.readers["r"].label.secrecy)
    (['https://else.example/t', 'ident'], ['ident'])
    """
    return replace(
        policy,
        types={name: {item: _carried(label, tags) for item, label in said.items()}
               for name, said in policy.types.items()},
        readers={name: LabelReader(label=_target(item.label, tags), frames=_only(item.frames, tags))
                 for name, item in policy.readers.items()},
        sinks={name: _target(item, tags) for name, item in policy.sinks.items()},
        components={name: _component(item, tags) for name, item in policy.components.items()},
    )  # fmt: skip


def outside_labels(said: Mapping[str, SymbolicLabel], tags: LocalTags) -> dict[str, Label]:
    """Write the labels of a type's attributes in names that other nodes can resolve; families with their attributes.

    Raises:
        FlowError: A tag has no global name: ``TAG_LOCAL``.
    """
    found = {}
    for name, label in said.items():
        carried = (f"{tags.name_outside(item.family)}({item.column})" for item in label.carriers)
        secrecy = frozenset((*map(tags.name_outside, label.secrecy), *carried))
        found[name] = Label(secrecy=secrecy, integrity=frozenset(map(tags.name_outside, label.integrity or ())))
    return found


def policy_tags(policy: LabelPolicy) -> frozenset[str]:
    """List the flow tags of which a policy speaks, families as a whole."""
    labels = [label.shown() for said in policy.types.values() for label in said.values()]
    labels += [*(item.label for item in policy.readers.values()), *policy.sinks.values()]
    found = {tag for label in labels for tag in label.secrecy | label.integrity}
    found |= {tag for item in policy.readers.values() for tag in item.frames}
    components = [item.component for item in policy.components.values()]
    return frozenset(found.union(*(item.declassify | item.endorse for item in components)))


def _known(tags: LocalTags, tag: str) -> str | None:
    """Give what a tag is called here; nothing when nobody resolves it."""
    try:
        return tags.name_here(tag)
    except FlowError:
        return None


def _only(names: Iterable[str], tags: LocalTags) -> frozenset[str]:
    """Keep what is known here.

    SECURITY: a tag that nobody resolves is nobody's to read, to let out or to vouch with.
    """
    return frozenset(found for name in names if (found := _known(tags, name)) is not None)


def _kept(names: Iterable[str], tags: LocalTags) -> frozenset[str]:
    """Keep all: what is known by its name here, what is not as it is, and that flows nowhere."""
    return frozenset(_known(tags, name) or name for name in names)


def _carried(label: SymbolicLabel, tags: LocalTags) -> SymbolicLabel:
    carriers = frozenset(
        Carrier(family=_known(tags, item.family) or item.family, column=item.column, values=item.values)
        for item in label.carriers
    )
    integrity = None if label.integrity is None else _only(label.integrity, tags)
    return SymbolicLabel(secrecy=_kept(label.secrecy, tags), integrity=integrity, carriers=carriers)


def _target(label: Label, tags: LocalTags) -> Label:
    return Label(secrecy=_only(label.secrecy, tags), integrity=_kept(label.integrity, tags))


def _component(item: DeclaredComponent, tags: LocalTags) -> DeclaredComponent:
    component = item.component
    kept = replace(component, declassify=_only(component.declassify, tags), endorse=_only(component.endorse, tags))
    return replace(item, component=kept)
