"""What the process says when it ends: the exit code of an error.

Codes: 0 done, 1 failed, 2 usage, 3 access denied, 4 verification failed, 5 not found, 6 differs, 130
interrupted. The same number stands as ``"code"`` in the output of ``--json``.
"""

from __future__ import annotations

from enum import IntEnum

from maia.errors import DeniedError, MaiaError, NotFoundError, UsageError, VerificationError


class ExitCode(IntEnum):
    """The documented exit codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    NOT_VERIFIED = 4
    NOT_FOUND = 5
    DIFFERS = 6
    INTERRUPTED = 130


_BY_FAMILY: tuple[tuple[type[MaiaError], ExitCode], ...] = (
    (UsageError, ExitCode.USAGE),
    (DeniedError, ExitCode.DENIED),
    (VerificationError, ExitCode.NOT_VERIFIED),
    (NotFoundError, ExitCode.NOT_FOUND),
)


def exit_code(error: MaiaError) -> ExitCode:
    """Return the exit code of an error: by its family, and 1 for what has no code of its own."""
    if error.code == "INTERRUPTED":
        return ExitCode.INTERRUPTED
    for family, code in _BY_FAMILY:
        if isinstance(error, family):
            return code
    return ExitCode.FAILED
