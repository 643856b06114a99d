"""The service of a domain in this process, and a member's proof to it, for the commands that ask it something."""

from __future__ import annotations

import secrets
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from maia.cli.read.signers import open_signer
from maia.errors import NotFoundError
from maia.home import Folder

if TYPE_CHECKING:
    from maia.access_control import AccessControl
    from maia.home import Home
    from maia.principals import Authenticated, KeySigner


def open_domain(home: Path, passphrase_file: Path | None) -> tuple[Home, AccessControl]:
    """Open a home and the service of its domain in this process.

    Raises:
        NotFoundError: There is no home, or its domain has no key here.
    """
    from maia.domain import open_access_control
    from maia.home import Home

    opened = Home.open(home)
    return opened, open_access_control(opened, signer=domain_signer(opened, passphrase_file))


def domain_signer(home: Home, passphrase_file: Path | None) -> KeySigner:
    """Open the key that speaks for a home's domain.

    Raises:
        NotFoundError: It is not here: ``NO_DOMAIN_KEY``.
    """
    folder, name = Folder(home.path), home.config.domain
    try:
        return open_signer(folder.key(name), folder, passphrase_file)
    except NotFoundError as error:
        raise NotFoundError(
            f"the key `{name}`, which speaks for the domain, is not in this home; `maia key new {name}` makes it",
            code="NO_DOMAIN_KEY",
        ) from error


def prove_member(
    service: AccessControl, home: Path, name: str, passphrase_file: Path | None, *, at: datetime
) -> Authenticated:
    """Prove the key of a name in this home to the service."""
    from maia.domain import prove_key

    folder = Folder(home)
    signer = open_signer(folder.key(name), folder, passphrase_file)
    return prove_key(service, signer, nonce=secrets.token_bytes(32), at=at)
