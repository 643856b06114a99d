"""The law of speech: a link may speak only of what its issuer holds.

A narrower right selects rows by the choice of whoever narrows it, and a right to publish may force values; so a link
tells, or sets, what it speaks of. Hence what a link *adds* to the right of the chain before it may name only attributes
that this right opens.

Rules kept here:

1. What a link speaks of are the attributes in its constraints on rows (forced values are constraints), in its bounds
   and in its conditions. A condition on the moment alone, and one on facts of the surroundings, speak of no attribute;
   a condition that cannot be read, and a demand on rows in any other form than ``(* where …)``, speak of all.
2. Only what is added counts. A constraint that leaves the demand above it exactly as it is, and a bound or condition
   that stands word for word in the chain above, say nothing new, whatever they name. The smallest narrowing of a
   demand on a closed attribute is an addition, and so is the demand that it has a value at all.
3. Open is what the chain up to the issuer opens, for the type and the action in question: each alternative of that
   right is a right of its own, and one that opens an attribute lends nothing to another that does not.
4. Through an alternative under which a link speaks of more, the link gives nothing at all, its harmless alternatives
   included. Alternatives of the link that have nothing in common with the right are not heard.
5. Members of a threshold hold only together what it holds, and what one of them closes, no other opens by speaking of
   it: what the other shares add to a share names only attributes that this share opens; else the shares give nothing.
6. A right on all attributes of every version closes none: the owner holds all, and so does who got everything. One
   that is bound to a version opens the attributes of that version, however it lists them, and closes those of all
   others: the rows of a type hold the values of every version. Which they are is said by whoever knows the definitions
   (`KnownVersions`), and the kernel always does. Where nobody does, ``(*)`` under a version is taken at its word, and
   what is proven so is proven of the version whose attributes are spoken of, whichever that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import TypeGuard

from maia.authority.bounds import Bounds
from maia.authority.budget import Budget
from maia.authority.condition_attributes import attributes_of
from maia.authority.known_versions import EVERY_VERSION, KnownVersions
from maia.authority.rights import TYPE, Action
from maia.authority.tag_forms import (
    EVERYTHING,
    Everything,
    Exactly,
    ListTag,
    OneOf,
    Rows,
    Tag,
    is_nothing,
    one_of,
    sequence,
)
from maia.authority.tags import MAX_PAIRS, intersect, permits
from maia.errors import TagError

SPEAKS_OF_CLOSED = "SPEAKS_OF_CLOSED"
ANY_ATTRIBUTE = "*"
_VERSION, _ACTION, _UIDS, _ROWS, _BOUNDS = 3, 4, 5, 6, 8
_ON_CELLS = tuple(Exactly(str(action.value).encode()) for action in Action if action.on_cells)


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What a link leaves of a right.

    Attributes:
        tag: What is left.
        closed: The uids that the link speaks of and that some part of the right keeps closed, sorted; ``*`` for a
            condition or a demand that may speak of any.
    """

    tag: Tag
    closed: tuple[str, ...] = ()


def narrow(
    held: Tag,
    given: Tag,
    *,
    conditions: Iterable[str] = (),
    known: Iterable[str] = (),
    budget: Budget | None = None,
    versions: KnownVersions | None = None,
) -> Narrowed:
    """Apply a link to the right of its issuer, as the law of speech allows.

    Args:
        held: What the issuer holds by the chain up to it.
        given: The tag of the link.
        conditions: The conditions of the link.
        known: The conditions of the chain up to the issuer.
        budget: What the decision may cost.
        versions: What the versions of the type have, where that is known.

    Raises:
        TagError: The result has more alternatives than a tag may have.

    >>> from maia.authority.constraints import Constraint
    >>> from maia.authority.rights import type_right
    >>> plates = type_right(None, "T", "1", actions=[Action.SUBSCRIBE], attributes=["7"])
    >>> fast = type_right(None, "T", "1", actions=[Action.SUBSCRIBE], constraints=[Constraint("8", ">", 70)])
    >>> is_nothing(narrow(plates, fast).tag), narrow(plates, fast).closed
    (True, ('8',))
    >>> narrow(plates, plates, conditions=["event['7'] == 'AE05'"]).closed
    ()
    >>> every = type_right(None, "T", "1", actions=[Action.SUBSCRIBE])
    >>> narrow(every, fast).closed, narrow(every, fast, versions=KnownVersions.of([("1", ["7"])])).closed
    ((), ('8',))
    """
    above = frozenset(known)
    added = [condition for condition in conditions if condition not in above]
    rights, options = _members(held), _members(given)
    if not speaks(given, added):
        return Narrowed(intersect(held, given, budget))
    opened = [_opened(right, versions, budget) for right in rights]
    if all(isinstance(uids, Everything) for uids in opened):
        return Narrowed(intersect(held, given, budget))
    named = [attributes_of(condition) for condition in added]
    if len(rights) * len(options) > MAX_PAIRS:
        raise TagError(f"more than {MAX_PAIRS} pairs of alternatives", code="TAG_TOO_LARGE")
    left: list[Tag] = []
    closed: set[str] = set()
    for right, uids in zip(rights, opened, strict=True):
        offence = _offence(right, uids, options, named, budget)
        if not offence:
            left.append(intersect(right, given, budget))
            continue
        for part in _parts(right, options):
            said = _offence(part, uids, options, named, budget)
            closed |= said
            if not said:
                left.append(intersect(part, given, budget))
    return Narrowed(one_of(left), tuple(sorted(closed)))


