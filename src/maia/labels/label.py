"""Flow labels: what data carries, where it may go, and who may make an exception.

Rules kept here (rows 17.01 to 17.05):

- a label is a pair of sets of flow tags: ``secrecy`` says who must be kept out, ``integrity`` who vouches;
- data flows from one label to another when no secrecy is lost and no integrity is gained:
  ``S_from ⊆ S_to`` and ``I_from ⊇ I_to``;
- combined data is as secret as all its parts together and as trustworthy as the least of them;
- whoever changes its own label needs a privilege for each tag that comes or goes: to add it to the secrecy or to
  declassify it, to drop it from the integrity or to endorse it. The first of each pair is the weak one: it lets read,
  and lets nothing out;
- only declassifying and endorsing make exceptions to the flow of data. Nothing else ever lowers secrecy or raises
  integrity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.errors import EncodingError, FlowError, UsageError
from maia.labels.tag import check_tag

MAX_TAGS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a part of an event carries along: its flow tags for confidentiality and integrity."""

    secrecy: frozenset[str] = frozenset()
    integrity: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse tags that are no names, and more of them than anybody will check."""
        for tags in (self.secrecy, self.integrity):
            if len(tags) > MAX_TAGS:
                raise EncodingError(f"a label has at most {MAX_TAGS} flow tags of a kind", code="LABEL_TAGS")
            for tag in tags:
                check_tag(tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Privilege:
    """What somebody may do with flow tags, four powers for each tag; a tag's creator has all of them.

    Attributes:
        add: Tags that it may add to its secrecy: it may read what carries them.
        declassify: Tags that it may remove from the secrecy.
        drop: Tags that it may drop from its integrity: it may read what nobody vouches for.
        endorse: Tags that it may add to the integrity.
    """

    add: frozenset[str] = frozenset()
    declassify: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    endorse: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse tags that are no names."""
        for tag in self.add | self.declassify | self.drop | self.endorse:
            check_tag(tag)

    @classmethod
    def over(cls, tag: str) -> Privilege:
        """Give the creator of a tag its four powers.

        >>> can_flow(Label(secrecy=frozenset({"t"})), PUBLIC, Privilege.over("t"))
        True
        """
        one = frozenset({tag})
        return cls(add=one, declassify=one, drop=one, endorse=one)

    def with_(self, other: Privilege) -> Privilege:
        """Hold the powers of another one too."""
        return Privilege(
            add=self.add | other.add, declassify=self.declassify | other.declassify,
            drop=self.drop | other.drop, endorse=self.endorse | other.endorse,
        )  # fmt: skip

    def delegate(self, part: Privilege) -> Privilege:
        """Give a part of these powers away.

        Raises:
            FlowError: It is more than these: ``PRIVILEGE_NOT_HELD``.

        >>> Privilege(add=frozenset("t")).delegate(Privilege(declassify=frozenset("t")))
        Traceback (most recent call last):
        ...
        maia.errors.FlowError: [PRIVILEGE_NOT_HELD] nobody delegates a privilege over flow tags that it does not hold
        """
        pairs = (
            (part.add, self.add), (part.declassify, self.declassify),
            (part.drop, self.drop), (part.endorse, self.endorse),
        )  # fmt: skip
        if not all(given <= held for given, held in pairs):
            raise FlowError(
                "nobody delegates a privilege over flow tags that it does not hold", code="PRIVILEGE_NOT_HELD"
            )
        return part


PUBLIC = Label()
NO_PRIVILEGE = Privilege()


def can_flow(source: Label, target: Label, privilege: Privilege = NO_PRIVILEGE) -> bool:
    """Tell whether data may go from one label to another.

    >>> x, xy = Label(secrecy=frozenset("x"), integrity=frozenset("p")), Label(secrecy=frozenset("xy"))
    >>> can_flow(x, xy), can_flow(xy, x)
    (True, False)
    >>> can_flow(xy, Label(secrecy=frozenset("x")), Privilege(declassify=frozenset("y")))
    True
    """
    return tags_flow(source.secrecy - privilege.declassify, source.integrity | privilege.endorse, target)


def tags_flow(secrecy: frozenset[str], integrity: frozenset[str] | None, target: Label) -> bool:
    """Compare flow tags with a target: the one place that does, for reads, frames, exits and whoever asks.

    Args:
        secrecy: Of the source.
        integrity: Of the source; ``None`` is everything, what comes from nothing.
        target: To where it would flow.

    >>> tags_flow(frozenset("x"), None, Label(secrecy=frozenset("xy"), integrity=frozenset("p")))
    True
    """
    kept_secret = secrecy <= target.secrecy
    vouched_for = integrity is None or target.integrity <= integrity
    return kept_secret and vouched_for


def can_change(label: Label, to: Label, privilege: Privilege) -> bool:
    """Tell whether somebody may change its own label.

    >>> reader, secret = Privilege(add=frozenset("t")), Label(secrecy=frozenset("t"))
    >>> can_change(PUBLIC, secret, reader), can_change(secret, PUBLIC, reader)
    (True, False)
    """
    return (
        to.secrecy - label.secrecy <= privilege.add
        and label.secrecy - to.secrecy <= privilege.declassify
        and label.integrity - to.integrity <= privilege.drop
        and to.integrity - label.integrity <= privilege.endorse
    )


def read_as(reader: Label, part: Label, privilege: Privilege = NO_PRIVILEGE) -> Label:
    """Give the label of the light copy of a reader that reads a part; the reader keeps its own for the next one.

    Raises:
        FlowError: The part may not flow to the reader, whatever it may add and drop: ``FLOW``. The message does not say
            which tag is missing.

    >>> copy = read_as(PUBLIC, Label(secrecy=frozenset("t")), Privilege(add=frozenset("t")))
    >>> sorted(copy.secrecy), can_flow(copy, PUBLIC)
    (['t'], False)
    """
    raised = Label(secrecy=reader.secrecy | part.secrecy, integrity=reader.integrity & part.integrity)
    if not can_change(reader, raised, privilege):
        raise FlowError("the part may not flow to this reader")
    return raised


def join(labels: Iterable[Label]) -> Label:
    """Label what is made from several parts: all their secrecy, only their common integrity.

    Raises:
        UsageError: There are no parts; what comes from nothing has no label.

    >>> a = Label(secrecy=frozenset("A"), integrity=frozenset("p"))
    >>> join([a, Label(secrecy=frozenset("B"))]) == Label(secrecy=frozenset("AB"))
    True
    """
    parts = tuple(labels)
    if not parts:
        raise UsageError("a label is joined from at least one part", code="LABEL_NO_PARTS")
    return Label(
        secrecy=frozenset().union(*(part.secrecy for part in parts)),
        integrity=parts[0].integrity.intersection(*(part.integrity for part in parts[1:])),
    )
