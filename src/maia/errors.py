"""Every error Maia raises, as one tree whose branches say who must act.

```
MaiaError
├── MalformedError        the bytes or the text are wrong     -> the sender fixes them
│   ├── EncodingError         not a canonical S-expression, or not the expected shape
│   │   └── DamagedError          octets that are not what was signed for them
│   ├── KeyFormatError        not a usable public or private key
│   ├── TagError              not a tag, or a tag Maia cannot represent
│   ├── FilterSyntaxError     not a filter; carries line and column
│   └── FilterTypeError       a filter that does not fit the attribute types
├── VerificationError     not proven, for whatever reason     -> treat as a denial
│   ├── SignatureError        a signature does not verify
│   ├── ChainError            certificates that do not add up to the right
│   ├── ExpiredError          outside its validity period
│   ├── RevokedError          revoked by a validity statement
│   └── UncheckedError        could not be checked, so not proven (a statement or a limit is missing)
├── DeniedError           proven, and refused                 -> ask for rights
│   └── RowsRefusedError      no row of a publication went through; carries what became of them
├── FlowError             a label rule is broken              -> declassify, or stop
├── SealError             cannot unseal; one message for all causes, so no oracle
├── UnavailableError      a port failed                       -> retry
│   └── NotFoundError         the thing asked for does not exist
└── UsageError            the caller is wrong                 -> fix the call
```

Each error carries a stable ``code`` in UPPER_SNAKE. Messages are lower case, have no full stop, quote input in
backticks, and never hold a key or a plaintext value. Where something can be done about a code, ``hint`` says what, to
whoever writes Python as well as to whoever types commands; a traceback shows it in a line below the message, and
``str()`` stays one line. ``docs/reference/errors.md`` is generated from the code.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "ChainError",
    "DamagedError",
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
    "PlanOverError",
    "RevokedError",
    "RowsRefusedError",
    "SealError",
    "SignatureError",
    "TagError",
    "UnavailableError",
    "UncheckedError",
    "UsageError",
    "VerificationError",
]


class MaiaError(Exception):
    """The root of everything Maia raises on purpose.

    Attributes:
        message: What went wrong, for people.
        code: What went wrong, for machines.
        hint: What to do about it, when something can be done.
        decision: What the audit is told of the decision that it is, where it is one; it does not leave the process.
    """

    default_code: ClassVar[str] = "MAIA"
    decision: str = ""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        """Keep the message for people and the code for machines; the code brings the hint."""
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.hint = _HINTS.get(self.code)
        if self.hint is not None:
            self.add_note(f"hint: {self.hint}")

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


class DamagedError(EncodingError):
    """Octets that are not what was signed for them: nobody knows what they were, so whoever needs them waits."""

    default_code = "BLOCK_DAMAGED"


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
    """A validity statement revokes something that was needed."""

    default_code = "REVOKED"


class UncheckedError(VerificationError):
    """Could not be checked, hence not proven: a statement is missing or a limit is passed."""

    default_code = "UNCHECKED"


class DeniedError(MaiaError):
    """Everything was checked and the answer is no."""

    default_code = "DENIED"


class RowsRefusedError(DeniedError):
    """Rows were refused, so that nothing is published; ``published`` counts them by code and column."""

    default_code = "ROWS_REFUSED"

    def __init__(self, message: str, *, code: str | None = None, published: Any = None) -> None:  # noqa: ANN401 - `Published` stands above
        """Keep what became of the publication."""
        super().__init__(message, code=code)
        self.published = published

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive the way back from a worker process with the counts."""
        return (_rebuild_refused, (self.message, self.code, self.published))


def _rebuild_refused(message: str, code: str, published: object) -> RowsRefusedError:
    return RowsRefusedError(message, code=code, published=published)


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


class PlanOverError(UnavailableError):
    """A worker was given a plan whose time is over; a new one is judged anew."""

    default_code = "PLAN_OVER"


class UsageError(MaiaError, ValueError):
    """The caller passed something that can never work."""

    default_code = "USAGE"


