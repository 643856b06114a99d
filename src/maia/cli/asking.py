"""What `prove`, `verify` and `explain` share: a question, the evidence, and the verifier that answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import (
    CertificatePool,
    Challenge,
    Decision,
    Request,
    Root,
    StatementBook,
    Verifier,
    parse_statement,
    verify_statement,
)
from maia.cli.read.files import read_source
from maia.cli.read.principals import parse_principal_text
from maia.cli.show.output import note
from maia.errors import UsageError, VerificationError
from maia.home import Folder, key_of
from maia.principals import KeyHash, PublicKey

_NONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything that a decision depends on."""

    home: Folder
    request: Request
    principal: PublicKey | KeyHash
    pool: CertificatePool
    book: StatementBook
    roots: tuple[Root, ...]
    at: datetime
    challenge: Challenge | None = None

    def decide(self) -> Decision:
        """Let a fresh verifier answer."""
        verifier = Verifier(self.roots, statements=self.book)
        return verifier.decide(
            self.request, principal=self.principal, evidence=self.pool, at=self.at, challenge=self.challenge
        )


def parse_roots(texts: Sequence[str] | None, home: Folder) -> tuple[Root, ...]:
    """Read the trusted principals of the command line."""
    return tuple(Root(subject=parse_principal_text(text, home)) for text in texts or ())


def parse_holder(text: str, home: Folder) -> PublicKey | KeyHash:
    """Read who asks: one key."""
    return key_of(parse_principal_text(text, home))


def book_with(home: Folder, statements: Sequence[Path] | None) -> StatementBook:
    """Read the accepted statements, and take further ones in for this decision only."""
    book = home.book()
    for path in statements or ():
        book.accept(verify_statement(parse_statement(read_source(str(path)))))
    return book


def accept_known(book: StatementBook, raws: Sequence[bytes]) -> None:
    """Take in the statements that come with a proof; where the book knows better, its own lists count.

    Raises:
        VerificationError: A statement is forged.
        EncodingError: One is no statement.
    """
    for raw in raws:
        statement = verify_statement(parse_statement(raw))
        try:
            book.accept(statement)
        except VerificationError as error:
            if error.code not in ("STATEMENT_OVERLAP", "STATEMENT_ROLLBACK"):
                raise
            note(f"a statement of the proof is left out: {error.message}")


def parse_challenge(nonce: str | None, verifier: str | None, *, at: datetime) -> Challenge | None:
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
