"""What rights show that somebody holds, without certificates: tags as sets of cells.

Where the definitions are known, a right shows cells of their types, and a cell is the same in every version. Where only
the types of attributes are known, rights are compared by what they say: of each pair of rights a type is made up that
both are on, and of each right one that is on no other than it must be. Since a star of a name's pattern can stand for
letters that nobody wrote, those are all the ways in which rights on types can lie to one another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from maia.authority import Action, Tag, alternatives, ask_type, cell_rights, intersect, is_nothing, permits
from maia.encoding import Sexp
from maia.errors import TagError, UncheckedError
from maia.events import EventType, TypeId, ValueType
from maia.principals import KeyHash, KeyId, Principal
from maia.reasoning.compare import AttributeRight, Rights

TypeCell = tuple[TypeId, str]
Coordinates = tuple[Principal, str, str]
MadeUpCell = tuple[Coordinates, str]
_FRESH = "\N{SNOWMAN}"
_NOBODY = KeyHash(KeyId(hashlib.sha256(b"an owner that no right names").digest()))
_MOST_TYPES = 4096


def rights_on(tags: Iterable[Tag], versions: Iterable[EventType]) -> dict[TypeId, Rights[TypeCell]]:
    """Tell what rights show of types whose definitions are known, type by type."""
    held = tuple(tags)
    kinds: dict[TypeId, dict[str, ValueType]] = {}
    offers: dict[TypeId, dict[TypeCell, list[AttributeRight]]] = {}
    for version in versions:
        name = version.name
        kinds.setdefault(name.type_id, {}).update({str(item.uid): item.type for item in version.attributes})
        found = offers.setdefault(name.type_id, {})
        for tag in held:
            for uid, offer in _opened(tag, (name.owner, name.name, name.version.text), kinds[name.type_id]):
                if any(str(item.uid) == uid for item in version.attributes):
                    found.setdefault((name.type_id, uid), []).append(offer)
    return {type_id: Rights(kinds[type_id], offers[type_id]) for type_id in kinds}


def rights_alone(
    a: Sequence[Tag], b: Sequence[Tag], kinds: Mapping[str, ValueType]
) -> tuple[Rights[MadeUpCell], Rights[MadeUpCell]]:
    """Tell what two sets of rights show of types of which only the types of attributes are known.

    Raises:
        UncheckedError: There are more kinds of types than can be looked at.
    """
    types = _types((*a, *b))
    found = []
    for tags in (a, b):
        offers: dict[MadeUpCell, list[AttributeRight]] = {}
        for place in types:
            for tag in tags:
                for uid, offer in _opened(tag, place, kinds):
                    offers.setdefault((place, uid), []).append(offer)
        found.append(Rights(kinds, offers))
    return found[0], found[1]


def _opened(tag: Tag, place: Coordinates, kinds: Iterable[str]) -> Iterator[tuple[str, AttributeRight]]:
    """Give what a right shows of one version, attribute by attribute."""
    left = intersect(tag, ask_type(Action.SUBSCRIBE, *place).wanted)
    if is_nothing(left):
        return
    for cells in cell_rights(left):
        for uid in kinds:
            if permits(cells.uids, uid.encode()):
                yield uid, AttributeRight(cells.constraints, sure=not cells.bounds)


def _types(tags: Iterable[Tag]) -> tuple[Coordinates, ...]:
    """Make up types for all ways in which rights on types can lie to one another."""
    owners: dict[Principal, None] = {_NOBODY: None}
    patterns: dict[tuple[bytes, ...], None] = {}
    versions: dict[str, None] = {"0": None}
    for tag in tags:
        for option in alternatives(tag.to_sexp()):
            for position, form in enumerate(option[1:4] if isinstance(option, tuple) else ()):
                for part in alternatives(form):
                    if position == 1:
                        patterns[_pieces(part)] = None
                    elif isinstance(part, bytes) and position == 0:
                        owners[KeyHash(KeyId(part))] = None
                    elif isinstance(part, bytes):
                        versions[part.decode()] = None
    patterns = patterns or {(b"", b""): None}
    names = {_spelled(one) for one in patterns}
    names |= {meet for one, other in product(patterns, repeat=2) if (meet := _meet(one, other)) is not None}
    if len(owners) * len(names) * len(versions) > _MOST_TYPES:
        raise UncheckedError("the rights are on too many types to be compared", code="FILTER_TOO_LARGE")
    return tuple(product(owners, sorted(names), versions))


def _pieces(form: Sexp) -> tuple[bytes, ...]:
    """Give the literal pieces of a pattern of names, with anything between them; a name is one piece."""
    match form:
        case bytes():
            return (form,)
        case (b"*",):
            return (b"", b"")
        case (b"*", b"prefix", bytes() as start):
            return start, b""
        case (b"*", b"glob", bytes() as text):
            return tuple(text.split(b"*"))
        case (b"*", b"pieces", *pieces):
            return tuple(piece for piece in pieces if isinstance(piece, bytes))
        case _:
            raise TagError("a right on types whose names are given by a range", code="TAG_FORM")


def _spelled(pieces: tuple[bytes, ...]) -> str:
    """Give the name of a pattern that no other pattern has, unless it has all names of this one."""
    return _FRESH.join(piece.decode("utf-8", "surrogateescape") for piece in pieces) or _FRESH


def _meet(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> str | None:
    """Give a name that two patterns have in common; nothing when there is none."""
    if len(one) == 1 or len(other) == 1:
        return None  # a name, which is looked at as it is
    start = max(one[0], other[0], key=len)
    end = max(one[-1], other[-1], key=len)
    if not all(start.startswith(item[0]) and end.endswith(item[-1]) for item in (one, other)):
        return None
    return _spelled((start, *one[1:-1], *other[1:-1], end))
