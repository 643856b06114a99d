"""Who signs, and the validity of what is signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from maia.cli.read.instants import optional_instant
from maia.cli.read.passphrases import passphrase_source
from maia.errors import UsageError
from maia.home import Folder, key_of, words
from maia.principals import KeySigner, OnlineTest, Period, PublicKey, TestKind


def parse_period(not_before: str | None, until: str | None, *, at: datetime) -> Period:
    """Read the validity options."""
    return Period(optional_instant(not_before, at=at), optional_instant(until, at=at))


def parse_tests(texts: Sequence[str] | None, home: Folder) -> tuple[OnlineTest, ...]:
    """Read ``KIND:SIGNER[@URI]``, once per test.

    Raises:
        UsageError: The kind is unknown, or there is no signer.
    """
    return tuple(_parse_test(text, home) for text in texts or ())


def _parse_test(text: str, home: Folder) -> OnlineTest:
    kind, mark, rest = text.partition(":")
    signer, _, address = rest.partition("@")
    kinds = {known.value: known for known in TestKind}
    if not mark or kind not in kinds or not signer.strip():
        raise UsageError(f"`{text}` is no test; write {'|'.join(kinds)}:SIGNER[@URI]", code="TEST_TEXT")
    key = key_of(words.parse_principal_text(signer, home))
    return OnlineTest(kinds[kind], key, (address,) if address else ())


def open_signer(key: PublicKey, home: Folder, passphrase_file: Path | None) -> KeySigner:
    """Open the private key of an issuer."""

    def source(what: str) -> Callable[[], str]:
        return passphrase_source(passphrase_file, what=what)

    return home.signer(key, source)
