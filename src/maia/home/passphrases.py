"""Where a passphrase comes from: an open descriptor, a file, or the person at the terminal; never an argument.

Rules kept here:

- nobody is asked before a passphrase is needed;
- a variable of the environment may name a descriptor (``MAIA_PASSPHRASE_FD``): its number is no secret;
- where nobody can be asked the answer is an error, not a wait.
"""

from __future__ import annotations

import getpass
import logging
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from maia.errors import UsageError

DESCRIPTOR_VARIABLE = "MAIA_PASSPHRASE_FD"
_LONGEST = 4096
_log = logging.getLogger(__name__)


def passphrase_asker(what: str, *, file: Path | None = None) -> Callable[[], str]:
    """Return a function that asks for a passphrase when it is needed: the file, the descriptor, or the terminal.

    Args:
        what: What the passphrase is for, as the prompt names it.
        file: A file whose first line it is.
    """

    def ask() -> str:
        if file is not None:
            return read_line(file)
        named = os.environ.get(DESCRIPTOR_VARIABLE, "")
        if named:
            if not named.isascii() or not named.isdigit():
                raise _missing(f"`{DESCRIPTOR_VARIABLE}` is the number of an open descriptor, not `{named}`")
            return read_descriptor_line(int(named))
        if sys.stdin is None or not sys.stdin.isatty():
            raise _missing(f"the passphrase for {what} is missing, and there is no terminal to ask at")
        try:
            return check_passphrase(getpass.getpass(f"Passphrase for {what}: "))
        except EOFError as error:
            raise _missing(f"the passphrase for {what} is missing") from error

    return ask


def read_descriptor_line(descriptor: int) -> str:
    """Read one line, octet by octet, so that what follows it is left for the next passphrase.

    Raises:
        UsageError: Nothing can be read: ``PASSPHRASE_MISSING``.
    """
    found = bytearray()
    try:
        while len(found) <= _LONGEST and (octet := os.read(descriptor, 1)) not in (b"", b"\n"):
            found += octet
    except OSError as error:
        raise _missing(f"nothing can be read from descriptor {descriptor}") from error
    return check_passphrase(found.decode("utf-8", "surrogateescape").rstrip("\r"))


def read_line(file: Path) -> str:
    """Read the first line of a file, and warn when it is not closed to others.

    Raises:
        UsageError: It cannot be read: ``PASSPHRASE_MISSING``.
    """
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            status = os.fstat(stream.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                mode = stat.filemode(status.st_mode)
                _log.warning("others may touch the passphrase file `%s`: %s; run `chmod 600` on it", file, mode)
            return check_passphrase(stream.readline(_LONGEST + 1).rstrip("\r\n"))
    except OSError as error:
        raise _missing(
            f"the passphrase file `{file}` (`--passphrase-file`) cannot be read: {error.strerror}"
        ) from error


def check_passphrase(text: str) -> str:
    """Give a passphrase back, unless it is empty or endless.

    Raises:
        UsageError: It is: ``PASSPHRASE_MISSING``.
    """
    if not text:
        raise _missing("an empty passphrase protects nothing; --no-passphrase says so openly")
    if len(text) > _LONGEST:
        raise _missing(f"a passphrase has at most {_LONGEST} characters")
    return text


def _missing(message: str) -> UsageError:
    return UsageError(message, code="PASSPHRASE_MISSING")
