"""The error tree: stable codes, families by who must act, and errors that survive a process border."""

from __future__ import annotations

import inspect
import pickle
import re
import traceback
from pathlib import Path

import pytest

from maia import errors

KINDS = {name: getattr(errors, name) for name in errors.__all__}
FAMILIES = {
    errors.MalformedError,
    errors.VerificationError,
    errors.DeniedError,
    errors.FlowError,
    errors.SealError,
    errors.UnavailableError,
    errors.UsageError,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_error_carries_its_own_default_code(kind: type[errors.MaiaError]) -> None:
    """Without a code of its own an error has its class's code, in UPPER_SNAKE, shown before the message."""
    error = kind("nothing to see in `x`")
    assert error.code == kind.default_code
    assert re.fullmatch(r"[A-Z][A-Z0-9_]*", error.code)
    assert str(error) == f"[{kind.default_code}] nothing to see in `x`"
    assert "default_code" in vars(kind)


def test_default_codes_are_distinct() -> None:
    """A code names one class."""
    codes = [kind.default_code for kind in KINDS.values()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_errors_survive_pickling(kind: type[errors.MaiaError]) -> None:
    """A worker's error reaches the driver with class, message and code."""
    copy = pickle.loads(pickle.dumps(kind("no `x` here", code="VERY_SPECIAL")))  # noqa: S301 - our own bytes
    assert type(copy) is kind
    assert (copy.message, copy.code) == ("no `x` here", "VERY_SPECIAL")


def test_a_hint_comes_with_the_code_and_leaves_the_message_alone() -> None:
    """`hint` says what to do, a traceback shows it below the message, and `str` stays one line; pickling keeps it."""
    error = errors.UsageError("`x` cannot be revoked", code="IRREVOCABLE")
    assert error.hint is not None
    assert "crl:SIGNER" in error.hint
    assert str(error) == "[IRREVOCABLE] `x` cannot be revoked"
    shown = "".join(traceback.format_exception_only(error)).splitlines()
    assert shown[-1] == f"hint: {error.hint}"
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (copy.hint, copy.__notes__) == (error.hint, error.__notes__)
    assert errors.UsageError("nothing to say", code="VERY_SPECIAL").hint is None


def test_every_hint_belongs_to_a_code_that_somebody_raises() -> None:
    """A hint whose code is gone would never be seen."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text("utf-8")
    assert [code for code in errors._HINTS if f"`{code}`" not in page] in ([], ["SPEAKS_OF_CLOSED"])


def test_a_syntax_error_keeps_its_position_over_pickling() -> None:
    """Line and column survive the way back from a worker."""
    error = errors.FilterSyntaxError("unexpected `)`", line=3, column=14)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (copy.line, copy.column, copy.code) == (3, 14, "FILTER_SYNTAX")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_error_belongs_to_exactly_one_family(kind: type[errors.MaiaError]) -> None:
    """Who must act is never ambiguous; only the root has no family."""
    families = [family for family in FAMILIES if issubclass(kind, family)]
    assert len(families) == (0 if kind is errors.MaiaError else 1)


def test_could_not_check_is_caught_as_not_verified() -> None:
    """Catching `VerificationError` and denying fails closed for what could not be checked, too."""
    with pytest.raises(errors.VerificationError):
        raise errors.UncheckedError("no list covers this instant", code="STATEMENT_MISSING")


def test_a_usage_error_is_a_value_error() -> None:
    """Python callers may catch `ValueError` for a wrong call."""
    assert issubclass(errors.UsageError, ValueError)


def test_all_lists_exactly_the_errors_of_the_module() -> None:
    """No error class hides from `__all__`."""
    classes = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert classes == set(errors.__all__)
