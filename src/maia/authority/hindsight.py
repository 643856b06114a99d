"""What is known today of a moment that is over: the statements by which an old event is judged.

An origin's right is judged at the stamp of its events (choice C43). Statements are of their time, and of an old time a
reader may hold none: it came later, or forgot them. Rules kept here:

- a withdrawal counts from the moment that the list says (see `statements`) and not before, however it is heard; a list
  in force at the stamp overrules only lists with lower numbers, as it does at its own time;
- that a certificate was good is shown by a list in force at the stamp, of one's own or brought along as evidence; or by
  a later list of one's own which, the certificate being unexpired when it began, would have to name it. Where a signer
  has no timed lists its plain one shows it, since that names what expired as well;
- a revalidation shows what it says of its own time alone;
- what nothing shows is a doubt, never a yes: ``NO_STATEMENT``. An answer to a challenge serves one decision and shows
  nothing afterwards;
- what is brought along proves nothing but what its signer signed: it is verified, of signers that a certificate names,
  and at most `MAX_BROUGHT` lists are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from maia.authority.book import Confirmation, StatementBook
from maia.authority.pool import CertificatePool
from maia.authority.statements import Challenge, ListStatement, Statement, parse_statement, stamp_of, verify_statement
from maia.errors import MalformedError, RevokedError, UncheckedError, VerificationError
from maia.principals import CertificateId, OnlineTest, TestKind

MAX_BROUGHT = 16
_PREFIX = b"(6:signed(9:statement"


@dataclass(frozen=True, slots=True)
class Hindsight:
    """Answers on-line tests about the past.

    Attributes:
        book: What is held now.
        pool: The certificates in question, for the ends of their periods.
        brought: Lists that came along with them.
    """

    book: StatementBook
    pool: CertificatePool
    brought: tuple[Statement, ...] = ()

    def check(
        self,
        test: OnlineTest,
        certificate: CertificateId,
        *,
        at: datetime,
        challenge: Challenge | None = None,  # noqa: ARG002 - as a book is asked
    ) -> Confirmation:
        """Answer one on-line test of a certificate about an instant that may be over.

        Raises:
            RevokedError: It was withdrawn by then, or not confirmed.
            UncheckedError: Nothing speaks of that instant.
        """
        own = self.book.lists(test.signer.key_id, test.kind)
        brought = tuple(item.body for item in self.brought if isinstance(item.body, ListStatement))
        others = tuple(body for body in brought if (body.signer.key_id, body.kind) == (test.signer.key_id, test.kind))
        served = next((body for body in (*own, *others) if body.timed and body.in_force(at)), None)
        known = (*own, *others)
        if test.kind is TestKind.CRL:
            withdrawn = self._withdrawn(known, served, certificate, at)
            shown = served is not None or any(self._shows(body, own, certificate, at) for body in own)
        else:
            withdrawn = served is not None and certificate not in served.certificates
            shown = served is not None
        if withdrawn:
            raise RevokedError(f"revoked by the {test.kind.value} of `{test.signer.fingerprint}`")
        if not shown:
            raise UncheckedError(
                f"no {test.kind.value} of `{test.signer.fingerprint}` speaks of {at.isoformat()}", code="NO_STATEMENT"
            )
        return Confirmation(None)

    def assured_until(self, test: OnlineTest, certificate: CertificateId, *, at: datetime) -> None:  # noqa: ARG002
        """Know no end: the past stays as it is."""
        return

    @staticmethod
    def _withdrawn(
        known: Iterable[ListStatement], served: ListStatement | None, certificate: CertificateId, at: datetime
    ) -> bool:
        for body in known:
            if served is not None and body is not served and body.sequence < served.sequence:
                continue
            if certificate in body.certificates and body.moments()[certificate] <= stamp_of(at):
                return True
        return False

    def _shows(
        self, body: ListStatement, own: tuple[ListStatement, ...], certificate: CertificateId, at: datetime
    ) -> bool:
        """Tell whether one of one's own lists would have to name a certificate that was withdrawn by an instant."""
        if body.starts is None:
            return not body.only_revokes and not any(item.timed for item in own)
        ends = self.pool.get(certificate).body.period.not_after
        return at < body.starts and (ends is None or body.starts <= ends)


def split_evidence(items: Iterable[bytes], *, limit: int = MAX_BROUGHT) -> tuple[list[bytes], tuple[Statement, ...]]:
    """Tell certificates and statements of an origin's evidence apart; statements that do not verify are left out."""
    certificates: list[bytes] = []
    statements: list[Statement] = []
    for item in items:
        if not item.startswith(_PREFIX):
            certificates.append(item)
        elif len(statements) < limit:
            try:
                statements.append(verify_statement(parse_statement(item)))
            except (MalformedError, VerificationError):
                continue  # SECURITY: what is wrong with it shows nothing
    return certificates, tuple(statements)
