"""The error of a condition, which knows its line and column."""

from __future__ import annotations

from maia.policy.problems import PolicySyntaxError


class ConditionSyntaxError(PolicySyntaxError):
    """Text that is no condition, or one that no broker may evaluate; ``line`` and ``column`` count from 1."""

    default_code = "CONDITION_SYNTAX"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive the way back from a worker process with the position intact."""
        return (_rebuild, (self.message, self.code, self.line, self.column))


def _rebuild(message: str, code: str, line: int, column: int) -> ConditionSyntaxError:
    return ConditionSyntaxError(message, code=code, line=line, column=column)
