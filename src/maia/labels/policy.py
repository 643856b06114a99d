"""The label policy of a domain: what its event types carry, to whom that may flow, and who may make exceptions.

    [types."uk.nhs.path_report"]
    patient-ID = { S = ["identifiable"] }
    path-report-text = { S = ["clinical(patient-ID)"], I = ["pathlab"] }

    [readers.ali]
    S = ["identifiable", "clinical(*)"]

    [readers.monitor]
    S = []
    frames = ["clinical(*)"]

    [roles]
    tags = ["clinical"]
    sequences = ["clinical"]

    [names]
    identifiable = "https://nhs.example/t/identifiable"

    [owners]
    "https://nhs.example/" = "hospital"

    [sinks."/srv/research"]
    S = ["clinical(*)"]

    [components.counter]
    does = "count"
    declassify = ["clinical(*)"]
    clients = ["monitor"]

Rules kept here:

- a type is named as people name it, with its owner where several have the name;
- an attribute that is not listed is public, and so is a sink; a reader that is not listed sees what is public;
- ``family(attribute)`` in a type is a carrier: in each row, the tag of the family for that attribute's value;
- a privilege of the domain's roles whose name is listed under ``roles`` is a flow tag: who has it now sees what carries
  it now. Under ``sequences``, whoever lost it still sees what was published before, and later data has the next tag;
- ``names`` says what other domains call a flow tag of ours; ``owners`` whose key says that names below an address stand
  for tags. A URI in a label is another domain's tag: see `translated_policy`;
- a component does one thing, and its privileges are for what it does; only clients that are listed may use it;
- whatever is not understood is refused, so that a slip of the pen opens nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from maia.errors import EncodingError, FlowError
from maia.labels.label import PUBLIC, Label
from maia.labels.local import is_global
from maia.labels.relation import Component
from maia.labels.symbolic import Carrier, SymbolicLabel
from maia.labels.tag import family_of

MAX_POLICY = 1 << 20
TASKS = ("count", "pass")
"""What a component can do: count rows by keys, or hand on what it gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReader:
    """What may flow to a client.

    Attributes:
        label: To whatever it reads with, and to its screen.
        frames: Secrecy that its labelled frames may carry beside that, and that may not leave them.
    """

    label: Label = PUBLIC
    frames: frozenset[str] = frozenset()

    @property
    def inside(self) -> Label:
        """The label of what its labelled frames may hold."""
        return Label(secrecy=self.label.secrecy | self.frames, integrity=self.label.integrity)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredComponent:
    """A component as a policy declares it: its privileges, what it does with data, and who may use it."""

    component: Component
    does: str
    clients: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPolicy:
    """What a domain says about flow; by default nothing is labelled."""

    types: Mapping[str, Mapping[str, SymbolicLabel]] = field(default_factory=dict)
    readers: Mapping[str, LabelReader] = field(default_factory=dict)
    role_tags: frozenset[str] = frozenset()
    role_sequences: frozenset[str] = frozenset()
    sinks: Mapping[str, Label] = field(default_factory=dict)
    components: Mapping[str, DeclaredComponent] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def said(self, name: str, attributes: Collection[str]) -> Mapping[str, SymbolicLabel]:
        """Give the labels of a type's attributes, of those that are listed.

        Raises:
            EncodingError: The policy speaks of attributes that the type does not have: ``LABEL_POLICY``.
        """
        said = self.types.get(name, {})
        carriers = {item.column for label in said.values() for item in label.carriers}
        if unknown := ({*said} | carriers) - {*attributes}:
            raise EncodingError(f"`{name}` has no attribute `{min(map(str, unknown))}` to label", code="LABEL_POLICY")
        return said

    def reader(self, client: str, roles: Collection[str] = ()) -> LabelReader:
        """Say what may flow to a client, with the flow tags that its roles give it now."""
        found = self.readers.get(client, LabelReader())
        label = Label(secrecy=found.label.secrecy.union(roles), integrity=found.label.integrity)
        return LabelReader(label=label, frames=found.frames)

    def declared(self, name: str, client: str) -> DeclaredComponent:
        """Find a component that a client may use.

        Raises:
            FlowError: There is none, or not for this client: ``NO_COMPONENT``; the message is the same for both.
        """
        found = self.components.get(name)
        if found is None or client not in found.clients:
            raise FlowError(f"the policy gives `{client}` no component `{name}`", code="NO_COMPONENT")
        return found

    def who_declassifies(self, tag: str) -> tuple[str, ...]:
        r"""List the components that can take a flow tag out of the secrecy: nobody else can.

        >>> policy = parse_label_policy(b'[components.c]\ndoes = "count"\ndeclassify = ["t"]\nclients = ["m"]')
        >>> policy.who_declassifies("t"), policy.who_declassifies("u")
        (('c',), ())
        """
        asked = _covering(tag)
        return tuple(sorted(name for name, item in self.components.items() if asked & item.component.declassify))

    def who_endorses(self, tag: str) -> tuple[str, ...]:
        r"""List the components that can put a flow tag into the integrity: nobody else can, once data is on its way.

        >>> policy = parse_label_policy(b'[components.c]\ndoes = "pass"\nendorse = ["t"]\nclients = ["m"]')
        >>> policy.who_endorses("t"), policy.who_endorses("u")
        (('c',), ())
        """
        asked = _covering(tag)
        return tuple(sorted(name for name, item in self.components.items() if asked & item.component.endorse))


