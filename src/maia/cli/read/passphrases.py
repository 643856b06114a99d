"""Where passphrases come from: an open file descriptor, a file, the environment, or a prompt; never an argument."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import typer

from maia.cli.show.output import current_state
from maia.errors import UsageError
from maia.home import check_passphrase, read_descriptor_line, read_line

_VARIABLE = "MAIA_PASSPHRASE"


def passphrase_source(file: Path | None, *, what: str, twice: bool = False) -> Callable[[], str]:
    """Return a function that asks for a passphrase when it is needed, and only then.

    ``--passphrase-fd`` goes before the file, the file before the environment, and all before the prompt.

    Args:
        file: The value of ``--passphrase-file``.
        what: What the passphrase is for, as the prompt names it.
        twice: Ask a second time, for a new passphrase.
    """

    def ask() -> str:
        descriptor = current_state().passphrase_fd
        if descriptor is not None:
            return read_descriptor_line(descriptor)
        if file is not None:
            return read_line(file)
        if _VARIABLE in os.environ:
            return check_passphrase(os.environ[_VARIABLE])
        try:
            answer = typer.prompt(f"Passphrase for {what}", hide_input=True, confirmation_prompt=twice, err=True)
        except (typer.Abort, EOFError) as error:
            raise UsageError(f"the passphrase for {what} is missing", code="PASSPHRASE_MISSING") from error
        return check_passphrase(str(answer))

    return ask
