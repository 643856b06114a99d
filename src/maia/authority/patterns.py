"""Sets of octet strings that a tag can name: prefixes, globs, ranges, and their intersections.

Membership is exact and linear in the string. Emptiness of an intersection of prefixes, globs and ``alpha`` ranges is
decided exactly (see `emptiness`), within a bound; other mixtures (a glob with a ``numeric`` range)
stay as they are, which is sound: an intersection that admits nothing denies everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import AnyStr, TypeAlias

from maia.authority.budget import Budget
from maia.authority.emptiness import STAR, Edge, disjoint
from maia.authority.orderings import Ordering, OrderKey
from maia.encoding import Sexp
from maia.errors import TagError

MAX_PIECES = 64
MAX_CONJUNCTS = 16
_STAR_LETTER = "\u0100"  # no octet has this number


def _in_order(text: AnyStr, pieces: list[AnyStr], position: int, end: int) -> bool:
    """Tell whether the pieces stand in the text one after the other, without overlap, between two places."""
    for piece in pieces:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


@dataclass(frozen=True, slots=True)
class Prefix:
    """Strings that start with ``octets``."""

    octets: bytes

    def contains(self, value: bytes) -> bool:
        """Tell whether ``value`` starts so."""
        return value.startswith(self.octets)

    def to_sexp(self) -> Sexp:
        """Write ``(* prefix <octets>)``."""
        return (b"*", b"prefix", self.octets)


@dataclass(frozen=True, slots=True)
class Glob:
    """Literal pieces with any run of octets between them: ``Test*Type`` is the pieces ``Test`` and ``Type``."""

    pieces: tuple[bytes, ...]

    def __post_init__(self) -> None:
        """Bound the pieces."""
        if not 2 <= len(self.pieces) <= MAX_PIECES:
            raise TagError(f"a glob has 1 to {MAX_PIECES - 1} stars", code="TAG_GLOB")

    def contains(self, value: bytes) -> bool:
        """Match greedily from the left; linear, whatever the pattern."""
        first, *middle, last = self.pieces
        if len(value) < len(first) + len(last) or not (value.startswith(first) and value.endswith(last)):
            return False
        return _in_order(value, middle, len(first), len(value) - len(last))

    def tokens(self) -> tuple[int, ...]:
        """Spell the glob as octets and stars."""
        out: list[int] = list(self.pieces[0])
        for piece in self.pieces[1:]:
            out.append(STAR)
            out.extend(piece)
        return tuple(out)

    def covers(self, other: Glob) -> bool:
        """Tell whether every string of ``other`` is one of ours.

        A star of ``other`` is read as a letter that only a star of ours can take. Sound always; complete because
        some octet stands in neither pattern, unless together they use all 256.
        """
        text = _STAR_LETTER.join(piece.decode("latin-1") for piece in other.pieces)
        first, *middle, last = (piece.decode("latin-1") for piece in self.pieces)
        if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
            return False
        return _in_order(text, middle, len(first), len(text) - len(last))

    def to_sexp(self) -> Sexp:
        """Write ``(* glob <text>)``, or ``(* pieces …)`` when a piece itself holds a star."""
        if any(b"*" in piece for piece in self.pieces):
            return (b"*", b"pieces", *self.pieces)
        return (b"*", b"glob", b"*".join(self.pieces))


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of a range: its text, whether it belongs to the range, and its comparable value."""

    octets: bytes
    inclusive: bool
    key: OrderKey = field(compare=False)


