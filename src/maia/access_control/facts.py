"""Facts of members as they are recorded: what they are said to be, and what a denial then takes away.

Rules kept here:

- a recorded fact gives nothing by itself: whoever it concerns activates a role. It may take away, though: a denial that
  stands on it counts from this transaction on, and certificates end that the policy would not issue any more;
- what denies is recorded here and never handed to the one whom it concerns, who would leave it at home.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.access_control.denied import denies
from maia.access_control.register import Records, Register
from maia.access_control.values import Revocation
from maia.access_control.withdraw import cascade
from maia.errors import UsageError
from maia.policy import Fact, FactKind
from maia.principals import check_aware


def record(register: Register, fact: Fact, *, at: datetime, until: datetime | None) -> tuple[bool, Revocation]:
    """Record a fact that holds up to and including an instant; say whether it is new, and what it ended."""
    if until is not None and check_aware(until) < at:
        raise UsageError("a fact that has ended already", code="FACT_ENDED")
    with register.writing(at) as records:
        register.changes()
        (new,) = register.roles.record(records.roles, [(fact, until)])
        records.journal.note("appoint" if fact.kind is FactKind.APPOINTMENT else "observe", str(fact), who=None, at=at)
        return new, deny_now(register, records, [fact], at=at)


def deny_now(register: Register, records: Records, facts: Iterable[Fact], *, at: datetime) -> Revocation:
    """End the certificates that the policy does not give any more, now that facts hold on which denials stand."""
    if not any(fact.kind is FactKind.APPOINTMENT and denies(register, fact.atom) for fact in facts):
        return Revocation()
    # SECURITY: a denial may name others than the one whom a fact is about, so everybody is looked at.
    done = cascade(register, records, (), (), at=at, changed=register.members)
    records.journal.note_all(
        (("deny", f"certificate {item.certificate_id.hex()[:16]}", None) for item in done.certificates), at=at
    )
    return done
