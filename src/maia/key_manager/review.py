"""Who belongs to a group: what a broker's certificates open now, and what opened before and no longer does.

Rules kept here:

- 16.02: a broker is admitted on the very certificates of its API requests, verified when it joins and again whenever
  statements change, a certificate is revoked, or an admission comes to its end;
- what was revoked here counts for nobody, whatever statements say.

Every function that takes a connection runs inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from maia.authority import CertificatePool
from maia.encryption import GroupChange, KeyGroupId
from maia.errors import NotFoundError, UnavailableError, VerificationError
from maia.events import TypeId
from maia.kernel import GroupAdmission, admit_broker, membership_changes
from maia.key_manager.brokers import (
    BrokerRecord,
    certificate_ids,
    list_brokers,
    revoke_certificates,
    usable_evidence,
)
from maia.key_manager.epochs import change
from maia.key_manager.groups import StoredGroup
from maia.key_manager.register import GroupRegister
from maia.principals import CertificateId, PublicKey

Admissions = dict[KeyGroupId, list[GroupAdmission]]
"""By group, what a broker is admitted on."""


def admissions_of(
    register: GroupRegister, type_id: TypeId, broker: PublicKey, pool: CertificatePool, at: datetime
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
    for admission in admit_broker(broker, versions, pool, verifier=verifier, at=at, network=register.network):
        found.setdefault(admission.group, []).append(admission)
    return found


def was_admitted(
    register: GroupRegister, admission: GroupAdmission, stored: StoredGroup, broker: PublicKey, pool: CertificatePool
) -> bool:
    """Tell whether an admission that rests on statements held when the group's current key began."""
    if stored.state.last is None:
        return False
    then = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=stored.state.last)
    try:
        known = admissions_of(register, stored.group.type_id, broker, pool, then).get(stored.group, ())
    except (VerificationError, NotFoundError):
        return False
    return any(item.credential == admission.credential for item in known)


def look_again(
    register: GroupRegister, connection: Connection, brokers: Iterable[BrokerRecord], at: datetime
) -> dict[bytes, Admissions]:
    """Look at the certificates of known brokers again; tell by member what they open now."""
    return {record.member: _admitted(register, connection, record, at) for record in brokers}


def admitted_now(
    register: GroupRegister, connection: Connection, group: KeyGroupId, at: datetime
) -> dict[bytes, list[GroupAdmission]]:
    """List who may be in a group now, on the evidence that is kept."""
    found: dict[bytes, list[GroupAdmission]] = {}
    for record in list_brokers(connection, group.type_id):
        own = _admitted(register, connection, record, at).get(group)
        if own:
            found[record.member] = own
    return found


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
        revoke_certificates(connection, identities, at=at)
        for type_id in sorted({group.type_id for group in register.vault.groups(connection)}):
            hit = [record for record in list_brokers(connection, type_id) if identities & certificate_ids(record)]
            admitted = look_again(register, connection, hit, at)
            for group in register.vault.groups(connection, type_id) if admitted else ():
                try:
                    if review_group(register, connection, group, admitted, at):
                        refreshed.append(group)
                except UnavailableError as error:
                    if error.code != "KEY_MANAGER_BEHIND":
                        raise
                    problem = error  # nothing of it was written; the repair admits nobody on what is revoked here
    register.tell(at=at)
    if problem is not None:
        raise problem
    return tuple(refreshed)


def _admitted(register: GroupRegister, connection: Connection, record: BrokerRecord, at: datetime) -> Admissions:
    pool = usable_evidence(connection, record.evidence)
    try:
        return admissions_of(register, record.type_id, record.key, pool, at)
    except (VerificationError, NotFoundError):
        return {}
