"""Random expressions, tags, requests and principals for the laws of the trust core.

Generators take a ``random.Random``, which hypothesis (`randoms`) or a bulk test seeds. Nothing here uses the code under
test beyond plain constructors, so oracles built on it stay independent.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from hypothesis import strategies as st

from maia.encoding import Hinted, Sexp
from maia.principals import KeySigner

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SIGNERS = tuple(KeySigner(bytes([number]) * 32) for number in range(1, 9))

# A seed each: these worlds are too large for hypothesis to shrink, and a seed prints in one line.
randoms = st.integers(0, 2**63).map(random.Random)

# ---------------------------------------------------------------- expressions

octets = st.one_of(st.binary(max_size=12), st.sampled_from([b"", b"*", b"0", b"(", b"3:abc", b"\x00", b"\xff" * 40]))
hinted = st.builds(Hinted, octets, octets)
expressions = st.recursive(
    st.one_of(octets, hinted), lambda inner: st.lists(inner, max_size=5).map(tuple), max_leaves=25
)


def random_expression(rng: random.Random, depth: int = 4) -> Sexp:
    """Draw an expression with lists, empty lists, hints and strings of any octets."""
    kind = rng.random()
    if depth and kind < 0.45:
        return tuple(random_expression(rng, depth - 1) for _ in range(rng.randrange(5)))
    if kind < 0.55:
        return Hinted(rng.randbytes(rng.randrange(4)), rng.randbytes(rng.randrange(12)))
    if kind < 0.6:
        return rng.randbytes(rng.choice((99, 100, 101, 999, 1000)))
    return rng.randbytes(rng.randrange(20))


# ---------------------------------------------------------------- tags and requests

LETTERS = (b"", b"a", b"b", b"aa", b"ab", b"ba", b"abb")
NUMBERS = (b"-1", b"0", b"1", b"2", b"3", b"10", b"+2", b"007")
DECIMALS = (b"-0.5", b"0", b"1.5", b"2", b"2.50", b"10")
TIMES = (b"09", b"09:30", b"09:30:15", b"09:30:15.5", b"23:59:59")
DATES = (b"2026", b"2026-06", b"2026-06-01", b"2026-06-01_09:30:15", b"2025-12-31_23:59:59.5")
BINARIES = (b"", b"\x00", b"\x01", b"\x00\x01", b"\x01\x00", b"\xff", b"a")
LIMITS = {
    b"alpha": LETTERS, b"numeric": NUMBERS, b"decimal": DECIMALS, b"time": TIMES, b"date": DATES, b"binary": BINARIES,
}  # fmt: skip
UIDS = (b"1", b"2", b"3")
HINTED = Hinted(b"text", b"a")

STRINGS: tuple[bytes, ...] = tuple(
    dict.fromkeys(
        [bytes(word) for size in range(4) for word in itertools.product(b"ab", repeat=size)]
        + [*NUMBERS, *DECIMALS, *TIMES, *DATES, *BINARIES, b"*", b"a*", b"a\x00", b"a\xff", b"4", b"5", b"1.3", b"11"]
    )
)
_FEW = (b"a", b"ab", b"2", b"09:30")
_CELLS = (b"a", b"ab", b"1", b"10", b"2026-06")


def _requests() -> tuple[Sexp, ...]:
    out: list[Sexp] = [*STRINGS, HINTED]
    out += [(x,) for x in _FEW]
    out += [(x, y) for x in _FEW for y in (*_FEW, HINTED)]
    out += [(b"a", x, y) for x in _FEW for y in _FEW]
    out += [(b"a", (b"a", x)) for x in _FEW] + [((x,), b"a") for x in _FEW] + [(b"a", (b"b", b"a"), b"ab")]
    out += [(b"row",), (b"row", b"1"), (b"row", (b"9", b"a"))]
    out += [(b"row", (b"1", x)) for x in _CELLS] + [(b"row", (b"2", x)) for x in _CELLS]
    out += [(b"row", (b"1", x), (b"2", y)) for x in _CELLS for y in _CELLS]
    out += [(b"row", (b"1", x), (b"2", x), (b"3", b"a")) for x in _CELLS]
    out += [(b"a", b"2", (b"row", (b"1", x))) for x in _CELLS] + [(b"a", (b"row", (b"2", x))) for x in _CELLS]
    return tuple(out)


REQUESTS = _requests()
"""A finite universe of ground requests, with a value on, below, above and beside every limit that is drawn."""


def random_range(rng: random.Random, ordering: bytes | None = None) -> Sexp:
    """Draw a range; it may be empty, open at either end, or at both."""
    ordering = ordering or rng.choice(tuple(LIMITS))
    form: list[Sexp] = [b"*", b"range", ordering]
    if rng.random() < 0.75:
        form += [rng.choice((b"g", b"ge")), rng.choice(LIMITS[ordering])]
    if rng.random() < 0.75:
        form += [rng.choice((b"l", b"le")), rng.choice(LIMITS[ordering])]
    return tuple(form)


def random_pattern(rng: random.Random) -> Sexp:
    """Draw a prefix, a glob, pieces, or an alpha range, over the letters a and b."""
    kind = rng.randrange(4)
    if kind == 0:
        return (b"*", b"prefix", rng.choice(LETTERS))
    if kind == 1:
        return (b"*", b"glob", b"*".join(rng.choice((b"", b"a", b"b", b"ab")) for _ in range(rng.randrange(1, 4))))
    if kind == 2:
        return (b"*", b"pieces", *(rng.choice((b"", b"a", b"b", b"ab", b"*")) for _ in range(rng.randrange(2, 4))))
    return random_range(rng, b"alpha")


def random_strings(rng: random.Random) -> Sexp:
    """Draw a set of strings."""
    kind = rng.randrange(10)
    if kind < 3:
        return rng.choice(STRINGS)
    if kind < 6:
        return random_pattern(rng)
    if kind < 9:
        return random_range(rng)
    return (
        b"*",
        b"and",
        random_pattern(rng),
        random_range(rng),
        *((random_pattern(rng),) if rng.random() < 0.5 else ()),
    )


def random_tag(rng: random.Random, depth: int = 3) -> Sexp:
    """Draw the expression of a tag: every form of RFC 2693 and of Maia."""
    kind = rng.randrange(12)
    if depth == 0 or kind < 4:
        return HINTED if rng.random() < 0.05 else random_strings(rng)
    if kind == 4:
        return (b"*",)
    if kind < 7:
        return (b"*", b"set", *(random_tag(rng, depth - 1) for _ in range(rng.randrange(4))))
    if kind < 10:
        head = rng.choice((b"a", b"a", random_tag(rng, depth - 1)))
        head = b"a" if head == b"*" else head  # a list that starts with a star is a star form
        return (head, *(random_tag(rng, depth - 1) for _ in range(rng.randrange(3))))
    uids = rng.sample(UIDS, rng.randrange(3))
    return (b"*", b"where", *((uid, random_strings(rng) if rng.random() < 0.8 else (b"*",)) for uid in uids))


# ---------------------------------------------------------------- an independent reading of tags

_MICROSECOND = timedelta(microseconds=1)


def _time(text: bytes) -> int | None:
    for form in ("%H", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f"):
        if value := _strptime(text, form):
            return (value - value.replace(hour=0, minute=0, second=0, microsecond=0)) // _MICROSECOND
    return None


def _date(text: bytes) -> datetime | None:
    for form in (
        "%Y",
        "%Y-%m",
        "%Y-%m-%d",
        "%Y-%m-%d_%H",
        "%Y-%m-%d_%H:%M",
        "%Y-%m-%d_%H:%M:%S",
        "%Y-%m-%d_%H:%M:%S.%f",
    ):
        if value := _strptime(text, form):
            return value
    return None


def _strptime(text: bytes, form: str) -> datetime | None:
    # strptime reads `9` for `%H`; every field but a fraction and a year has two digits here.
    if not re.fullmatch(rb"[0-9]{4}([-_:][0-9]{2})*(\.[0-9]+)?|[0-9]{2}(:[0-9]{2})*(\.[0-9]+)?", text):
        return None
    try:
        return datetime.strptime(text.decode(), form).replace(tzinfo=UTC)
    except ValueError:
        return None


def _number(text: bytes, form: str) -> Fraction | None:
    return Fraction(text.decode("latin-1")) if re.fullmatch(form, text.decode("latin-1"), re.ASCII) else None


READ: dict[bytes, Callable[[bytes], object]] = {
    b"alpha": list,
    b"numeric": lambda text: _number(text, r"[+-]?\d+"),
    b"decimal": lambda text: _number(text, r"[+-]?\d+(\.\d+)?"),
    b"binary": lambda text: sum(octet << (8 * place) for place, octet in enumerate(reversed(text))),
    b"time": _time,
    b"date": _date,
}
COMPARE: dict[bytes, Callable[[object, object], bool]] = {
    b"g": lambda x, limit: x > limit,  # type: ignore[operator]
    b"ge": lambda x, limit: x >= limit,  # type: ignore[operator]
    b"l": lambda x, limit: x < limit,  # type: ignore[operator]
    b"le": lambda x, limit: x <= limit,  # type: ignore[operator]
}


def member(tag: Sexp, request: Sexp) -> bool:
    """Read RFC 2693 and Maia's additions straight off the expression: is the ground request in the set?"""
    if isinstance(tag, (bytes, Hinted)):
        return tag == request
    if tag[0] != b"*":
        return (
            isinstance(request, tuple)
            and len(request) >= len(tag)
            and all(member(item, part) for item, part in zip(tag, request, strict=False))
        )
    match tag[1:]:
        case () | (b"where",):
            return True  # a demand on no attribute says no more than `(*)`
        case (b"set", *members):
            return any(member(item, request) for item in members)
        case (b"and", *parts):
            return all(member(item, request) for item in parts)
        case (b"where", *constraints):
            return (
                isinstance(request, tuple)
                and request[0] == b"row"
                and all(
                    any(isinstance(cell, tuple) and cell[0] == uid and member(item, cell[1]) for cell in request[1:])
                    for uid, item in constraints
                )
            )
    return isinstance(request, bytes) and _string_member(tag, request)


def _string_member(tag: tuple[Sexp, ...], text: bytes) -> bool:
    match tag[1:]:
        case (b"prefix", start):
            return text[: len(start)] == start
        case (b"glob", pattern):
            return re.fullmatch(b".*".join(map(re.escape, pattern.split(b"*"))), text, re.DOTALL) is not None
        case (b"pieces", *pieces):
            return re.fullmatch(b".*".join(map(re.escape, pieces)), text, re.DOTALL) is not None
        case (b"range", ordering, *limits):
            value = READ[ordering](text)
            return value is not None and all(
                COMPARE[operator](value, READ[ordering](limit))
                for operator, limit in zip(limits[0::2], limits[1::2], strict=True)
            )
    raise AssertionError(tag)