def parse_label_policy(raw: bytes) -> LabelPolicy:
    r"""Read a label policy, as TOML.

    Raises:
        EncodingError: It is none; the message says what is wrong: ``LABEL_POLICY``.

    >>> policy = parse_label_policy(b'[types.T]\ntext = { S = ["clinical(patient)"] }')
    >>> policy.said("T", ("patient", "text"))["text"].shown().secrecy
    frozenset({'clinical(*)'})
    """
    if len(raw) > MAX_POLICY:
        raise _wrong(f"is larger than {MAX_POLICY} octets")
    try:
        value = tomllib.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise _wrong(f"is no TOML: {error}") from error
    _only(value, {"types", "readers", "roles", "sinks", "components", "names", "owners"}, "at the top")
    roles = _only(value.get("roles", {}), {"tags", "sequences"}, "roles")
    sequences = _tags(roles, "sequences", "roles")
    if stray := sequences - _tags(roles, "tags", "roles"):
        raise _wrong(f"moves `{min(stray)}` on in `roles.sequences`, which is none of `roles.tags`")
    return LabelPolicy(
        types={name: {item: _carried(label, f"types.{name}.{item}") for item, label in _table(said, name).items()}
               for name, said in _table(value.get("types", {}), "types").items()},
        readers={name: _reader(said, f"readers.{name}")
                 for name, said in _table(value.get("readers", {}), "readers").items()},
        role_tags=_tags(roles, "tags", "roles"),
        role_sequences=sequences,
        sinks={name: _label(said, f"sinks.{name}") for name, said in _table(value.get("sinks", {}), "sinks").items()},
        components={name: _component(name, said)
                    for name, said in _table(value.get("components", {}), "components").items()},
        names=_names(value.get("names", {})),
        owners=_owners(value.get("owners", {})),
    )  # fmt: skip


def _covering(tag: str) -> set[str]:
    """Give the tags of which each stands for this one: itself, and its whole family."""
    found = family_of(tag)
    return {tag} if found is None else {tag, f"{found[0]}(*)"}


def _reader(value: object, where: str) -> LabelReader:
    found = _only(value, {"S", "I", "frames"}, where)
    label = Label(secrecy=_tags(found, "S", where), integrity=_tags(found, "I", where))
    return LabelReader(label=label, frames=_tags(found, "frames", where))


def _component(name: str, value: object) -> DeclaredComponent:
    where = f"components.{name}"
    found = _only(value, {"does", "declassify", "endorse", "clients"}, where)
    if found.get("does") not in TASKS:
        raise _wrong(f"says in `{where}` that a component does something else than {', '.join(TASKS)}")
    made = Component(name=name, declassify=_tags(found, "declassify", where), endorse=_tags(found, "endorse", where))
    return DeclaredComponent(component=made, does=found["does"], clients=_tags(found, "clients", where))


def _names(value: object) -> dict[str, str]:
    found = _table(value, "names")
    for name, uri in found.items():
        if not isinstance(uri, str) or not is_global(uri) or "(" in uri:
            raise _wrong(f"has no address such as `https://…` at `names.{name}`")
        if not name or "(" in name or is_global(name):
            raise _wrong(f"has no name of a flow tag of its own at `names.{name}`")
    if len(set(found.values())) < len(found):
        raise _wrong("gives one address in `names` to several flow tags")
    return found


def _owners(value: object) -> dict[str, str]:
    found = _table(value, "owners")
    for prefix, owner in found.items():
        if not is_global(f"{prefix}t") or not prefix.endswith("/") or not isinstance(owner, str) or not owner:
            raise _wrong(f"has no address that ends in `/`, and the name of a key, at `owners.{prefix}`")
    return found


def _carried(value: object, where: str) -> SymbolicLabel:
    """Read the label of an attribute; its families are carried by attributes."""
    label = _label(value, where)
    carriers, static = set(), set()
    for tag in label.secrecy:
        found = family_of(tag)
        if found is None or found[1] is None:
            static.add(tag)
        else:
            carriers.add(Carrier(family=found[0], column=found[1]))
    return SymbolicLabel(secrecy=frozenset(static), integrity=label.integrity, carriers=frozenset(carriers))


def _label(value: object, where: str) -> Label:
    found = _only(value, {"S", "I"}, where)
    return Label(secrecy=_tags(found, "S", where), integrity=_tags(found, "I", where))


def _only(value: object, known: set[str], where: str) -> dict[str, Any]:
    found = _table(value, where)
    if unknown := set(found) - known:
        raise _wrong(f"has no `{min(unknown)}` in `{where}`")
    return found


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(f"has no table at `{where}`")
    return value


def _tags(value: Mapping[str, Any], name: str, where: str) -> frozenset[str]:
    tags = value.get(name, [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        raise _wrong(f"has no list of texts at `{where}.{name}`")
    return frozenset(tags)


def _wrong(what: str) -> EncodingError:
    return EncodingError(f"the label policy {what}", code="LABEL_POLICY")
