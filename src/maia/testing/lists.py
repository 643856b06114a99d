"""An issuer of lists without a home: what a home's lists are to those who follow them, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from maia.authority import ListStatement, Rhythm, Series, Statement, issue_statement
from maia.errors import UsageError
from maia.log import NoticeLog, publish_statement, said_statements, tidy_statements
from maia.principals import CertificateId, Signer, TestKind, check_aware

Listed = Mapping[CertificateId, datetime | None]
"""Certificates with the ends of their periods; ``None`` when there is no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPublisher:
    """An issuer's side of its topic. Its own record of the lane is its memory: a restart goes on where it ended.

    Attributes:
        notices: The notices of the log, with the issuer's own record.
        signer: The key that certificates name for their lists.
        rhythm: How often, and how early.
        kind: Which lists; a CRL names what is withdrawn, a revalidation what is good.
    """

    notices: NoticeLog
    signer: Signer
    rhythm: Rhythm
    kind: TestKind = TestKind.CRL

    def publish(self, listed: Listed, *, at: datetime) -> Statement | None:
        """Sign and send the list that is due; ``None``, and no signature, while none is.

        Args:
            listed: Certificates that were withdrawn, besides those that a list of this lane named; for a revalidation
                all that are good. Those that expire before the list starts are left out.
            at: Now.
        """
        lists = self._lists()
        last = max((body.ends for body in lists if body.kind is self.kind and body.ends is not None), default=None)
        due = self.rhythm.due(last, at=at)
        if due is None:
            return None
        starts, ends = due
        made = self._send(lists, listed, (starts, ends), at)
        tidy_statements(self.notices, self.signer, at=at)
        return made

    def withdraw(self, listed: Listed, *, at: datetime) -> Statement:
        """Say at once, beside the rhythm, what is withdrawn now.

        Raises:
            UsageError: A revalidation cannot be said early: ``NOT_BY_CRL``.
        """
        if self.kind is not TestKind.CRL:
            raise UsageError("only a CRL revokes at once; a revalidation waits for its next list", code="NOT_BY_CRL")
        return self._send(self._lists(), listed, None, check_aware(at))

    def listed(self) -> frozenset[CertificateId]:
        """Return what the newest list of this kind names."""
        found = [body for body in self._lists() if body.kind is self.kind]
        return max(found, key=lambda body: body.sequence).certificates if found else frozenset()

    def _lists(self) -> list[ListStatement]:
        return [
            item.body for _, item in said_statements(self.notices, self.signer) if isinstance(item.body, ListStatement)
        ]

    def _send(
        self,
        lists: list[ListStatement],
        listed: Listed,
        interval: tuple[datetime, datetime] | None,
        at: datetime,
    ) -> Statement:
        number = max((body.sequence for body in lists), default=0)
        over = frozenset[CertificateId]() if interval is None else _over(listed, interval[0])
        # SECURITY: what a list revoked, every later one revokes, whether the caller names it again or not.
        series = Series.of(lists, kind=self.kind, signer=self.signer.public_key, taken=number)
        series = replace(series, certificates=series.certificates - over)
        statement = issue_statement(series.next(frozenset(listed) - over, interval=interval, at=at), self.signer)
        publish_statement(self.notices, self.signer, statement.raw, at=at)
        return statement


def _over(listed: Listed, starts: datetime) -> frozenset[CertificateId]:
    return frozenset(identity for identity, ends in listed.items() if ends is not None and ends < starts)