def join(
    shares: Sequence[tuple[Tag, tuple[str, ...]]],
    budget: Budget | None = None,
    *,
    versions: KnownVersions | None = None,
) -> Narrowed:
    """Intersect the shares of a threshold, each a right with the conditions of its chain.

    Raises:
        TagError: The result has more alternatives than a tag may have.

    >>> from maia.authority.constraints import Constraint
    >>> from maia.authority.rights import type_right
    >>> plates = type_right(None, "T", "1", actions=[Action.SUBSCRIBE], attributes=["7"])
    >>> fast = type_right(None, "T", "1", actions=[Action.SUBSCRIBE], constraints=[Constraint("8", ">", 70)])
    >>> join([(plates, ()), (fast, ())]).closed
    ('8',)
    """
    if not any(speaks(tag, conditions) for tag, conditions in shares):
        return Narrowed(_all((tag for tag, _ in shares), budget))
    options = [
        [(part, _opened(right, versions, budget)) for right in _members(tag) for part in _by_demand(right)]
        for tag, _ in shares
    ]
    if prod(len(parts) for parts in options) > MAX_PAIRS:
        raise TagError(f"more than {MAX_PAIRS} pairs of alternatives", code="TAG_TOO_LARGE")
    all_conditions = {text for _, conditions in shares for text in conditions}
    added = [[attributes_of(text) for text in all_conditions.difference(conditions)] for _, conditions in shares]
    left: list[Tag] = []
    closed: set[str] = set()
    for parts in product(*options):
        together = _all((part for part, _ in parts), budget)
        said = set().union(
            *(_offence(*part, (together,), named, budget) for part, named in zip(parts, added, strict=True))
        )
        closed |= said
        if not said:
            left.append(together)
    return Narrowed(one_of(left), tuple(sorted(closed)))


def speaks(tag: Tag, conditions: Iterable[str]) -> bool:
    """Tell whether a link speaks of any attribute.

    >>> speaks(EVERYTHING, ["now.hour('Europe/London') < 17"]), speaks(EVERYTHING, ["event['7'] > 5"])
    (False, True)
    """
    demanding = any((*_demands(option), *_bounds(option)) != (EVERYTHING, EVERYTHING) for option in _members(tag))
    return demanding or any(attributes_of(condition) != frozenset() for condition in conditions)


def scope_of(wanted: Tag, *, every_version: bool = False) -> Tag:
    """Widen a request to every cell of the types and actions that it is about: there the law is applied.

    Args:
        wanted: What is asked for.
        every_version: Follow beside the version that is asked about whether a right is on every version.

    >>> scope_of(ListTag(tuple(Exactly(word) for word in (TYPE, b"o", b"n", b"v", b"publish", b"7")))).to_sexp()
    (b'maia-type', b'o', b'n', b'v', b'publish')
    """
    return one_of(_scope(item, every_version=every_version) if _on_type(item) else item for item in _members(wanted))


def _scope(item: ListTag, *, every_version: bool) -> Tag:
    items = item.items[:_UIDS]
    if every_version and len(items) > _VERSION and not isinstance(items[_VERSION], Everything):
        items = (*items[:_VERSION], one_of((items[_VERSION], EVERY_VERSION)), *items[_VERSION + 1 :])
    return sequence(items)


def _members(tag: Tag) -> tuple[Tag, ...]:
    return tag.members if isinstance(tag, OneOf) else (tag,)


def _on_type(tag: Tag) -> TypeGuard[ListTag]:
    return isinstance(tag, ListTag) and permits(tag.items[0], TYPE)


