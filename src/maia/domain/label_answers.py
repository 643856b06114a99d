"""Who can produce a part that carries an integrity tag: whoever may write it, and whoever may endorse it.

A part of an event carries the integrity tags that the label policy gives its attribute. So whoever may publish the
attribute produces parts with the tag, by a certificate or as the type's owner; and a component that may endorse the tag
puts it on other data, for the clients that may use it. Nobody else can: labels only ever lose integrity on their way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.label_files import read_label_policy
from maia.domain.readers import cell_of, find_readers, world_of
from maia.domain.type_labels import check_label_policy
from maia.domain.types import find_versions
from maia.errors import NotFoundError
from maia.home import words

if TYPE_CHECKING:
    from maia.domain.domain import Domain
    from maia.labels import LabelPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """Somebody who can produce a part with a tag.

    Attributes:
        who: A principal, as this home calls it; or a component.
        how: ``writes``, ``owns`` or ``endorses``.
        what: The attribute that it writes, with its type; of a component, the clients that may use it.
        by: Of a writer, the chain that gives it.
    """

    who: str
    how: str
    what: str
    by: str = ""

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {"who": self.who, "how": self.how, "what": self.what, "by": self.by}

    def __str__(self) -> str:
        """Say it."""
        return f"{self.who} {self.how} {self.what}{f', by {self.by}' if self.by else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Producers:
    """Everybody who can produce a part with a tag, and whether something could not be told."""

    tag: str
    producers: tuple[Producer, ...]
    doubts: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing was left in doubt: then nobody else can, by what is known here."""
        return not self.doubts


def who_produces(domain: Domain, tag: str, *, at: datetime) -> Producers:
    """Find everybody who can produce a part that carries an integrity tag.

    Raises:
        NotFoundError: The label policy does not speak of the tag: ``NO_SUCH_TAG``; a misspelled tag has no producer.
        UncheckedError: The policy cannot be read, or does not fit the types that are known here.
    """
    policy = read_label_policy(domain.home, at=at)
    check_label_policy(domain.home, policy, domain.known(at=at))
    carrying = [
        (name, attribute)
        for name, said in sorted(policy.types.items())
        for attribute, label in said.items()
        if tag in (label.integrity or ())
    ]
    endorsers = policy.who_endorses(tag)
    if not carrying and not endorsers:
        raise NotFoundError(f"no integrity of the label policy has the tag `{tag}`", code="NO_SUCH_TAG")
    found: list[Producer] = []
    doubts: list[str] = []
    for name, attribute in carrying:
        found += _writers(domain, name, attribute, at=at, doubts=doubts)
    found += _components(policy, endorsers)
    return Producers(tag=tag, producers=tuple(found), doubts=tuple(doubts))


def _writers(domain: Domain, name: str, attribute: str, *, at: datetime, doubts: list[str]) -> Iterator[Producer]:
    world, folder = world_of(domain, at=at), domain.home.folder
    what = f"`{attribute}` of `{name}`"
    known = find_versions(domain.home, name)
    for owner in dict.fromkeys(words.show_subject(one.owner, folder) for one in known):
        yield Producer(who=owner, how="owns", what=what)
    newest = known[-1]
    cell = cell_of(world, newest, attribute, action="publish")
    readers = find_readers(domain, world, newest, cell)
    for one in readers:
        yield Producer(who=one.name, how="writes", what=what, by=one.given)
    doubts += readers.doubts
    doubts += [f"certificate {one.hex()[:16]} waits for a statement" for one in readers.answer.unknown]


def _components(policy: LabelPolicy, names: tuple[str, ...]) -> Iterator[Producer]:
    for name in names:
        clients = ", ".join(sorted(policy.components[name].clients)) or "nobody"
        yield Producer(who=name, how="endorses", what=f"for {clients}")