@dataclass(frozen=True, slots=True)
class Range:
    """Values of one ordering between two limits, each of which may be absent."""

    ordering: Ordering
    low: Limit | None
    high: Limit | None

    def contains(self, value: bytes) -> bool:
        """Compare in the ordering; octets that are no value of it lie outside."""
        key = self.ordering.key(value)
        if key is None:
            return False
        return _above(key, self.low) and _below(key, self.high)

    def is_empty(self) -> bool:
        """Tell whether no value lies between the limits."""
        if self.low is None or self.high is None:
            if self.high is not None and not self.high.inclusive:
                return self.high.key == _FLOORS.get(self.ordering)
            return False
        low, high = self.low.key, self.high.key
        if self.ordering is Ordering.ALPHA and not self.low.inclusive:
            low = _successor(low)
        elif self.ordering.discrete and not self.low.inclusive:
            low = _next(low)
        elif not self.low.inclusive:
            return not low < high  # type: ignore[operator]
        return not (low <= high if self.high.inclusive else low < high)  # type: ignore[operator]

    def to_sexp(self) -> Sexp:
        """Write ``(* range <ordering> ge|g <low> le|l <high>)``."""
        out: list[Sexp] = [b"*", b"range", self.ordering.value.encode()]
        if self.low is not None:
            out += [b"ge" if self.low.inclusive else b"g", self.low.octets]
        if self.high is not None:
            out += [b"le" if self.high.inclusive else b"l", self.high.octets]
        return tuple(out)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Strings that lie in every part; the form for intersections that RFC 2693 has no form for."""

    parts: tuple[Prefix | Glob | Range, ...]

    def contains(self, value: bytes) -> bool:
        """Ask every part."""
        return all(part.contains(value) for part in self.parts)

    def to_sexp(self) -> Sexp:
        """Write ``(* and <form> …)``, parts in a fixed order."""
        return (b"*", b"and", *(part.to_sexp() for part in self.parts))


SimplePattern: TypeAlias = "Prefix | Glob | Range"
Pattern: TypeAlias = "Prefix | Glob | Range | Conjunction"


def make_glob(pieces: tuple[bytes, ...]) -> Glob | Prefix | bytes:
    """Build the simplest form of a glob: a literal, a prefix, or pieces without doubled stars."""
    if len(pieces) == 1:
        return pieces[0]
    inner = tuple(piece for piece in pieces[1:-1] if piece)
    if not inner and not pieces[-1]:
        return Prefix(pieces[0])
    return Glob((pieces[0], *inner, pieces[-1]))


def intersect_patterns(a: Pattern, b: Pattern, budget: Budget | None = None) -> Pattern | None:
    """Return the strings in both sets, or ``None`` when there are none; what it takes is drawn from the budget.

    >>> intersect_patterns(Prefix(b"a"), Prefix(b"ab"))
    Prefix(octets=b'ab')
    >>> intersect_patterns(Prefix(b"a"), Prefix(b"b")) is None
    True
    """
    parts = list(_parts(a))  # which no longer merge among themselves
    for incoming in _parts(b):
        part: SimplePattern | None = incoming
        # Folding one part in may make room for another merge, so start over after each success.
        merged = True
        while merged and part is not None:
            merged = False
            for index, other in enumerate(parts):
                if budget is not None:
                    budget.spend(6 + _length(part) // 64 + _length(other) // 64)
                done, result = _merge(other, part)
                if done:
                    del parts[index]
                    part, merged = result, True
                    break
        if part is None:
            return None
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    if len(parts) > MAX_CONJUNCTS:
        raise TagError(f"more than {MAX_CONJUNCTS} patterns on one string", code="TAG_TOO_LARGE")
    if _disjoint(parts, budget):
        return None
    return Conjunction(tuple(sorted(parts, key=_sort_key)))


def _length(part: SimplePattern) -> int:
    """Count the octets that comparing a pattern looks at."""
    if isinstance(part, Prefix):
        return len(part.octets)
    if isinstance(part, Glob):
        return sum(map(len, part.pieces)) + 8 * len(part.pieces)
    return sum(len(limit.octets) for limit in (part.low, part.high) if limit is not None)


def _parts(pattern: Pattern) -> tuple[SimplePattern, ...]:
    return pattern.parts if isinstance(pattern, Conjunction) else (pattern,)


def _sort_key(part: SimplePattern) -> tuple[str, str]:
    return (type(part).__name__, repr(part))


def _merge(a: SimplePattern, b: SimplePattern) -> tuple[bool, SimplePattern | None]:
    """Try to express the intersection as one simple pattern: (done, result)."""
    if isinstance(a, Range) and isinstance(b, Range):
        return _merge_ranges(a, b) if a.ordering is b.ordering else (False, None)
    if isinstance(a, Range):
        return _merge_prefix_range(b, a) if isinstance(b, Prefix) else (False, None)
    if isinstance(b, Range):
        return _merge_prefix_range(a, b) if isinstance(a, Prefix) else (False, None)
    if isinstance(a, Prefix) and isinstance(b, Prefix):
        longer, shorter = (a, b) if len(a.octets) >= len(b.octets) else (b, a)
        return True, longer if longer.octets.startswith(shorter.octets) else None
    if _as_glob(a).covers(_as_glob(b)):
        return True, b
    if _as_glob(b).covers(_as_glob(a)):
        return True, a
    return False, None


def _as_glob(pattern: Prefix | Glob) -> Glob:
    return Glob((pattern.octets, b"")) if isinstance(pattern, Prefix) else pattern


def _merge_ranges(a: Range, b: Range) -> tuple[bool, Range | None]:
    result = Range(a.ordering, _tighter(a.low, b.low, above=True), _tighter(a.high, b.high, above=False))
    return True, None if result.is_empty() else result


def _merge_prefix_range(prefix: Prefix, window: Range) -> tuple[bool, SimplePattern | None]:
    if window.ordering is not Ordering.ALPHA:
        return False, None
    done, result = _merge_ranges(_prefix_range(prefix), window)
    if result == _prefix_range(prefix):
        return done, prefix
    return done, result


def _prefix_range(prefix: Prefix) -> Range:
    """Express a prefix as the interval of octet strings that start so."""
    stem = prefix.octets.rstrip(b"\xff")
    above = stem[:-1] + bytes((stem[-1] + 1,)) if stem else None
    high = None if above is None else Limit(above, inclusive=False, key=above)
    return Range(Ordering.ALPHA, Limit(prefix.octets, inclusive=True, key=prefix.octets), high)


def _tighter(a: Limit | None, b: Limit | None, *, above: bool) -> Limit | None:
    if a is None or b is None:
        return b if a is None else a
    if a.key == b.key:
        return b if a.inclusive else a
    return a if (a.key > b.key) is above else b  # type: ignore[operator]


def _above(key: OrderKey, low: Limit | None) -> bool:
    if low is None:
        return True
    return bool(key >= low.key if low.inclusive else key > low.key)  # type: ignore[operator]


def _below(key: OrderKey, high: Limit | None) -> bool:
    if high is None:
        return True
    return bool(key <= high.key if high.inclusive else key < high.key)  # type: ignore[operator]


def _next(key: OrderKey) -> OrderKey:
    if isinstance(key, Decimal):
        # Exact whatever the length: the default context would round beyond 28 digits.
        return Context(prec=len(key.as_tuple().digits) + 2).add(key, Decimal(1))
    assert isinstance(key, int)  # noqa: S101 - octet strings have their own successor
    return key + 1


def _successor(key: OrderKey) -> bytes:
    assert isinstance(key, bytes)  # noqa: S101 - only alpha ranges ask
    return key + b"\x00"


# The smallest value of an ordering, where there is one.
_FLOORS: dict[Ordering, OrderKey] = {Ordering.ALPHA: b"", Ordering.BINARY: 0, Ordering.TIME: 0, Ordering.DATE: 0}


def _disjoint(parts: list[SimplePattern], budget: Budget | None) -> bool:
    """Tell whether the prefixes, globs and alpha ranges among the parts share no string.

    Globs alone do exactly when their ends fit: the longest start, all middles in turn and the longest end match all.
    """
    globs = [_as_glob(part) for part in parts if not isinstance(part, Range)]
    start = max((glob.pieces[0] for glob in globs), key=len, default=b"")
    end = max((glob.pieces[-1] for glob in globs), key=len, default=b"")
    if not all(start.startswith(glob.pieces[0]) and end.endswith(glob.pieces[-1]) for glob in globs):
        return True
    windows = [
        (_bound(part.low), _bound(part.high))
        for part in parts
        if isinstance(part, Range) and part.ordering is Ordering.ALPHA
    ]
    return bool(globs and windows) and disjoint([glob.tokens() for glob in globs], windows, budget)


def _bound(limit: Limit | None) -> Edge | None:
    return None if limit is None else Edge(limit.octets, limit.inclusive)
