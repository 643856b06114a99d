"""Every error Maia raises, as one tree whose branches say who must act.

```
MaiaError
├── MalformedError        the bytes or the text are wrong     -> the sender fixes them
│   ├── EncodingError         not a canonical S-expression, or not the expected shape
│   ├── KeyFormatError        not a usable public or private key
│   ├── TagError              not a tag, or a tag Maia cannot represent
│   ├── FilterSyntaxError     not a filter; carries line and column
│   └── FilterTypeError       a filter that does not fit the attribute types
├── VerificationError     not proven, for whatever reason     -> treat as a denial
│   ├── SignatureError        a signature does not verify
│   ├── ChainError            certificates that do not add up to the right
│   ├── ExpiredError          outside its validity period
│   ├── RevokedError          withdrawn by a validity statement
│   └── UncheckedError        could not be checked, so not proven (a statement or a limit is missing)
├── DeniedError           proven, and refused                 -> ask for rights
├── FlowError             a label rule is broken              -> declassify, or stop
├── SealError             cannot unseal; one message for all causes, so no oracle
├── UnavailableError      a port failed                       -> retry
│   └── NotFoundError         the thing asked for does not exist
└── UsageError            the caller is wrong                 -> fix the call
```

Each error carries a stable ``code`` in UPPER_SNAKE. Messages are lower case, have no full stop, quote input in
backticks, and never hold a key or a plaintext value. ``docs/reference/errors.md`` is generated from `CODES`.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "ChainError",
    "DeniedError",
    "EncodingError",
    "ExpiredError",
    "FilterSyntaxError",
    "FilterTypeError",
    "FlowError",
    "KeyFormatError",
    "MaiaError",
    "MalformedError",
    "NotFoundError",
    "RevokedError",
    "SealError",
    "SignatureError",
    "TagError",
    "UnavailableError",
    "UncheckedError",
    "UsageError",
    "VerificationError",
]


class MaiaError(Exception):
    """The root of everything Maia raises on purpose."""

    default_code: ClassVar[str] = "MAIA"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        """Keep the message for people and the code for machines."""
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code

    def __str__(self) -> str:
        """Show the code first, the way Spark shows its error conditions."""
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive the way back from a worker process with the code intact."""
        return (_rebuild, (type(self), self.message, self.code))


def _rebuild(kind: type[MaiaError], message: str, code: str) -> MaiaError:
    return kind(message, code=code)


class MalformedError(MaiaError):
    """The bytes or the text are wrong; the sender must fix them."""

    default_code = "MALFORMED"


class EncodingError(MalformedError):
    """Not a canonical S-expression, or not the shape that was expected."""

    default_code = "ENCODING"


class KeyFormatError(MalformedError):
    """Not a public or private key that Maia accepts."""

    default_code = "KEY_FORMAT"


class TagError(MalformedError):
    """Not a tag, or a tag beyond what Maia represents."""

    default_code = "TAG"


class FilterSyntaxError(MalformedError):
    """Text that is not a filter; ``line`` and ``column`` count from 1."""

    default_code = "FILTER_SYNTAX"

    def __init__(self, message: str, *, code: str | None = None, line: int = 1, column: int = 1) -> None:
        """Remember where in the text the filter stops making sense."""
        super().__init__(message, code=code)
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive the way back from a worker process with the position intact."""
        return (_rebuild_syntax, (self.message, self.code, self.line, self.column))


def _rebuild_syntax(message: str, code: str, line: int, column: int) -> FilterSyntaxError:
    return FilterSyntaxError(message, code=code, line=line, column=column)


class FilterTypeError(MalformedError):
    """A filter whose literals or operators do not fit the attribute types."""

    default_code = "FILTER_TYPE"


class VerificationError(MaiaError):
    """Not proven. Catching this one and denying is always right."""

    default_code = "NOT_PROVEN"


class SignatureError(VerificationError):
    """A signature does not verify under the key that it names."""

    default_code = "BAD_SIGNATURE"


class ChainError(VerificationError):
    """Certificates that do not add up to the right asked for."""

    default_code = "BROKEN_CHAIN"


class ExpiredError(VerificationError):
    """Something outside its validity period was needed."""

    default_code = "EXPIRED"


class RevokedError(VerificationError):
    """A validity statement withdraws something that was needed."""

    default_code = "REVOKED"


class UncheckedError(VerificationError):
    """Could not be checked, hence not proven: a statement is missing or a limit is passed."""

    default_code = "UNCHECKED"


class DeniedError(MaiaError):
    """Everything was checked and the answer is no."""

    default_code = "DENIED"


class FlowError(MaiaError):
    """Data would flow where its label forbids."""

    default_code = "FLOW"


class SealError(MaiaError):
    """Sealed data could not be opened; deliberately without a reason."""

    default_code = "SEAL"


class UnavailableError(MaiaError):
    """Something outside did not answer; trying again may help."""

    default_code = "UNAVAILABLE"


class NotFoundError(UnavailableError):
    """What was asked for is not there."""

    default_code = "NOT_FOUND"


class UsageError(MaiaError, ValueError):
    """The caller passed something that can never work."""

    default_code = "USAGE"
