"""What `prove`, `verify` and `explain` ask: a right, whose it is said to be, and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import (
    CertificatePool,
    Challenge,
    Decision,
    Derived,
    Request,
    Root,
    StatementBook,
    Verifier,
    covers,
    one_of,
    parse_statement,
    verify_statement,
)
from maia.cli.read.bundles import Place, RightOptions
from maia.cli.read.files import read_source
from maia.cli.show.output import note
from maia.errors import UncheckedError, UsageError, VerificationError
from maia.home import Folder, key_of, words
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
        return self._verifier().decide(
            self.request, principal=self.principal, evidence=self.pool, at=self.at, challenge=self.challenge
        )

    def clauses(self) -> tuple[Derived, ...]:
        """List the chains of an open request; for an exact one every chain gives the same, and one is enough."""
        if self.request.ground is not None:
            return ()
        return self._verifier().clauses(self.request, principal=self.principal, evidence=self.pool, at=self.at)

    def is_whole(self) -> bool:
        """Tell whether the principal's chains together cover all that was asked for, not only a part."""
        if self.request.ground is not None:
            return True
        try:
            clauses = self.clauses()
        except UncheckedError:
            return False
        return bool(clauses) and covers(one_of(clause.tag for clause in clauses), self.request.wanted)

    def _verifier(self) -> Verifier:
        return Verifier(self.roots, statements=self.book)


def read_question(
    place: Place,
    asked: RightOptions,
    principal: str,
    *,
    certificates: Path | None = None,
    statements: Sequence[Path] | None = None,
    nonce: str | None = None,
    verifier: str | None = None,
) -> Question:
    """Read a question from the options of a command."""
    folder = place.folder
    book = folder.book()
    for path in statements or ():
        book.accept(verify_statement(parse_statement(read_source(str(path)))))
    return Question(
        home=folder, request=asked.right(folder).request(),
        principal=key_of(words.parse_principal_text(principal, folder)), pool=folder.pool(certificates), book=book,
        roots=asked.roots(folder), at=place.instant, challenge=_challenge(nonce, verifier, at=place.instant),
    )  # fmt: skip


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
