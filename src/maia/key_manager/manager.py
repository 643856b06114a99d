"""The key manager: admits brokers to key groups, begins epochs when the rules ask for it, and never goes back.

    manager = KeyManager(engine, signer, secret, verifier=…, versions=…, notices=…)
    manager.open_groups(versions, evidence, at=now)         once for each type, and when a version was added
    answer = manager.join(request, evidence, at=now)        a broker's signed request; answered with signed places
    manager.tick(at=now)                                    every second or so: ends, periods, renewed statements

Rules kept here:

- 16.02: a broker is admitted on its own signed request and the very certificates of its API requests, verified then
  and again whenever statements change, a certificate is revoked, or an admission comes to its end;
- the lists that brokers' certificates demand are followed in the log, see `maia.key_manager.heeding`, so what an
  access control service withdraws ends memberships here at the next round, whoever runs the two and wherever;
- 16.04 to 16.06 and T46 decide when a key changes (`maia.encryption.step_group`);
- F23: a change is one transaction: the new tree, the state of the rules, the places and the signed message of the
  epoch with its number. Only what is committed is put into the log, in order; what a crash left unpublished is
  published at the next start. So no epoch has two keys and no number is used twice, whenever the manager dies;
- a database that is older than the log (a restored backup) begins no epoch: `repair` goes on behind what the log shows;
- every transaction reads what it decides on, so several managers on one database do no harm; with a `Leadership` only
  the leader writes;
- an epoch is announced ``lead`` before it begins, so that brokers know its key in time and lose no event. What ends is
  announced ahead and ends when it must; what comes by surprise (a join, a revocation) takes effect ``lead`` later.

Nothing is on disk in the clear, see `maia.key_manager.groups`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, delete, select

from maia.authority import CertificatePool, VerifiedEventType
from maia.database import key_changes, key_groups, key_messages, reading
from maia.encryption import (
    ChangeKind,
    GroupChange,
    GroupState,
    KeyGroupId,
    step_group,
)
from maia.errors import (
    UnavailableError,
    UncheckedError,
    UsageError,
)
from maia.events import TypeId
from maia.kernel import GroupAdmission, groups_of_type, membership_changes, milliseconds, prove_key_manager
from maia.key_manager.brokers import BrokerRecord, certificate_ids, list_brokers, revoke_certificates
from maia.key_manager.core import change_of
from maia.key_manager.groups import is_group
from maia.key_manager.joining import JoiningManager
from maia.key_manager.settings import KeySettings
from maia.key_manager.views import (
    EpochRecord,
    GroupStatus,
    MembershipRecord,
    TreePicture,
    read_changes,
    read_epochs,
    read_status,
)
from maia.principals import CertificateId

__all__ = ["KeyManager", "KeySettings"]

MAX_GROUPS = 10_000


class KeyManager(JoiningManager):
    """The manager of the key groups of some types. May be used by several threads and processes."""

    def start(self) -> int:
        """Publish what was committed and not published; return how many messages that were.

        Raises:
            UnavailableError: The log shows a later epoch than the database: ``KEY_MANAGER_BEHIND``. Other groups are
                published all the same.
        """
        published = self.publish()
        behind = [status for status in self.status() if status.behind]
        if behind:
            raise UnavailableError(
                f"{len(behind)} key groups are older than the log shows: the database was restored from a backup; "
                "repair them",
                code="KEY_MANAGER_BEHIND",
            )
        return published

    def repair(self, group: KeyGroupId, *, at: datetime) -> int:
        """Let a group that is older than the log go on, in an epoch after all that the log shows.

        Brokers that the log shows inside, and that may still join, keep their place under the keys that the backup
        knows; everybody else joins again. Revocations that only the lost database knew of must be given again, unless
        statements say so as well.

        Returns:
            The number of the new epoch.

        Raises:
            UsageError: The group is not behind: ``KEY_MANAGER_NOT_BEHIND``.
        """
        with self._writing() as connection:
            stored = self._vault.load(connection, group)
            later = self._log.after(group, stored.tree.number)
            if not later:
                newest = self._log.newest(group)
                if newest is None or newest.message.digest == stored.tree.digest:
                    raise UsageError("the key group is not behind its log", code="KEY_MANAGER_NOT_BEHIND")
                later = (newest,)
            connection.execute(
                delete(key_messages).where(is_group(key_messages, group), key_messages.c.published.is_(False))
            )
            start = max(milliseconds(at) + self._lead, later[-1].rekey.start + 1)
            admitted = self._admitted_now(connection, group, at)
            message = stored.tree.restart(self._signer, later, start=start, keep=admitted.keys())
            changes = [
                change
                for member in sorted(stored.tree.members)
                for change in membership_changes(GroupState(), member, admitted[member], at=start, joins=True)
            ]
            order = GroupChange(at=start, kind=ChangeKind.REFRESH)
            stored.state, refresh = step_group(GroupState(), (order, *changes), at=start, period=self._period)
            assert refresh is not None  # noqa: S101 - ordered
            self._vault.save(connection, stored)
            self._vault.record_epoch(connection, stored, message, refresh, at=at)
            self._vault.record_changes(connection, group, [("repair", bytes(32))], at=at)
        self.publish()
        return message.rekey.number

    def open_groups(
        self, versions: Iterable[VerifiedEventType], evidence: CertificatePool, *, at: datetime
    ) -> tuple[KeyGroupId, ...]:
        """Manage the key groups of a type from now on; groups that are there stay as they are.

        Args:
            versions: The versions of one type, verified.
            evidence: Shows that the type's owner names this manager, unless it is the owner.
            at: Now.

        Returns:
            The groups of the type.

        Raises:
            ChainError: This manager is not the type's: ``NOT_THE_KEY_MANAGER``.
            UncheckedError: There would be more groups than are managed.
        """
        known = [version.event_type for version in versions]
        groups = groups_of_type(known)
        prove_key_manager(self.public_key, known[0].name, evidence, verifier=self._verifier(), at=at)
        with self._writing() as connection:
            have = set(self._vault.groups(connection))
            new = [group for group in groups if group not in have]
            if len(have) + len(new) > MAX_GROUPS:
                raise UncheckedError(f"a key manager has at most {MAX_GROUPS} key groups", code="LIMIT_EXCEEDED")
            for group in new:
                self._vault.create(connection, group)
        return groups

    def revoke(self, certificates: Iterable[CertificateId], *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Admit nobody on these certificates any more, and put out whoever stands on nothing else.

        Returns:
            The groups whose key changes for it.
        """
        identities = frozenset(certificates)
        refreshed: list[KeyGroupId] = []
        with self._writing() as connection:
            revoke_certificates(connection, identities, at=at)
            for type_id in sorted({group.type_id for group in self._vault.groups(connection)}):
                hit = [record for record in list_brokers(connection, type_id) if identities & certificate_ids(record)]
                refreshed += self._review(connection, type_id, hit, at)
        self.publish()
        return tuple(refreshed)

    def tick(self, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Do what time asks for: renew or end admissions, refresh keys whose period is over.

        Call it at least every ``lead``; a call that has nothing to do reads and writes little. A group that waits for a
        repair, or a type that cannot be looked up, keeps no other from its time.

        Returns:
            The groups whose key changes.

        Raises:
            UnavailableError: Something could not be done, and the rest was: a group waits for a repair
                (``KEY_MANAGER_BEHIND``), a type could not be looked up, or the log cannot be used.
        """
        refreshed: set[KeyGroupId] = set()
        problems: list[UnavailableError] = []
        try:
            self._heed_brokers(at)
        except UnavailableError as error:
            problems.append(error)
        seen = self._statements_digest()
        with self._writing() as connection:
            groups = self._vault.groups(connection)
            due = key_groups.c.due <= milliseconds(at) + self._lead
            rows = connection.execute(select(key_groups.c.type_id, key_groups.c.label).where(due))
            urgent = {KeyGroupId(TypeId(row.type_id), row.label) for row in rows}
            for type_id in sorted({group.type_id for group in groups}):
                own = [group for group in groups if group.type_id == type_id]
                brokers: list[BrokerRecord] = []
                if seen != self._statements or not urgent.isdisjoint(own):
                    brokers = list_brokers(connection, type_id)
                try:
                    admitted = self._look_again(connection, brokers, at)
                except UnavailableError as error:
                    problems.append(error)  # what cannot be looked at now still ends when it must
                    admitted = {}
                for group in own:
                    try:
                        if admitted and self._review_group(connection, group, admitted, at):
                            refreshed.add(group)
                        if group in urgent:
                            refreshed.update(self._run_timers(connection, group, at))
                    except UnavailableError as error:
                        if error.code != "KEY_MANAGER_BEHIND":
                            raise
                        problems.append(error)
            self._prune(connection, at)
        if not problems:
            self._statements = seen
        self.publish()
        if problems:
            raise problems[0]
        return tuple(sorted(refreshed))

    def refresh(self, group: KeyGroupId, *, at: datetime) -> int:
        """Change a group's key because somebody says so; return the number of the epoch."""
        with self._writing() as connection:
            stored = self._change(connection, group, [change_of(ChangeKind.REFRESH)], at)
        self.publish()
        return stored.tree.number

    def status(self) -> tuple[GroupStatus, ...]:
        """Tell where every group stands, sorted by group."""
        with reading(self._engine) as connection:
            found = read_status(connection)
            trees = {status.group: self._vault.load(connection, status.group).tree for status in found}
        return tuple(replace(status, behind=self._is_behind(trees[status.group])) for status in found)

    def history(self, group: KeyGroupId) -> tuple[EpochRecord, ...]:
        """List the epochs of a group, oldest first."""
        with reading(self._engine) as connection:
            return read_epochs(connection, group)

    def changes(self, group: KeyGroupId) -> tuple[MembershipRecord, ...]:
        """List what happened to the membership of a group, oldest first."""
        with reading(self._engine) as connection:
            return read_changes(connection, group)

    def picture(self, group: KeyGroupId) -> TreePicture:
        """Show the shape of a group's tree."""
        with reading(self._engine) as connection:
            tree = self._vault.load(connection, group).tree
        placed = {member for _, member in tree.places}
        return TreePicture(height=tree.height, places=tree.places, waiting=tuple(sorted(tree.members - placed)))

    def _admitted_now(
        self, connection: Connection, group: KeyGroupId, at: datetime
    ) -> Mapping[bytes, list[GroupAdmission]]:
        """List who may be in a group now, on the evidence that is kept."""
        found: dict[bytes, list[GroupAdmission]] = {}
        for record in list_brokers(connection, group.type_id):
            own = self._reviewed(connection, record, at).get(group)
            if own:
                found[record.member] = own
        return found

    def _statements_digest(self) -> bytes:
        digest = hashlib.sha256()
        for raw in self._verifier().statements.raw_statements():
            digest.update(hashlib.sha256(raw).digest())
        return digest.digest()

    def _prune(self, connection: Connection, at: datetime) -> None:
        """Forget records whose time is over."""
        old = at - self._settings.history
        connection.execute(delete(key_messages).where(key_messages.c.at < old, key_messages.c.published.is_(True)))
        connection.execute(delete(key_changes).where(key_changes.c.at < old))
