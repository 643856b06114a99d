"""Tags: the language in which authority is written (RFC 2693, section 6.3), and its algebra.

A tag stands for a set of ground requests:

- an octet string stands for itself, display hint included;
- a list ``(a b)`` stands for every list that starts with elements of its elements: shorter tags grant more;
- ``(*)`` everything; ``(* set t …)`` any of them, and of nothing when empty;
- ``(* prefix s)``, ``(* range <ordering> …)``, ``(* glob s)``, ``(* pieces s …)``, ``(* and p …)``: sets of strings;
- ``(* where (<uid> t) …)``: rows ``(row (<uid> <value>) …)`` in which each listed uid has a value in its tag. This is
  Maia's own form: a constraint on a row, not on a cell, so one empty member leaves no row at all (choice C30).
  ``(<uid> t enforced)`` says besides that the receiving domain is trusted to enforce it (choice C42);
- ``(* bound (<kind> …) …)``: rows and filters that access-control filters allow, see `bounds`.

Rules kept here: anything else is refused; lists are never empty; requests are ground; intersection is total, and
`permits` needs no intersection, so deciding a request never grows with the number of alternatives in a chain.
"""

from __future__ import annotations

from maia.authority.bounds import Bounds, parse_bounds
from maia.authority.budget import Budget
from maia.authority.orderings import Ordering
from maia.authority.patterns import (
    Conjunction,
    Limit,
    Prefix,
    Range,
    intersect_patterns,
    make_glob,
)
from maia.authority.tag_forms import (
    ENFORCED,
    EVERYTHING,
    MAX_ALTERNATIVES,
    NOTHING,
    Everything,
    Exactly,
    ListTag,
    OneOf,
    Rows,
    Strings,
    Tag,
    is_nothing,
    one_of,
    rows,
    sequence,
)
from maia.encoding import Hinted, Sexp
from maia.errors import TagError

MAX_AND_PAIRS = 64  # patterns met with patterns while one written intersection is read
MAX_PAIRS = 16 * MAX_ALTERNATIVES
_LIMITS = {b"g": (True, False), b"ge": (True, True), b"l": (False, False), b"le": (False, True)}


def parse_tag(expression: Sexp, budget: Budget | None = None) -> Tag:
    """Read a tag from its expression; written intersections draw from a budget, where there is one.

    Returns:
        The tag in normal form: sets flat and sorted, globs simple.

    Raises:
        TagError: The expression is not a tag.
        UncheckedError: The budget is used up.

    >>> from maia.encoding import parse_advanced
    >>> parse_tag(parse_advanced("(ftp (* set read write))")).to_sexp()
    (b'ftp', (b'*', b'set', b'read', b'write'))
    """
    if isinstance(expression, (bytes, Hinted)):
        return Exactly(expression)
    if not expression:
        raise TagError("a tag holds an empty list", code="TAG_EMPTY_LIST")
    if expression[0] != b"*":
        return sequence([parse_tag(item, budget) for item in expression])
    match expression[1:]:
        case ():
            return EVERYTHING
        case (b"set", *members):
            return one_of(parse_tag(member, budget) for member in members)
        case (b"where", *constraints):
            return _parse_where(constraints, budget)
        case (b"and", *parts):
            return _parse_and(parts, budget)
        case (b"bound", *members):
            return parse_bounds(members)
        case _:
            return _parse_strings(expression[1:])


def _parse_strings(form: tuple[Sexp, ...]) -> Tag:
    match form:
        case (b"prefix", bytes() as octets):
            return Strings(Prefix(octets))
        case (b"glob", bytes() as text):
            return _glob(tuple(text.split(b"*")))
        case (b"pieces", bytes(), bytes(), *_) if all(isinstance(piece, bytes) for piece in form):
            return _glob(form[1:])  # type: ignore[arg-type]
        case (b"range", bytes() as ordering, *limits):
            return _parse_range(ordering, limits)
        case _:
            raise TagError("an unknown or malformed star form", code="TAG_FORM")


def _glob(pieces: tuple[bytes, ...]) -> Tag:
    simple = make_glob(pieces)
    return Exactly(simple) if isinstance(simple, bytes) else Strings(simple)


