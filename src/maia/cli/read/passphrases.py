"""Where passphrases come from: an open file descriptor, a file, the environment, or a prompt; never an argument.

The variable of the environment is taken out of it before a verb runs, so that no process which the verb starts has it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from getpass import GetPassWarning
from pathlib import Path

import typer

from maia.cli.show.output import current_state
from maia.errors import UsageError

PASSPHRASE_VARIABLE = "MAIA_PASSPHRASE"  # noqa: S105 - a name
_LONGEST = 4096


def passphrase_source(file: Path | None, *, what: str, twice: bool = False) -> Callable[[], str]:
    """Return a function that asks for a passphrase when it is needed, and only then.

    ``--passphrase-fd`` goes before the file, the file before the environment, and all before the prompt.

    Args:
        file: The value of ``--passphrase-file``.
        what: What the passphrase is for, as the prompt names it.
        twice: Ask a second time, for a new passphrase.
    """

    def ask() -> str:
        state = current_state()
        if state.passphrase_fd is not None:
            return _from_descriptor(state.passphrase_fd)
        if file is not None:
            return _from_file(file)
        if state.passphrase is not None:
            return _checked(state.passphrase)
        try:
            # Where there is no terminal, a prompt would show what is typed; it is not asked there.
            with warnings.catch_warnings():
                warnings.simplefilter("error", GetPassWarning)
                answer = typer.prompt(f"Passphrase for {what}", hide_input=True, confirmation_prompt=twice, err=True)
        except GetPassWarning as error:
            print(file=sys.stderr)  # the prompt stands there already
            message = f"there is no terminal to ask for the passphrase for {what}"
            raise UsageError(message, code="PASSPHRASE_MISSING") from error
        except (typer.Abort, EOFError) as error:
            raise UsageError(f"the passphrase for {what} is missing", code="PASSPHRASE_MISSING") from error
        return _checked(str(answer))

    return ask


def _from_descriptor(descriptor: int) -> str:
    """Read one line, octet by octet, so that what follows it is left for the next passphrase."""
    found = bytearray()
    try:
        while len(found) <= _LONGEST and (octet := os.read(descriptor, 1)) not in (b"", b"\n"):
            found += octet
    except OSError as error:
        raise UsageError(f"nothing can be read from descriptor {descriptor}", code="PASSPHRASE_MISSING") from error
    return _checked(found.decode("utf-8", "surrogateescape").rstrip("\r"))


def _from_file(file: Path) -> str:
    with file.open(encoding="utf-8") as stream:
        return _checked(stream.readline(_LONGEST + 1).rstrip("\r\n"))


def _checked(text: str) -> str:
    if not text:
        raise UsageError(
            "an empty passphrase protects nothing; --no-passphrase says so openly", code="PASSPHRASE_MISSING"
        )
    if len(text) > _LONGEST:
        raise UsageError(f"a passphrase has at most {_LONGEST} characters", code="PASSPHRASE_MISSING")
    return text
