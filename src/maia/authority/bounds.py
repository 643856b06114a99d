"""Access-control filters inside a right: the tag form ``(* bound …)``.

    (* bound (<kind> (<uid> <type> <tag>) …) …)

A kind is `upper`, `strict-upper`, `lower` or `strict-lower`; each entry is one constraint of the filter, its value set
written as tags write it. The form stands for the uses of a right that **all** its members allow: publications
``(row (<uid> <value>) …)``, and advertisements and subscriptions ``(filter <octets>)``, the octets being those of the
list of their entries: a request holds no star form. What each kind allows is said in `maia.filters.bounds`.

Rules kept here: a bound has constraints, each of one operator, in one order and once; two forms intersect by holding
together, so a chain conjoins the bounds of its links and none of them is ever lost; what is no bound, and what is no
row or filter, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from maia.encoding import Sexp, encode, parse_canonical
from maia.errors import FilterTypeError, MalformedError, TagError
from maia.events import AttributeType
from maia.filters import (
    Bound,
    BoundKind,
    Side,
    TypedConstraint,
    TypedFilter,
    all_allow,
    allows,
    from_tag,
    read_atom,
    to_tag,
)

MAX_BOUNDS = 16
MAX_CONSTRAINTS = 64
_UID = re.compile(rb"[!-~]{1,128}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Uses that all of these bounds allow; their filters name attributes by uid."""

    members: tuple[Bound, ...]

    @classmethod
    def of(cls, bounds: Iterable[Bound]) -> Self:
        """Put bounds together in their one order.

        Raises:
            TagError: There are none or too many, or one has no constraints or too many: ``TAG_BOUND``.

        >>> from maia.filters import compile_filter
        >>> cheap = Bound(filter=compile_filter('"7" < 100', {"7": "integer"}), kind=BoundKind.UPPER)
        >>> Bounds.of([cheap, cheap]).to_sexp()
        (b'*', b'bound', (b'upper', (b'7', b'integer', (b'*', b'range', b'numeric', b'l', b'100'))))
        """
        found = {encode(written): written for written in map(_write, bounds)}
        if not 0 < len(found) <= MAX_BOUNDS:
            raise TagError(f"a right has 1 to {MAX_BOUNDS} bounds where it has any", code="TAG_BOUND")
        return cls(tuple(_read(found[key]) for key in sorted(found)))

    @property
    def uids(self) -> frozenset[str]:
        """The attributes that the bounds speak of."""
        return frozenset(uid for member in self.members for uid in member.filter.attributes)

    def to_sexp(self) -> Sexp:
        """Write the form."""
        return (b"*", b"bound", *map(_write, self.members))

    def meet(self, other: Bounds) -> Bounds:
        """Hold together with other bounds."""
        return Bounds.of((*self.members, *other.members))

    def permit(self, use: Sexp) -> bool:
        """Tell whether all bounds allow a ground use: ``(row …)`` or ``(filter …)``."""
        match use:
            case (b"row", *cells):
                return all(_allow_row(member, cells) for member in self.members)
            case (b"filter", bytes() as octets):
                try:
                    wanted = _filter(_listed(parse_canonical(octets)))
                except MalformedError:
                    return False
                return all_allow(self.members, wanted, side=Side.SUBSCRIBE)
            case _:
                return False


def parse_bounds(members: Sequence[Sexp]) -> Bounds:
    """Read what stands behind ``(* bound``.

    Raises:
        TagError: It is none.
    """
    return Bounds.of(map(_read, members))


def filter_request(wanted: TypedFilter) -> Sexp:
    """Write an advertisement or subscription, over uids, as a ground use.

    >>> filter_request(TypedFilter())
    (b'filter', b'(7:entries)')
    """
    return (b"filter", encode((b"entries", *_entries(wanted))))


def _listed(expression: Sexp) -> Sequence[Sexp]:
    match expression:
        case (b"entries", *entries):
            return entries
        case _:
            raise TagError("not the entries of a filter", code="TAG_BOUND")


def _entries(filter_: TypedFilter) -> tuple[Sexp, ...]:
    written = {
        encode(entry): entry
        for entry in ((item.attribute.encode(), item.type.value.encode(), to_tag((item,))) for item in
                      filter_.constraints)
    }  # fmt: skip
    return tuple(written[key] for key in sorted(written))


def _write(bound: Bound) -> Sexp:
    return (bound.kind.value.encode(), *_entries(bound.filter))


def _read(member: Sexp) -> Bound:
    match member:
        case (bytes() as kind, *entries) if entries and len(entries) <= MAX_CONSTRAINTS:
            found = next((known for known in BoundKind if known.value.encode() == kind), None)
            if found is not None:
                return Bound(filter=_filter(entries), kind=found)
    raise TagError(f"a bound is a kind with 1 to {MAX_CONSTRAINTS} constraints", code="TAG_BOUND")


def _filter(entries: Iterable[Sexp]) -> TypedFilter:
    try:
        return TypedFilter(constraints=tuple(map(_constraint, entries)))
    except FilterTypeError as error:
        raise TagError("a bound uses one attribute with two types", code="TAG_BOUND") from error


def _constraint(entry: Sexp) -> TypedConstraint:
    match entry:
        case (bytes() as uid, bytes() as kind, tag) if _UID.fullmatch(uid):
            known = next((item for item in AttributeType if item.value.encode() == kind), None)
            if known is not None and known.filterable:
                found = from_tag(tag, uid.decode("ascii"), known)
                # SECURITY: two constraints would be alternatives in a lower bound, where their writer meant both.
                if len(found) == 1:
                    return found[0]
    raise TagError("a constraint of a bound is a uid, a type and one demand on its value", code="TAG_BOUND")


def _allow_row(bound: Bound, cells: Sequence[Sexp]) -> bool:
    kinds = {item.attribute: item.type for item in bound.filter.constraints}
    row: dict[str, object] = {}
    for cell in cells:
        match cell:
            case (bytes() as uid, bytes() as atom) if (name := uid.decode("ascii", "replace")) not in row:
                value = read_atom(atom, kinds[name]) if name in kinds else None
                row[name] = atom if value is None else value  # octets are no value of any attribute that has an order
            case _:
                return False
    return allows(bound.filter, kind=bound.kind, side=Side.PUBLISH, subject=row)
