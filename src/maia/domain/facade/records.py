"""What the audit of a domain says was decided, decided again.

Each function is a method of `Domain`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.replay import Replayed, replay_audit

if TYPE_CHECKING:
    from maia.domain.domain import Domain


def replay(
    domain: Domain, entries: Iterable[int] | None = None, *, since: datetime | None = None, where: str | None = None
) -> Replayed:
    """Decide again, offline, what the audit says was decided, from what decided then; nothing is written.

    Args:
        domain: The domain.
        entries: The numbers of entries; all that hold decisions by default.
        since: Only what is from this instant on.
        where: The filter that a client gave then, for a decision that rests on its values.

    Raises:
        NotFoundError: There is no such entry, or it holds no decision: ``NO_SUCH_ENTRY``, ``NO_DECISION``.
        VerificationError: The journal is not whole: ``AUDIT_SIGNATURE``, ``AUDIT_GAP``, ``AUDIT_TRUNCATED``.
    """
    return replay_audit(domain.home, entries, since=since, where=where)
