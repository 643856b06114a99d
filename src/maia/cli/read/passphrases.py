"""Where passphrases come from: an open file descriptor, a file, the environment, or a prompt; never an argument.

The variable of the environment is taken out of it before a verb runs, so that no process which the verb starts has it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from getpass import GetPassWarning
from pathlib import Path

import typer

from maia.cli.show.output import current_state
from maia.errors import UsageError
from maia.home import check_passphrase, read_descriptor_line, read_line

PASSPHRASE_VARIABLE = "MAIA_PASSPHRASE"  # noqa: S105 - a name


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
            return read_descriptor_line(state.passphrase_fd)
        if file is not None:
            return read_line(file)
        if state.passphrase is not None:
            return check_passphrase(state.passphrase)
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
        return check_passphrase(str(answer))

    return ask