_HINTS = {
    "UNKNOWN_ACTION": "connect and install are for networks; publish, subscribe, manage and extend for event types",
    "ATTRIBUTE_TYPE": (
        "use integer, float, decimal, decimal(P,S), string, boolean, date, timestamp, binary, array<TYPE> or "
        "struct<NAME:TYPE,…>"
    ),
    "ATTRIBUTE_UNCOMPARED": "name it alone to open it whole, and make the demand on another attribute",
    "NO_HOME": "`maia domain init DIR` makes a home; --home DIR, or `maia.open(DIR)`, names one",
    "KEY_EXISTS": "choose another name; a key is never overwritten",
    "KEY_FILE_MODE": "run `chmod 600` on the file, and make sure that it is yours",
    "KEY_PASSPHRASE": "try again; without the passphrase the key cannot be used",
    "PASSPHRASE_MISSING": (
        "answer the prompt, set MAIA_PASSPHRASE, or give --passphrase-file FILE or --passphrase-fd N; "
        "in Spark give the option `passphraseFile`; "
        "in Python give `passphrase=` a function that returns it, such as `getpass.getpass`"
    ),
    "NO_SUCH_KEY": "`maia key show` lists the keys of this home; `maia key import` adds a public key",
    "NO_SUCH_CERTIFICATE": "`maia cert show` lists the certificates of this home",
    "AMBIGUOUS": "give more characters",
    "NO_SUCH_ATTRIBUTE": "`maia type show TYPE` lists the attributes; `uid:N` names one by its uid",
    "ATTRIBUTE_VALUE": "write the value as the attribute's type demands",
    "ENDS_IN_PAST": "choose a later end, or leave it out",
    "ISSUER_LACKS_RIGHT": "ask for the right first, narrow it, or issue it nevertheless with `maia grant --blanket`",
    "SPEAKS_OF_CLOSED": "constraints and conditions name only what their issuer holds; leave that one out",
    "NO_OWNER": "name who owns it with `maia grant --root PRINCIPAL`, or issue it nevertheless with --blanket",
    "DELEGATION_FORBIDDEN": "the certificate above has to be issued with --delegate (`delegate=True` in Python)",
    "THRESHOLD_NOT_MET": "collect certificates of further members of the threshold",
    "NO_EVIDENCE": "ask for a capability, and put its certificate into the folder `certificates` of the home",
    "BROKEN_CHAIN": "a certificate between the two is missing from the folder `certificates` of the home",
    "WRONG_ROOT": "only a chain that starts at the owner counts; ask the owner, or name another root with --root",
    "EXPIRED": "ask its issuer for a fresh certificate",
    "NOT_YET_VALID": "wait, or ask its issuer for an earlier start",
    "REVOKED": "ask its issuer why; a revoked certificate does not come back",
    "NO_STATEMENT": "fetch the statement that the certificate names and add it with `maia statement add`",
    "NAME_UNRESOLVED": "add the name certificate that says whom the name stands for",
    "NOT_PERMITTED": "ask for the missing right",
    "NOT_ADVERTISED": "say first what is published: `maia advertise add --type TYPE --as CLIENT`",
    "EMPTY_AUTHORITY": "ask for the missing right; the links have nothing in common",
    "IRREVOCABLE": (
        "it ends with its validity period, if it has one; a right that is given with a test, such as `crl:SIGNER`, "
        "can be revoked"
    ),
    "STATEMENT_OVERLAP": "start the new list where the last one ends; lists are never superseded early",
    "STATEMENT_ROLLBACK": "use a higher sequence number",
    "CONFIRMATION_MISSING": "give --yes, or --dry-run to see what would happen",
    "LIMIT_EXCEEDED": "present only the certificates that matter",
    "LOG_FILE_MISSING": "bring the file back from a copy of the log; `maia doctor` names all that are missing",
    "LOG_FILE_DAMAGED": "bring the file back from a copy of the log; `maia doctor --digests` names all that differ",
    "ROWS_REFUSED": (
        "the home's folder `refused` says which rows, by code and column; in Python `published.refused` of this error"
    ),
    "ROW_MALFORMED": "mend the rows; the audit counts them and names the columns: `maia audit --kind refuse`",
    "NOT_A_MEMBER": "the domain invites with `maia domain invite`, and who was invited joins with `maia domain join`",
    "SPARK_SETTING": "`maia.prepare(spark)` looks at a session of your own and sets what can be set while it runs",
}
