"""A question about a right: what is asked, of whom, with which evidence; and what a verifier says."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

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
)
from maia.errors import UncheckedError
from maia.home import Folder
from maia.principals import KeyHash, PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RightQuestion:
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
        return Verifier(self.roots, statements=self.book, clock=time.monotonic)
