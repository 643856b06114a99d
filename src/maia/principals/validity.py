"""When a certificate counts: its period, and the on-line tests it demands.

A period is closed at both ends; an absent end is open. A test names the key whose statements it trusts and where they
may be fetched; all tests of a certificate must pass, and what cannot be checked does not pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from maia.encoding import Sexp
from maia.errors import EncodingError, UsageError
from maia.principals.keys import PublicKey
from maia.principals.principal import KeyHash, decode_text, encode_text, parse_principal
from maia.principals.times import check_aware, encode_instant, parse_instant

MAX_TESTS = 8
MAX_URIS = 8


class TestKind(Enum):
    """The kinds of on-line test (thesis, section 6.2)."""

    __test__ = False  # the name is the domain's word, not a test case

    CRL = "crl"
    REVALIDATION = "revalidation"
    ONE_TIME = "one-time"


@dataclass(frozen=True, slots=True)
class OnlineTest:
    """A demand for a validity statement by a named key."""

    kind: TestKind
    signer: PublicKey | KeyHash
    uris: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Bound the places where a statement may be fetched."""
        if len(self.uris) > MAX_URIS:
            raise EncodingError(f"an on-line test has at most {MAX_URIS} addresses", code="TOO_MANY_URIS")

    def to_sexp(self) -> Sexp:
        """Write ``(online <kind> <signer> <uri> …)``."""
        uris = (encode_text(uri, "an address") for uri in self.uris)
        return (b"online", self.kind.value.encode(), self.signer.to_sexp(), *uris)


@dataclass(frozen=True, slots=True)
class Period:
    """A closed interval of time; ``None`` leaves an end open."""

    not_before: datetime | None = None
    not_after: datetime | None = None

    def __post_init__(self) -> None:
        """Refuse naive instants and a period that ends before it starts."""
        for instant in (self.not_before, self.not_after):
            if instant is not None:
                check_aware(instant)
        if self.not_before is not None and self.not_after is not None and self.not_before > self.not_after:
            raise UsageError("a period ends before it starts", code="PERIOD_EMPTY")

    def contains(self, at: datetime) -> bool:
        """Tell whether ``at`` lies in the period, ends included."""
        if self.not_before is not None and at < self.not_before:
            return False
        return self.not_after is None or at <= self.not_after

    def intersect(self, other: Period) -> Period | None:
        """Return the common part, or ``None`` when there is none.

        >>> from datetime import UTC
        >>> day = lambda n: datetime(2026, 6, n, tzinfo=UTC)
        >>> Period(day(1), day(9)).intersect(Period(day(5), None)) == Period(day(5), day(9))
        True
        """
        if self == other:
            return self
        start = _pick(max, self.not_before, other.not_before)
        end = _pick(min, self.not_after, other.not_after)
        if start is not None and end is not None and start > end:
            return None
        return Period(start, end)


ALWAYS = Period()


def _pick(choose: object, a: datetime | None, b: datetime | None) -> datetime | None:
    if a is None or b is None:
        return b if a is None else a
    return choose(a, b)  # type: ignore[operator, no-any-return]


def validity_to_sexp(period: Period, tests: tuple[OnlineTest, ...]) -> tuple[Sexp, ...]:
    """Write ``(valid …)``, or nothing when there is nothing to say."""
    fields: list[Sexp] = []
    if period.not_before is not None:
        fields.append((b"not-before", encode_instant(period.not_before)))
    if period.not_after is not None:
        fields.append((b"not-after", encode_instant(period.not_after)))
    fields.extend(test.to_sexp() for test in tests)
    return ((b"valid", *fields),) if fields else ()


def parse_validity(fields: tuple[Sexp, ...]) -> tuple[Period, tuple[OnlineTest, ...]]:
    """Read the inside of ``(valid …)``; the order of its fields is fixed.

    Raises:
        EncodingError: A field is unknown, repeated or out of order, or the period is empty.
    """
    rest = list(fields)
    not_before = _take_instant(rest, b"not-before")
    not_after = _take_instant(rest, b"not-after")
    if len(rest) > MAX_TESTS:
        raise EncodingError(f"a certificate has at most {MAX_TESTS} on-line tests", code="TOO_MANY_TESTS")
    tests = tuple(_parse_test(field) for field in rest)
    if not_before is not None and not_after is not None and not_before > not_after:
        raise EncodingError("a period ends before it starts", code="PERIOD_EMPTY")
    if not_before is None and not_after is None and not tests:
        raise EncodingError("an empty `valid` field", code="UNKNOWN_FIELD")
    return Period(not_before, not_after), tests


def _take_instant(rest: list[Sexp], name: bytes) -> datetime | None:
    match rest[:1]:
        case [(head, value)] if head == name:
            rest.pop(0)
            return parse_instant(value)
    return None


def _parse_test(field: Sexp) -> OnlineTest:
    match field:
        case (b"online", bytes() as kind, signer, *uris):
            try:
                known = TestKind(kind.decode("ascii", "replace"))
            except ValueError as error:
                raise EncodingError("an on-line test of an unknown kind", code="UNKNOWN_FIELD") from error
            key = parse_principal(signer)
            if not isinstance(key, (PublicKey, KeyHash)):
                raise EncodingError("an on-line test is signed by a key", code="PRINCIPAL_SHAPE")
            return OnlineTest(known, key, tuple(decode_text(uri, "an address") for uri in uris))
        case _:
            raise EncodingError("an unknown field in `valid`", code="UNKNOWN_FIELD")
