"""What `prove`, `verify` and `explain` ask: a right, whose it is said to be, and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from maia.authority import Challenge, parse_statement, verify_statement
from maia.cli.read.bundles import CommandPlace, RightOptions
from maia.cli.read.files import read_source
from maia.domain import RightQuestion
from maia.errors import NotFoundError, UsageError
from maia.home import Folder, key_of, words
from maia.principals import principal_id

_NONCE = 16


def read_question(
    place: CommandPlace,
    asked: RightOptions,
    principal: str,
    *,
    certificates: Path | None = None,
    statements: Sequence[Path] | None = None,
    nonce: str | None = None,
    verifier: str | None = None,
) -> RightQuestion:
    """Read a question from the options of a command."""
    folder = place.folder
    book = folder.book()
    for path in statements or ():
        book.accept(verify_statement(parse_statement(read_source(str(path)))))
    return RightQuestion(
        home=folder, request=asked.right(folder).request(),
        principal=key_of(words.parse_principal_text(principal, folder)), pool=folder.pool(certificates), book=book,
        roots=asked.roots(folder), at=place.instant, challenge=_challenge(nonce, verifier, at=place.instant),
    )  # fmt: skip


def check_version(text: str | None, folder: Folder) -> None:
    """Refuse a version that a type does not have, when the type is kept here.

    Raises:
        NotFoundError: ``TYPE_NOT_FOUND``; the message lists the versions that there are.
    """
    if text is None or text.strip() == "*":
        return
    owner, name, exact = words.split_type(text, folder)
    known = [item.name.version.text for item in folder.versions(principal_id(owner), name)] if "*" not in name else []
    if known and exact not in (None, "*", *known):
        listed = ", ".join(f"`{name}@{version}`" for version in known)
        raise NotFoundError(f"there is no type `{text}`; there is {listed}", code="TYPE_NOT_FOUND")


def _challenge(nonce: str | None, verifier: str | None, *, at: datetime) -> Challenge | None:
    """Read the question that one-time answers reply to.

    Raises:
        UsageError: Only half of it is given, or the nonce is too short to be fresh.
    """
    if nonce is None and verifier is None:
        return None
    if nonce is None or verifier is None:
        raise UsageError("--nonce and --verifier go together", code="CHALLENGE_OPTIONS")
    return Challenge(nonce=parse_nonce(nonce), verifier=verifier, until=at)


def parse_nonce(text: str) -> bytes:
    """Read at least 16 octets in hexadecimal digits."""
    try:
        nonce = bytes.fromhex(text)
    except ValueError as error:
        raise UsageError(f"`{text}` is not hexadecimal", code="CHALLENGE_OPTIONS") from error
    if len(nonce) < _NONCE:
        raise UsageError(f"a nonce has at least {_NONCE} octets", code="CHALLENGE_OPTIONS")
    return nonce
