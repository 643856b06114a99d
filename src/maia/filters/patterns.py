"""Is there a string in these intervals that has these parts and lacks those? Decided exactly, without automata.

The question: given an interval set of strings in code point order, texts the string must end with, texts it must
contain, texts it must not end with and texts it must not contain, is any string left?

Why it is simple: the alphabet (1 112 064 scalar values) is larger than any filter, so there is always a *fresh*
character, one that occurs in none of the texts. An interval of strings is a finite union of single strings and of cones
`p d *` (a stem `p`, one character `d` of a range, then anything), read off its two ends. Single strings are tested. In
a cone, a string that satisfies everything exists exactly when

1. the wanted endings agree (each is an ending of the longest), and no wanted text holds an unwanted one, and the
   longest wanted ending does not itself have an unwanted ending: otherwise no string at all will do; and
2. `p d` holds no unwanted text: then `p d # part # part … # ending`, with a fresh `#` between, is a witness.

For 2 a fresh `d` is the best choice when the range has one; otherwise every character of the range occurs in some text,
so there are few and each is tried. Stems are the beginnings of the two ends of the interval, so once one holds an
unwanted text all longer ones do.

The work grows with the length of the ends times the length of all texts; beyond `MAX_WORK` the question is not answered
(`UncheckedError`), which callers treat as "not proven".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from maia.errors import UncheckedError
from maia.filters.sets import LAST_CODE_POINT, Cut, Cuts, at_value, intervals, next_character

MAX_WORK = 10_000_000

_FIRST_SURROGATE = 0xD800
_SURROGATES = 0x800


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDemand:
    """What a string must end with and contain, and what it must not."""

    endings: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    not_endings: tuple[str, ...] = ()
    not_parts: tuple[str, ...] = ()

    def admits(self, text: str) -> bool:
        """Test one string."""
        return (
            all(text.endswith(ending) for ending in self.endings)
            and all(part in text for part in self.parts)
            and not any(text.endswith(ending) for ending in self.not_endings)
            and not any(part in text for part in self.not_parts)
        )

    @property
    def free(self) -> bool:
        """Whether nothing is asked at all."""
        return not (self.endings or self.parts or self.not_endings or self.not_parts)


@dataclass(frozen=True, slots=True)
class _Cone:
    """All strings `stem d …` with d between two characters, both included; without range, all that start with stem."""

    stem: str
    low: str = ""
    high: str = ""


def inhabited(cuts: Cuts, wanted: TextDemand) -> bool:
    """Say whether some string of the set is as wanted."""
    if wanted.free:
        return bool(cuts)
    texts = "".join((*wanted.endings, *wanted.parts, *wanted.not_endings, *wanted.not_parts))
    ends = sum(len(str(cut[1])) + 1 for cut in cuts if at_value(cut))
    if ends * (len(texts) + 1) > MAX_WORK:
        raise UncheckedError("the filters are too large to be compared", code="FILTER_TOO_LARGE")
    agreed = _agreed(wanted)
    used = frozenset(texts)
    return any(
        wanted.admits(piece) if isinstance(piece, str) else agreed and _fits(piece, wanted.not_parts, used)
        for low, high in intervals(cuts)
        for piece in _pieces(low, high, wanted.not_parts)
    )


def example(cuts: Cuts, wanted: TextDemand) -> str | None:
    """Give a string of the set that is as wanted, or None when there is none.

    >>> from maia.filters.sets import before
    >>> example((before("a"), before("c")), TextDemand(endings=("x",), not_parts=("b",)))
    'ax'
    """
    if not inhabited(cuts, wanted):
        return None
    texts = "".join((*wanted.endings, *wanted.parts, *wanted.not_endings, *wanted.not_parts))
    spelled = (
        text
        for low, high in intervals(cuts)
        for piece in _pieces(low, high, wanted.not_parts)
        for text in ((piece,) if isinstance(piece, str) else _spellings(piece, wanted, frozenset(texts)))
    )
    return next((text for text in spelled if wanted.admits(text)), None)


def _spellings(cone: _Cone, wanted: TextDemand, used: frozenset[str]) -> Iterator[str]:
    """Spell strings of a cone, the shortest first; the last ones are the witness of rule 2."""
    starts = [cone.stem + character for character in _choices(cone, used)] if cone.low else [cone.stem]
    ending = max(wanted.endings, key=len, default="")
    fresh = next(character for character in map(chr, range(ord("-"), LAST_CODE_POINT)) if character not in used)
    whole = fresh.join(("", *wanted.parts, ending))
    for start in starts:
        yield from (start, start + ending, start + "".join(wanted.parts) + ending, start + whole)


def _choices(cone: _Cone, used: frozenset[str]) -> Iterator[str]:
    """Give characters of a cone's range: the first that no text has, and then those that some have."""
    first, last = ord(cone.low), ord(cone.high)
    scalars = (code for start in (max(first, ord("-")), first) for code in range(start, last + 1))
    fresh = (chr(code) for code in scalars if not 0 <= code - _FIRST_SURROGATE < _SURROGATES and chr(code) not in used)
    yield from islice(fresh, 1)
    yield from sorted(character for character in used if cone.low <= character <= cone.high)


