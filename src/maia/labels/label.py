"""Flow labels: what data carries, where it may go, and who may make an exception.

Rules kept here (rows 17.01 to 17.03):

- a label is a pair of sets of flow tags: ``secrecy`` says who must be kept out, ``integrity`` who vouches;
- data flows from one label to another when no secrecy is lost and no integrity is gained:
  ``S_from ⊆ S_to`` and ``I_from ⊇ I_to``;
- combined data is as secret as all its parts together and as trustworthy as the least of them;
- only privileges make exceptions: declassifying a flow tag takes it out of the secrecy, endorsing one puts it into
  the integrity. Nothing else ever lowers secrecy or raises integrity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.errors import EncodingError, UsageError

MAX_TAGS = 4096
MAX_TAG_LENGTH = 512


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
                _check_tag(tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Privilege:
    """Exceptions that a trusted component may make."""

    declassify: frozenset[str] = frozenset()
    endorse: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse tags that are no names."""
        for tag in self.declassify | self.endorse:
            _check_tag(tag)


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
    kept_secret = source.secrecy - privilege.declassify <= target.secrecy
    vouched_for = target.integrity <= source.integrity | privilege.endorse
    return kept_secret and vouched_for


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


def _check_tag(tag: str) -> None:
    if not tag or len(tag) > MAX_TAG_LENGTH:
        raise EncodingError(f"a flow tag has 1 to {MAX_TAG_LENGTH} characters", code="LABEL_TAGS")
