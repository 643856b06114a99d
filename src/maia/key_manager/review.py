"""Who belongs to a group: what a broker's certificates open now, and what opened before and no longer does.

Rules kept here:

- 16.02: a broker is admitted on the very certificates of its API requests, verified when it joins and again whenever
  statements change, a certificate is revoked, or an admission comes to its end;
- what was revoked here counts for nobody, whatever statements say;
- certificates are judged outside of transactions, on a snapshot, with one budget for each broker. What is written
  rests on what the transaction finds unchanged; a broker that changed meanwhile is looked at again.

Every function that takes a connection runs inside the caller's transaction, and decides nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from maia.authority import Action, Budget, CertificatePool
from maia.encryption import GroupChange, KeyGroupId
from maia.errors import NotFoundError, UnavailableError, UncheckedError, VerificationError
from maia.events import TypeId
from maia.kernel import GroupAdmission, admit_broker, membership_changes
from maia.key_manager.brokers import (
    BrokerRecord,
    certificate_ids,
    find_broker,
    list_brokers,
    revoke_certificates,
    revoked_among,
    usable_evidence,
)
from maia.key_manager.epochs import change
from maia.key_manager.register import GroupRegister
from maia.principals import CertificateId, PublicKey

Admissions = dict[KeyGroupId, list[GroupAdmission]]
"""By group, what a broker is admitted on."""

MAX_TRIES = 4
"""How often a decision is made again when what it rests on changed meanwhile."""


def admissions_of(
    register: GroupRegister,
    type_id: TypeId,
    broker: PublicKey,
    pool: CertificatePool,
    at: datetime,
    budget: Budget | None = None,
    *,
    actions: tuple[Action, ...] = (Action.SUBSCRIBE, Action.PUBLISH),
) -> Admissions:
    """Tell which groups of a type a broker's certificates open.

    Raises:
        VerificationError: They open none.
        NotFoundError: No version of the type verifies: ``UNKNOWN_TYPE``.
    """
    versions = register.versions(type_id, at)
    if not versions:
        raise NotFoundError("no version of the type verifies now", code="UNKNOWN_TYPE")
    found: Admissions = {}
    verifier = register.verifier()
    for admission in admit_broker(
        broker, versions, pool, verifier=verifier, at=at, network=register.network, actions=actions, budget=budget
    ):
        found.setdefault(admission.group, []).append(admission)
    return found


def credentials_then(
    register: GroupRegister, group: KeyGroupId, last: int, broker: PublicKey, pool: CertificatePool, budget: Budget
) -> frozenset[bytes]:
    """Tell on which credentials a broker was admitted when the group's current key began."""
    then = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=last)
    try:
        known = admissions_of(register, group.type_id, broker, pool, then, budget).get(group, ())
    except UncheckedError as error:
        if error.code == "LIMIT_EXCEEDED":
            raise
        return frozenset()
    except (VerificationError, NotFoundError):
        return frozenset()
    return frozenset(item.credential for item in known)


@dataclass(frozen=True, slots=True)
class Looked:
    """A broker as it was known, and what its certificates open.

    Attributes:
        record: What was known of it.
        evidence: Its certificates that were not revoked.
        admissions: By group, what they open.
    """

    record: BrokerRecord
    evidence: frozenset[CertificateId]
    admissions: Admissions


def snapshot(
    register: GroupRegister, brokers: Callable[[Connection], Iterable[BrokerRecord]]
) -> list[tuple[BrokerRecord, CertificatePool]]:
    """Read brokers and their certificates that count, in a transaction of its own."""
    with register.reading() as connection:
        return [(record, usable_evidence(connection, record.evidence)) for record in brokers(connection)]


def look_again(
    register: GroupRegister, brokers: Iterable[tuple[BrokerRecord, CertificatePool]], at: datetime
) -> tuple[Looked, ...]:
    """Look at the certificates of known brokers again, outside of any transaction."""
    return tuple(
        Looked(record, frozenset(item.certificate_id for item in pool), _admitted(register, record, pool, at))
        for record, pool in brokers
    )


def still_so(connection: Connection, looked: Iterable[Looked]) -> tuple[Looked, ...]:
    """Give back what was found of brokers about whom nothing changed since."""
    return tuple(
        item
        for item in looked
        if find_broker(connection, item.record.type_id, item.record.member) == item.record
        and not revoked_among(connection, item.evidence)
    )


def review_group(
    register: GroupRegister,
    connection: Connection,
    group: KeyGroupId,
    admitted: Mapping[bytes, Admissions],
    at: datetime,
) -> bool:
    """Let a group know what its members are admitted on now; tell whether its key changes for it."""
    stored = register.vault.load(connection, group)
    instant = register.instant(stored, at)
    changes: list[GroupChange] = []
    for member, admissions in admitted.items():
        inside = member in stored.state.members
        if inside or member in stored.state.leavers:
            changes += membership_changes(stored.state, member, admissions.get(group, ()), at=instant, joins=inside)
    return bool(changes) and change(register, connection, group, changes, at).tree.number > stored.tree.number


def revoke(register: GroupRegister, certificates: Iterable[CertificateId], *, at: datetime) -> tuple[KeyGroupId, ...]:
    """Admit nobody on these certificates any more, and put out whoever stands on nothing else.

    It is durable before the log is touched, and nothing in the log stops it.

    Returns:
        The groups whose key changes for it.

    Raises:
        UnavailableError: ``KEY_MANAGER_BEHIND``: it is revoked, and a group waits for its repair to leave it out.
    """
    identities = frozenset(certificates)
    refreshed: list[KeyGroupId] = []
    problem: UnavailableError | None = None
    with register.writing() as connection:
        # INVARIANT: from here on nobody is admitted on them; a crash before the rest is made good by the next round.
        revoke_certificates(connection, identities, at=at)

    def hit(connection: Connection) -> list[BrokerRecord]:
        return [record for record in list_brokers(connection) if identities & certificate_ids(record)]

    for _ in range(MAX_TRIES):
        looked = look_again(register, snapshot(register, hit), at)
        with register.writing() as connection:
            same = still_so(connection, looked)
            for group in register.vault.groups(connection) if same else ():
                own = (item for item in same if item.record.type_id == group.type_id)
                admitted: dict[bytes, Admissions] = {item.record.member: item.admissions for item in own}
                try:
                    if admitted and review_group(register, connection, group, admitted, at):
                        refreshed.append(group)
                except UnavailableError as error:
                    if error.code != "KEY_MANAGER_BEHIND":
                        raise
                    problem = error  # nothing of it was written; the repair admits nobody on what is revoked here
        if len(same) == len(looked):
            break
    register.tell(at=at)
    if problem is not None:
        raise problem
    return tuple(dict.fromkeys(refreshed))


def _admitted(register: GroupRegister, record: BrokerRecord, pool: CertificatePool, at: datetime) -> Admissions:
    try:
        return admissions_of(register, record.type_id, record.key, pool, at)
    except (VerificationError, NotFoundError):
        return {}
