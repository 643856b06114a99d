"""The error of a policy text, which knows its line and column."""

from __future__ import annotations

from maia.errors import MalformedError


class PolicySyntaxError(MalformedError):
    """Text that is no policy, or a policy that no engine may run; ``line`` and ``column`` count from 1."""

    default_code = "POLICY_SYNTAX"

    def __init__(self, message: str, *, code: str | None = None, line: int = 1, column: int = 1) -> None:
        """Remember where in the text the policy stops making sense."""
        super().__init__(message, code=code)
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive the way back from a worker process with the position intact."""
        return (_rebuild, (self.message, self.code, self.line, self.column))


def _rebuild(message: str, code: str, line: int, column: int) -> PolicySyntaxError:
    return PolicySyntaxError(message, code=code, line=line, column=column)
