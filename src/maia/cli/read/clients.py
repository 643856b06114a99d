"""Who acts and on which type, for the verbs that move events: named, proven, and refused with a way to learn more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import maia
from maia.authority import Action
from maia.cli.read.passphrases import passphrase_source
from maia.cli.show.output import note
from maia.domain import Client, Domain, TypeOrTopic, publish_step, show_type, who_lacks
from maia.errors import DeniedError, VerificationError


def open_client(home: Path, name: str, passphrase_file: Path | None) -> tuple[Domain, Client]:
    """Open a home and prove the key of one of its clients.

    Raises:
        NotFoundError: There is no home, or it knows no such key: ``NO_SUCH_KEY``.
        MaiaError: The private key is not here, or cannot be opened.
    """
    domain = maia.open(home)
    return domain, domain.client(name, passphrase=passphrase_source(passphrase_file, what=f"`{name}`"))


def named_type(domain: Domain, asked: TypeOrTopic) -> str:
    """Find what was asked for, and write the type, or the first of the topics, in full: ``owner/name@version``.

    Raises:
        NotFoundError: This home knows no such type or topic.
        UsageError: Several fit.
    """
    return show_type(domain.home, asked.names(domain)[0])


_CLIENTS_OWN = ("FILTER_NOT_AUTHORISED", "NOT_ADVERTISED", "NOT_LOCAL", "DOMAIN_KIND")
"""Denials that no right of a broker would end."""
_OWNERS = ("NOT_PERMITTED", "EMPTY_AUTHORITY")
"""Denials that the owner of the type can end."""
_NO_RIGHT = ("ROWS_REFUSED", "NO_RELEASE_RULE", "DIRECT_SHARED", "RELEASE_FILE")
"""Denials that no right would end."""


@contextmanager
def denial(domain: Domain, *, client: str, action: Action, type_text: str) -> Iterator[None]:
    """Turn a right that is not proven into a denial (exit code 3), with known keys named and a way to learn more."""
    try:
        yield
    except (VerificationError, DeniedError) as error:
        if error.code not in _NO_RIGHT:
            bounded = error.code == "FILTER_OUT_OF_BOUNDS"
            own = bounded or error.code in _CLIENTS_OWN
            who = client if own else who_lacks(domain, type_text, client=client, action=action)
            verb = "policy bounds" if bounded else "explain"
            note(f"`maia {verb} --as {who} --type {type_text} --action {action.value}` shows what there is")
            if action is Action.PUBLISH and who == domain.config.broker:
                step = publish_step(domain.home, domain.home.folder, type_text.rpartition("@")[0], code=error.code)
                note(f"`{step.command}` gives the broker its right{f', in {step.where}' if step.where else ''}")
        denied = DeniedError(domain.home.folder.decorate(error.message), code=error.code)
        if error.code in _OWNERS:
            denied.hint = f"ask {type_text.rpartition('/')[0]}, who owns the type, for the missing right"
        raise denied from error
