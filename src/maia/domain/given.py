"""What a Python program gives where a person would write: one text or several, and who asks for a passphrase."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maia.errors import UsageError

AskPassphrase = Callable[[], str]


def asks(passphrase: AskPassphrase | None) -> AskPassphrase | None:
    """Give back the function that asks for a passphrase, if there is one.

    Raises:
        UsageError: It is the passphrase itself: ``PASSPHRASE_TEXT``.
    """
    if passphrase is not None and not callable(passphrase):
        raise UsageError(
            "`passphrase` is a function that returns the passphrase, such as `getpass.getpass`, not the passphrase "
            "itself, which would stand in the program",
            code="PASSPHRASE_TEXT",
        )
    return passphrase


def several(texts: str | Sequence[str] | None) -> Sequence[str] | None:
    """Take one text for a list of one."""
    return (texts,) if isinstance(texts, str) else texts