def _opened(right: Tag, versions: KnownVersions | None, budget: Budget | None) -> Tag:
    """Tell which uids a right on a type opens; everything when it leaves none closed."""
    if not _on_type(right):
        return EVERYTHING
    uids = _item(right, _UIDS)
    return uids if versions is None else versions.opened(_item(right, _VERSION), uids, budget)


def _item(tag: Tag, position: int) -> Tag:
    return tag.items[position] if isinstance(tag, ListTag) and len(tag.items) > position else EVERYTHING


def _demands(tag: Tag) -> tuple[Tag, ...]:
    """List the alternative demands of a right on rows."""
    return _members(_item(tag, _ROWS)) if _on_type(tag) else (EVERYTHING,)


def _bounds(tag: Tag) -> tuple[Tag, ...]:
    """List the alternative bounds of a right."""
    return _members(_item(tag, _BOUNDS)) if _on_type(tag) else (EVERYTHING,)


def _all(tags: Iterable[Tag], budget: Budget | None) -> Tag:
    return reduce(lambda a, b: intersect(a, b, budget), tags)


def _offence(
    right: Tag, uids: Tag, options: tuple[Tag, ...], named: list[frozenset[str] | None], budget: Budget | None
) -> set[str]:
    """List what a link says beyond the uids that one alternative of its issuer's right opens."""
    if isinstance(uids, Everything):
        return set()
    heard = [option for option in options if not is_nothing(intersect(right, option, budget))]
    if not heard:
        return set()
    found = _unheld(named, uids, budget)
    for option in heard:
        for demand in _demands(option):
            for before in _demands(right):
                found |= _added(before, demand, uids, budget)
        for bound in _bounds(option):
            for held in _bounds(right):
                found |= _bounded(held, bound, uids, budget)
    return found


def _unheld(named: Iterable[frozenset[str] | None], uids: Tag, budget: Budget | None) -> set[str]:
    """List what conditions name beyond some uids."""
    return {
        uid
        for names in named
        for uid in ({ANY_ATTRIBUTE} if names is None else names)
        if names is None or not permits(uids, uid.encode("utf-8", "surrogatepass"), budget)
    }


def _added(before: Tag, demand: Tag, uids: Tag, budget: Budget | None) -> set[str]:
    """List the closed attributes on which a demand asks for more than was asked before."""
    together = intersect(before, demand, budget)
    if together == before or is_nothing(together):
        return set()
    if not isinstance(demand, Rows):
        return {ANY_ATTRIBUTE}
    found: set[str] = set()
    for uid, wanted in demand.constraints:
        asked = before.get(uid) if isinstance(before, Rows) else None
        if not permits(uids, uid, budget) and (asked is None or intersect(asked, wanted, budget) != asked):
            found.add(uid.decode("ascii", "backslashreplace"))
    return found


def _bounded(held: Tag, given: Tag, uids: Tag, budget: Budget | None) -> set[str]:
    """List the closed attributes that bounds name which were not there before."""
    if isinstance(given, Everything):
        return set()
    if not isinstance(given, Bounds):
        return {ANY_ATTRIBUTE}
    known = held.members if isinstance(held, Bounds) else ()
    added = (member for member in given.members if member not in known)
    named = {uid for member in added for uid in member.filter.attributes}
    return {uid for uid in named if not permits(uids, uid.encode(), budget)}


def _parts(right: Tag, options: tuple[Tag, ...]) -> Iterator[Tag]:
    """Take an alternative apart by action and by demand: what offends for one may be right for another."""
    assert isinstance(right, ListTag)  # noqa: S101 - only a right on a type can close an attribute
    action = right.items[_ACTION]
    actions = _members(action)
    if isinstance(action, Everything):
        named = {item for option in options for item in _members(_item(option, _ACTION))}
        actions = tuple(sorted({*_ON_CELLS, *named}, key=repr))
    for chosen in actions:
        yield from _by_demand(ListTag((*right.items[:_ACTION], chosen, *right.items[_ACTION + 1 :])))


def _by_demand(right: Tag) -> Iterator[Tag]:
    if not _on_type(right) or len(right.items) <= _ROWS:
        yield right
        return
    for demand in _demands(right):
        items = (*right.items[:_ROWS], demand, *right.items[_ROWS + 1 :])
        for bound in _bounds(right):
            yield ListTag((*items[:_BOUNDS], bound, *items[_BOUNDS + 1 :]) if len(items) > _BOUNDS else items)
