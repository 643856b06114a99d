"""Who signs, and the validity of what is signed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from maia.cli.read.instants import optional_instant
from maia.cli.read.passphrases import passphrase_source
from maia.home import Folder
from maia.principals import KeySigner, Period, PublicKey


def parse_period(not_before: str | None, until: str | None, *, at: datetime) -> Period:
    """Read the validity options."""
    return Period(optional_instant(not_before, at=at), optional_instant(until, at=at))


def open_signer(key: PublicKey, home: Folder, passphrase_file: Path | None) -> KeySigner:
    """Open the private key of an issuer."""

    def source(what: str) -> Callable[[], str]:
        return passphrase_source(passphrase_file, what=what)

    return home.signer(key, source)
