"""What `grant` and `name add` share: validity options, the signature, and where the certificate goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from maia.cli.read.files import write_target
from maia.cli.read.instants import optional_instant
from maia.cli.read.passphrases import passphrase_source
from maia.cli.read.principals import parse_principal_text
from maia.cli.show.certificates import certificate_to_json
from maia.cli.show.output import note, write_json, write_line
from maia.errors import UsageError
from maia.home import Folder, key_of
from maia.principals import Body, KeySigner, OnlineTest, Period, PublicKey, TestKind, issue


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
    key = key_of(parse_principal_text(signer, home))
    return OnlineTest(kinds[kind], key, (address,) if address else ())


def issuer_key(text: str, home: Folder) -> PublicKey:
    """Find the key that is to sign."""
    return home.key(text)


def open_signer(key: PublicKey, home: Folder, passphrase_file: Path | None) -> KeySigner:
    """Open the private key of an issuer."""

    def source(what: str) -> Callable[[], str]:
        return passphrase_source(passphrase_file, what=what)

    return home.signer(key, source)


def issue_and_keep(
    body: Body, signer: KeySigner, home: Folder, *, out: Path | None, json: bool, more: dict[str, object] | None = None
) -> None:
    """Sign a certificate, keep it in the home, and write it out when asked."""
    certificate = issue(body, signer)
    path = home.certificates.add(certificate)
    if out is not None:
        write_target(out, certificate.raw)
    if json:
        write_json({**certificate_to_json(certificate, home), "file": str(path), **(more or {})})
    elif str(out) != "-":
        write_line(str(path))
    note(f"issued certificate {certificate.certificate_id.hex()[:16]}")