def _parse_range(name: bytes, limits: list[Sexp]) -> Tag:
    try:
        ordering = Ordering(name.decode("ascii", "replace"))
    except ValueError as error:
        raise TagError("a range with an unknown ordering", code="TAG_RANGE") from error
    flat: list[Sexp] = []
    for limit in limits:  # RFC 2693 writes limits flat; older examples put each in a list of its own
        flat.extend(limit if isinstance(limit, tuple) else (limit,))
    if len(flat) % 2 or len(flat) > 4:
        raise TagError("a range with malformed limits", code="TAG_RANGE")
    ends: dict[bool, Limit] = {}
    for operator, octets in zip(flat[0::2], flat[1::2], strict=True):
        if not isinstance(operator, bytes) or operator not in _LIMITS or not isinstance(octets, bytes):
            raise TagError("a range with malformed limits", code="TAG_RANGE")
        lower, inclusive = _LIMITS[operator]
        key = ordering.key(octets)
        if key is None:
            raise TagError(f"a limit that is no {ordering.value} value", code="TAG_RANGE")
        if lower in ends:
            raise TagError("a range with two limits on one side", code="TAG_RANGE")
        ends[lower] = Limit(octets, inclusive, key)
    window = Range(ordering, ends.get(True), ends.get(False))
    return NOTHING if window.is_empty() else Strings(window)


def _parse_and(parts: list[Sexp], budget: Budget | None) -> Tag:
    if not parts:
        raise TagError("an intersection of nothing", code="TAG_FORM")
    result: Tag = EVERYTHING
    for part in parts:
        tag = parse_tag(part, budget)
        if not isinstance(tag, (Strings, Exactly, OneOf)):
            raise TagError("an intersection of something else than strings", code="TAG_FORM")
        if _patterns_in(result) * _patterns_in(tag) > MAX_AND_PAIRS:
            raise TagError(f"more than {MAX_AND_PAIRS} pairs of patterns in one intersection", code="TAG_TOO_LARGE")
        result = intersect(result, tag, budget)
    return result


def _patterns_in(tag: Tag) -> int:
    return sum(isinstance(member, Strings) for member in (tag.members if isinstance(tag, OneOf) else (tag,)))


def _parse_where(constraints: list[Sexp], budget: Budget | None) -> Tag:
    found: dict[bytes, Tag] = {}
    enforced: set[bytes] = set()
    for constraint in constraints:
        match constraint:
            case (bytes() as uid, tag) if uid and uid not in found:
                found[uid] = parse_tag(tag, budget)
            case (bytes() as uid, tag, word) if uid and uid not in found and word == ENFORCED:
                found[uid] = parse_tag(tag, budget)
                enforced.add(uid)
            case _:
                raise TagError("a row constraint is a list of uid and tag, each uid once", code="TAG_WHERE")
    return rows(found.items(), enforced=enforced)


def intersect(a: Tag, b: Tag, budget: Budget | None = None) -> Tag:
    """Return what both tags admit; `NOTHING` when that is nothing. Each pair that meets is a step of the budget.

    Raises:
        TagError: The result has more than `MAX_ALTERNATIVES` alternatives. Decisions do not need it: see `permits`.
        UncheckedError: The budget is used up.

    >>> from maia.encoding import parse_advanced
    >>> a, b = (parse_tag(parse_advanced(t)) for t in ("(ftp (* prefix a))", "(ftp (* set ab b) read)"))
    >>> intersect(a, b).to_sexp()
    (b'ftp', b'ab', b'read')
    """
    if budget is not None:
        budget.spend()
    if isinstance(a, Everything) or isinstance(b, Everything):
        return b if isinstance(a, Everything) else a
    if isinstance(a, OneOf) or isinstance(b, OneOf):
        left = a.members if isinstance(a, OneOf) else (a,)
        return _intersect_sets(left, b.members if isinstance(b, OneOf) else (b,), budget)
    if isinstance(a, Exactly) or isinstance(b, Exactly):
        exact, other = (a, b) if isinstance(a, Exactly) else (b, a)
        return exact if permits(other, exact.to_sexp(), budget) else NOTHING
    if isinstance(a, ListTag) and isinstance(b, ListTag):
        shorter, longer = sorted((a.items, b.items), key=len)
        common = [intersect(x, y, budget) for x, y in zip(shorter, longer, strict=False)]
        return sequence([*common, *longer[len(shorter) :]])
    if isinstance(a, Strings) and isinstance(b, Strings):
        pattern = intersect_patterns(a.pattern, b.pattern, budget)
        return NOTHING if pattern is None else Strings(pattern)
    if isinstance(a, Rows) and isinstance(b, Rows):
        return _intersect_rows(a, b, budget)
    if isinstance(a, Bounds) and isinstance(b, Bounds):
        return _intersect_bounds(a, b, budget)
    return _within_list(a, b, budget) if isinstance(a, ListTag) else _within_list(b, a, budget)