def _agreed(wanted: TextDemand) -> bool:
    """Rule 1: whether the wanted texts can stand in one string beside the unwanted ones."""
    ending = max(wanted.endings, key=len, default="")
    if not all(ending.endswith(other) for other in wanted.endings):
        return False
    if any(ending.endswith(other) for other in wanted.not_endings):
        return False
    return not any(bad in text for bad in wanted.not_parts for text in (ending, *wanted.parts))


def _fits(cone: _Cone, unwanted: Sequence[str], used: frozenset[str]) -> bool:
    """Rule 2: whether some `stem d` of the cone holds no unwanted text."""
    if any(text in cone.stem for text in unwanted):
        return False
    if not cone.low:
        return True
    held = sorted(character for character in used if cone.low <= character <= cone.high)
    if len(held) < _count(cone.low, cone.high):
        return True
    return any(not any(text in cone.stem + character for text in unwanted) for character in held)


def _count(low: str, high: str) -> int:
    """How many scalar values lie between two characters, both included."""
    gap = _SURROGATES if ord(low) < _FIRST_SURROGATE <= ord(high) else 0
    return ord(high) - ord(low) + 1 - gap


def _clean(text: str, unwanted: Sequence[str]) -> int:
    """The length of the longest beginning of a text that holds nothing unwanted."""
    found = [text.find(bad) + len(bad) - 1 for bad in unwanted if bad in text]
    return min(found, default=len(text))


def _pieces(low: Cut, high: Cut, unwanted: Sequence[str]) -> Iterator[str | _Cone]:
    """The single strings and the cones that make up one interval, without those that begin with something unwanted."""
    start = str(low[1]) if at_value(low) else ""
    if not at_value(high):
        yield _Cone(start)
        yield from _above(start, 0, _clean(start, unwanted))
        return
    end = str(high[1])
    shared = 0
    while shared < min(len(start), len(end)) and start[shared] == end[shared]:
        shared += 1
    if shared == len(start):
        yield from _below(end, shared, _clean(end, unwanted))
        return
    yield _Cone(start)
    yield from _above(start, shared + 1, _clean(start, unwanted))
    first, last = next_character(start[shared]), _previous_character(end[shared])
    if first <= last:
        yield _Cone(start[:shared], first, last)
    yield from _below(end, shared + 1, _clean(end, unwanted))


def _above(text: str, position: int, clean: int) -> Iterator[_Cone]:
    """Strings larger than the text that leave it at or after the position, after a clean beginning."""
    for index in range(position, min(len(text), clean + 1)):
        if ord(text[index]) < LAST_CODE_POINT:
            yield _Cone(text[:index], next_character(text[index]), chr(LAST_CODE_POINT))


def _below(text: str, position: int, clean: int) -> Iterator[str | _Cone]:
    """Strings smaller than the text that leave it, or stop, at or after the position, after a clean beginning."""
    for index in range(position, min(len(text), clean + 1)):
        yield text[:index]
        if text[index] != "\0":
            yield _Cone(text[:index], "\0", _previous_character(text[index]))


def _previous_character(character: str) -> str:
    code = ord(character) - 1
    return chr(_FIRST_SURROGATE - 1 if _FIRST_SURROGATE <= code < _FIRST_SURROGATE + _SURROGATES else code)
