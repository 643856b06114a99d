"""Who acts and on which type, for the verbs that move events: named, proven, and refused with a way to learn more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import maia
from maia.authority import Action
from maia.cli.read.passphrases import passphrase_source
from maia.cli.show.output import note
from maia.domain import Client, Domain, find_type, publish_step, show_type, who_lacks
from maia.errors import DeniedError, VerificationError


def open_client(home: Path, name: str, passphrase_file: Path | None) -> tuple[Domain, Client]:
    """Open a home and prove the key of one of its clients.

    Raises:
        NotFoundError: There is no home, or it knows no such key: ``NO_SUCH_KEY``.
        MaiaError: The private key is not here, or cannot be opened.
    """
    domain = maia.open(home)
    return domain, domain.client(name, passphrase=passphrase_source(passphrase_file, what=f"`{name}`"))


def name_type(domain: Domain, text: str, version: str | None) -> str:
    """Find a type by what people write, and write it in full: ``owner/name@version``.

    Raises:
        NotFoundError: This home knows no such type.
        UsageError: Several fit.
    """
    return show_type(domain.home, find_type(domain.home, text, version))


@contextmanager
def denial(domain: Domain, *, client: str, action: Action, type_text: str) -> Iterator[None]:
    """Turn a right that is not proven into a denial (exit code 3), with known keys named and a way to learn more."""
    try:
        yield
    except (VerificationError, DeniedError) as error:
        if error.code != "ROWS_REFUSED":
            who = who_lacks(domain, type_text, client=client, action=action)
            note(f"`maia explain --as {who} --type {type_text} --action {action.value}` shows what there is")
            if action is Action.PUBLISH and who == domain.config.broker:
                step = publish_step(domain.home, domain.home.folder, type_text.rpartition("@")[0], code=error.code)
                note(f"`{step.command}` gives the broker its right{f', in {step.where}' if step.where else ''}")
        raise DeniedError(domain.home.folder.decorate(error.message), code=error.code) from error