def _intersect_sets(left: tuple[Tag, ...], right: tuple[Tag, ...], budget: Budget | None) -> Tag:
    """Unite the intersections of all pairs; plain strings meet by lookup, so long lists of them cost little."""
    if budget is not None:
        budget.spend((len(left) + len(right)) // 2)
    plain = [frozenset(tag for tag in side if isinstance(tag, Exactly)) for side in (left, right)]
    others = [tuple(tag for tag in side if not isinstance(tag, Exactly)) for side in (left, right)]
    if len(others[0]) * len(right) + len(plain[0]) * len(others[1]) > MAX_PAIRS:
        raise TagError(f"more than {MAX_PAIRS} pairs of alternatives", code="TAG_TOO_LARGE")
    if not others[0] and not others[1]:
        common = tuple(tag for tag in left if tag in plain[1])  # in the order of the left side, which is canonical
        return common[0] if len(common) == 1 else OneOf(common)
    found: list[Tag] = list(plain[0] & plain[1])
    found += [intersect(x, y, budget) for x in others[0] for y in right]
    found += [intersect(x, y, budget) for x in plain[0] for y in others[1]]
    if budget is not None:
        budget.spend(8 * sum(not is_nothing(tag) for tag in found))
    return one_of(found)


def _intersect_rows(a: Rows, b: Rows, budget: Budget | None) -> Tag:
    if budget is not None:
        budget.spend((len(a.constraints) + len(b.constraints)) // 2)
    merged = dict(a.constraints)
    for uid, tag in b.constraints:
        merged[uid] = intersect(merged[uid], tag, budget) if uid in merged else tag
    # SECURITY: whoever sets a demand says who enforces it; nobody below can say so of a demand set above.
    distrusted = {uid for side in (a, b) for uid, _ in side.constraints if uid not in side.enforced}
    return rows(merged.items(), enforced=merged.keys() - distrusted)


def _intersect_bounds(a: Bounds, b: Bounds, budget: Budget | None) -> Bounds:
    """Hold both: no link loses a bound of the links above it."""
    if budget is not None:
        budget.spend(len(a.members) + len(b.members))
    return a.meet(b)


def _within_list(listed: Tag, other: Tag, budget: Budget | None) -> Tag:
    """Narrow a list that spells out what a request is about, as a request for one cell does."""
    if isinstance(listed, ListTag) and isinstance(other, Rows):
        return _constrain_cells(other, listed, budget)
    if isinstance(listed, ListTag) and isinstance(other, Bounds) and permits(other, listed.to_sexp(), budget):
        return listed
    return NOTHING


def _constrain_cells(wanted: Rows, listed: ListTag, budget: Budget | None) -> Tag:
    """Narrow the cells of a list that spells a row out, as a request for one cell does.

    A demand on an attribute that the list does not spell out leaves nothing, though a longer row might meet it: no tag
    says "this list, and such a cell somewhere behind it", and saying less is safe.
    """
    if not permits(listed.items[0], b"row"):
        return NOTHING
    open_demands = dict(wanted.constraints)
    items: list[Tag] = [Exactly(b"row")]
    for item in listed.items[1:]:
        match item:
            case ListTag((Exactly(bytes() as uid), value)) if uid in open_demands:
                items.append(sequence((Exactly(uid), intersect(open_demands.pop(uid), value, budget))))
            case _:
                items.append(item)
    return NOTHING if open_demands else sequence(items)


def permits(tag: Tag, request: Sexp, budget: Budget | None = None) -> bool:
    """Tell whether a ground request lies in a tag; each member of a set is a step of the budget, where there is one.

    Raises:
        UncheckedError: The budget is used up.

    >>> from maia.encoding import parse_advanced
    >>> permits(parse_tag(parse_advanced("(a)")), (b"a", b"b"))
    True
    >>> permits(parse_tag(parse_advanced("(a b)")), (b"a",))
    False
    """
    if isinstance(tag, Everything):
        return True
    if isinstance(tag, Exactly):
        return request == tag.value
    if isinstance(tag, ListTag):
        if not isinstance(request, tuple) or len(request) < len(tag.items):
            return False
        return all(permits(item, part, budget) for item, part in zip(tag.items, request, strict=False))
    if isinstance(tag, OneOf):
        if budget is not None:
            budget.spend(len(tag.members))
        return any(permits(member, request, budget) for member in tag.members)
    if isinstance(tag, Strings):
        return isinstance(request, bytes) and tag.pattern.contains(request)
    if isinstance(tag, Bounds):
        if budget is not None:
            budget.spend(sum(len(member.filter.constraints) for member in tag.members))
        return tag.permit(request)
    return _permits_row(tag, request, budget)


def apart(tag: Tag, wanted: Tag) -> bool:
    """Tell, looking at each part once, that two tags surely have nothing in common; ``False`` when in doubt.

    >>> apart(parse_tag((b"a", b"b")), parse_tag((b"a", b"c"))), apart(EVERYTHING, Exactly(b"a"))
    (True, False)
    """
    if isinstance(tag, OneOf):
        return not isinstance(wanted, OneOf) and all(apart(member, wanted) for member in tag.members)
    if isinstance(tag, Exactly) and isinstance(wanted, Exactly):
        return tag.value != wanted.value
    if isinstance(tag, ListTag) and isinstance(wanted, ListTag):
        return any(apart(x, y) for x, y in zip(tag.items, wanted.items, strict=False))
    return False


def _permits_row(tag: Rows, request: Sexp, budget: Budget | None) -> bool:
    if not isinstance(request, tuple) or request[:1] != (b"row",):
        return False
    values = {cell[0]: cell[1] for cell in request[1:] if isinstance(cell, tuple) and len(cell) == 2}
    if len(values) != len(request) - 1:
        return False  # a uid twice, or something that is no cell
    return all(uid in values and permits(wanted, values[uid], budget) for uid, wanted in tag.constraints)


def check_ground(request: Sexp) -> Sexp:
    """Give back a request that names one thing, and refuse one that holds a star form or an empty list.

    Raises:
        TagError: The request is not ground.
    """
    stack: list[Sexp] = [request]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            if not item or item[0] == b"*":
                raise TagError("a request names one thing: no star forms, no empty lists", code="REQUEST_NOT_GROUND")
            stack.extend(item)
    return request


def covers(wide: Tag, narrow: Tag) -> bool:
    """Tell whether ``wide`` surely admits all that ``narrow`` admits; ``False`` may also mean "cannot tell".

    >>> covers(EVERYTHING, Exactly(b"a")), covers(Exactly(b"a"), EVERYTHING)
    (True, False)
    """
    if isinstance(narrow, OneOf):
        return all(covers(wide, member) for member in narrow.members)
    if isinstance(wide, OneOf):
        return any(covers(member, narrow) for member in wide.members)
    if isinstance(wide, ListTag) and isinstance(narrow, ListTag):
        fits = len(wide.items) <= len(narrow.items)
        return fits and all(covers(x, y) for x, y in zip(wide.items, narrow.items, strict=False))
    if isinstance(wide, Rows) and isinstance(narrow, Rows):
        found = ((tag, narrow.get(uid)) for uid, tag in wide.constraints)
        trusted = all(uid in wide.enforced or wide.get(uid) is None for uid in narrow.enforced)
        return trusted and all(inner is not None and covers(tag, inner) for tag, inner in found)
    return intersect(wide, narrow) == narrow


def patterns_in(tag: Tag) -> int:
    """Count the patterns that a value must be compared with, one by one, to know whether it lies in a tag.

    >>> patterns_in(parse_tag((b"*", b"set", b"a", (b"*", b"prefix", b"b"), (b"*", b"glob", b"*c"))))
    2
    """
    if isinstance(tag, OneOf):
        return sum(map(patterns_in, tag.members))
    if isinstance(tag, Strings):
        return len(tag.pattern.parts) if isinstance(tag.pattern, Conjunction) else 1
    if isinstance(tag, ListTag):
        return sum(map(patterns_in, tag.items))
    return 0


def splits(tag: Tag) -> tuple[frozenset[bytes], Tag]:
    """Part a tag into the plain octet strings of its set, to be looked up, and the rest."""
    members = tag.members if isinstance(tag, OneOf) else (tag,)
    plain = [item.value for item in members if isinstance(item, Exactly) and isinstance(item.value, bytes)]
    rest = [item for item in members if not (isinstance(item, Exactly) and isinstance(item.value, bytes))]
    return frozenset(plain), rest[0] if len(rest) == 1 else OneOf(tuple(rest))


def alternatives(tag: Sexp) -> list[Sexp]:
    """List the members of a set, or the one thing that is no set.

    >>> alternatives((b"*", b"set", b"a", b"b")), alternatives(b"a")
    ([b'a', b'b'], [b'a'])
    """
    match tag:
        case (b"*", b"set", *members):
            return list(members)
        case _:
            return [tag]
