"""The forms of a tag, and how they are put together; `tags` says what each stands for.

Rules kept here: a set is flat, without doubles and in canonical order, and one member stands alone; a list or a row
with an empty part admits nothing, and so does a list that starts with ``*``, which would be read back as something
else; there is a bound on the members of a set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from maia.authority.bounds import Bounds
from maia.authority.patterns import Pattern
from maia.encoding import Hinted, Sexp, encode
from maia.errors import TagError

MAX_ALTERNATIVES = 4096
ENFORCED = b"enforced"
"""Stands behind a demand on a row that the receiving domain is trusted to enforce."""


@dataclass(frozen=True, slots=True)
class Everything:
    """``(*)``: every request."""

    def to_sexp(self) -> Sexp:
        """Write ``(*)``."""
        return (b"*",)


@dataclass(frozen=True, slots=True)
class Exactly:
    """One octet string."""

    value: bytes | Hinted

    def to_sexp(self) -> Sexp:
        """Write the string."""
        return self.value


@dataclass(frozen=True, slots=True)
class ListTag:
    """A list of tags; requests may be longer."""

    items: tuple[Tag, ...]
    _written: bytes = field(init=False, compare=False, repr=False, default=b"")

    def to_sexp(self) -> Sexp:
        """Write the list."""
        return tuple(item.to_sexp() for item in self.items)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A set of tags; without members it stands for no request at all."""

    members: tuple[Tag, ...]
    _written: bytes = field(init=False, compare=False, repr=False, default=b"")

    def to_sexp(self) -> Sexp:
        """Write ``(* set …)``, members in the order of their canonical bytes."""
        return (b"*", b"set", *(member.to_sexp() for member in self.members))


@dataclass(frozen=True, slots=True)
class Strings:
    """A set of octet strings given by a pattern."""

    pattern: Pattern

    def to_sexp(self) -> Sexp:
        """Write the pattern's star form."""
        return self.pattern.to_sexp()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows whose listed attributes have values in their tags; other attributes are free.

    ``enforced`` lists attributes whose demand the receiving domain is trusted to enforce itself, by the word of whoever
    set it. It says nothing about which rows are admitted, only who may hold keys (see `maia.kernel.group_admission`).
    """

    constraints: tuple[tuple[bytes, Tag], ...]
    enforced: frozenset[bytes] = frozenset()
    _by_uid: dict[bytes, Tag] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Index the constraints by uid."""
        object.__setattr__(self, "_by_uid", dict(self.constraints))

    def get(self, uid: bytes) -> Tag | None:
        """Return the tag on this attribute, if there is one."""
        return self._by_uid.get(uid)

    def to_sexp(self) -> Sexp:
        """Write ``(* where (<uid> <tag>) (<uid> <tag> enforced) …)``, uids in order."""
        return (b"*", b"where", *(self._demand(uid, tag) for uid, tag in self.constraints))

    def _demand(self, uid: bytes, tag: Tag) -> Sexp:
        return (uid, tag.to_sexp(), ENFORCED) if uid in self.enforced else (uid, tag.to_sexp())


Tag: TypeAlias = "Everything | Exactly | ListTag | OneOf | Strings | Rows | Bounds"


EVERYTHING = Everything()
_STAR = Exactly(b"*")


NOTHING = OneOf(())


def is_nothing(tag: Tag) -> bool:
    """Tell whether a tag admits no request."""
    return isinstance(tag, OneOf) and not tag.members


def canonical(tag: Tag) -> bytes:
    """Write a tag's canonical octets; parts that were written before are not written again.

    >>> canonical(sequence([Exactly(b"a"), one_of([Exactly(b"c"), Exactly(b"b")])]))
    b'(1:a(1:*3:set1:b1:c))'
    """
    if isinstance(tag, Exactly) and isinstance(tag.value, bytes):
        return b"%d:%b" % (len(tag.value), tag.value)
    if not isinstance(tag, (ListTag, OneOf)):
        return encode(tag.to_sexp())
    if not tag._written:  # noqa: SLF001 - of this module
        if isinstance(tag, OneOf):
            written = b"(1:*3:set%b)" % b"".join(map(canonical, tag.members))
        else:
            written = b"(%b)" % b"".join(map(canonical, tag.items))
        object.__setattr__(tag, "_written", written)
    return tag._written  # noqa: SLF001


def one_of(tags: Iterable[Tag]) -> Tag:
    """Unite tags: flat, without doubles, in canonical order; one member stands alone.

    >>> one_of([Exactly(b"b"), Exactly(b"a"), Exactly(b"b")]).to_sexp()
    (b'*', b'set', b'a', b'b')
    """
    members: dict[bytes, Tag] = {}
    for tag in tags:
        if isinstance(tag, Everything):
            return EVERYTHING
        for member in tag.members if isinstance(tag, OneOf) else (tag,):
            members[canonical(member)] = member
    if len(members) == 1:
        return next(iter(members.values()))
    if len(members) > MAX_ALTERNATIVES:
        raise TagError(f"more than {MAX_ALTERNATIVES} alternatives in one tag", code="TAG_TOO_LARGE")
    return OneOf(tuple(members[key] for key in sorted(members)))


def sequence(items: Iterable[Tag]) -> Tag:
    """Build a list tag; a list with an empty element admits nothing.

    Nor does one that can only start with the string ``*``: written down it would be a star form, and no request is one.
    """
    parts = tuple(items)
    if parts[:1] == (_STAR,) or any(is_nothing(part) for part in parts):
        return NOTHING
    return ListTag(parts)


def rows(constraints: Iterable[tuple[bytes, Tag]], *, enforced: Iterable[bytes] = ()) -> Tag:
    """Build a row constraint; an empty member admits no row, no constraints admit every row."""
    ordered = tuple(sorted(constraints))  # by uid; uids are unique
    if any(is_nothing(tag) for _, tag in ordered):
        return NOTHING
    return Rows(ordered, frozenset(enforced)) if ordered else EVERYTHING
