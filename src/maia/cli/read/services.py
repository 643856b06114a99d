"""The service of a domain in this process, and a member's proof to it, for the commands that ask it something."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace
from maia.cli.read.signers import open_signer
from maia.cli.show.output import current_state, note, printable
from maia.errors import NotFoundError

if TYPE_CHECKING:
    from maia.access_control import AccessControl
    from maia.home import Home
    from maia.principals import Authenticated, KeySigner


@dataclass(frozen=True, kw_only=True)
class Served(CommandPlace):
    """As `CommandPlace`, for a command that asks the service of the home's domain."""

    passphrase_file: options.PassphraseFile = None

    @cached_property
    def opened(self) -> Home:
        """The home."""
        from maia.home import Home

        return Home.open(self.home)

    @cached_property
    def signer(self) -> KeySigner:
        """The key that speaks for the domain."""
        return domain_signer(self.opened, self.passphrase_file)

    @cached_property
    def service(self) -> AccessControl:
        """The service, in this process, until the command ends."""
        from maia.domain import open_register

        return current_state().closing.enter_context(open_register(self.opened, self.signer))

    def prove(self, name: str) -> Authenticated:
        """Prove the key of a name in this home to the service."""
        from maia.domain import prove_key

        signer = open_signer(self.folder.key(name), self.folder, self.passphrase_file)
        return prove_key(self.service, signer, nonce=secrets.token_bytes(32), at=self.instant)


def open_domain(home: Path, passphrase_file: Path | None) -> tuple[Home, AccessControl]:
    """Open a home and the service of its domain in this process.

    Raises:
        NotFoundError: There is no home, or its domain has no key here.
    """
    served = Served(home=home, passphrase_file=passphrase_file)
    return served.opened, served.service


def domain_signer(home: Home, passphrase_file: Path | None) -> KeySigner:
    """Open the key that speaks for a home's domain.

    Raises:
        NotFoundError: It is not here: ``NO_DOMAIN_KEY``.
    """
    folder, name = home.folder, home.config.domain
    try:
        return open_signer(folder.key(name), folder, passphrase_file)
    except NotFoundError as error:
        raise NotFoundError(
            f"the key `{name}`, which speaks for the domain, is not in this home; `maia key new {name}` makes it",
            code="NO_DOMAIN_KEY",
        ) from error


def note_unmet(served: Served, role: str, member: str) -> None:
    """Say which premise each rule for a role lacks, with the file and the line of the rule."""
    from maia.domain import unmet_lines

    service, at = served.service, served.instant
    lines = unmet_lines(service.unmet(role, principal=member, at=at), served.home, in_force=service.policy(at=at))
    for line in lines or [f"no rule of the policy in force activates `{role}`"]:
        note(printable(line))
