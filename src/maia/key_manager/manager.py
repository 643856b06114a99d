"""The key manager: admits brokers to key groups, begins epochs when the rules ask for it, and never goes back.

    manager = KeyManager(engine, signer, secret, verifier=…, versions=…, notices=…)
    manager.open_groups(versions, evidence, at=now)         once for each type, and when a version was added
    answer = manager.join(request, evidence, at=now)        a broker's signed request; answered with signed places
    manager.tick(at=now)                                    every second or so: ends, periods, renewed statements

What it keeps is a `GroupRegister`: state and transactions. Everything it does is done to that register, by subject:

- `admission`: what brokers ask for, to join, to leave, to count;
- `review`: who belongs, by certificates and statements (16.02), and what a revocation ends;
- `epochs`: when a key changes (16.04 to 16.06, T46), announced ahead of time;
- `rounds`: what time asks for, and the lists that brokers' certificates demand (`demanded_lists`);
- `repair`: a database that is older than the log (a restored backup) begins no epoch before it;
- `views`: what is shown.

Rules kept by all: a change is one transaction, and only what is committed is put into the log, in order (F23, see
`register`); every transaction reads what it decides on, so several managers on one database do no harm; nothing is on
disk in the clear (see `groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from sqlalchemy import Engine

from maia.authority import CertificatePool, VerifiedEventType, Verifier
from maia.database import Leadership
from maia.encryption import KeyGroupId
from maia.errors import UnavailableError, UncheckedError
from maia.kernel import groups_of_type, prove_key_manager
from maia.key_manager import epochs, repair, review, views
from maia.key_manager.admission import Admission
from maia.key_manager.demanded_lists import DemandedLists, Heed, Take
from maia.key_manager.register import GroupRegister, VersionsOf
from maia.key_manager.rounds import Rounds
from maia.key_manager.settings import DEFAULT_SETTINGS, KeySettings
from maia.key_manager.views import EpochRecord, GroupStatus, MembershipRecord, TreePicture
from maia.log import LaneRecord, NoticeLog
from maia.principals import CertificateId, Principal, PublicKey, Signer

MAX_GROUPS = 10_000


class KeyManager:
    """The manager of the key groups of some types. May be used by several threads and processes."""

    def __init__(
        self,
        engine: Engine,
        signer: Signer,
        secret: bytes,
        *,
        verifier: Callable[[], Verifier],
        versions: VersionsOf,
        notices: NoticeLog,
        network: tuple[Principal, str] | None = None,
        settings: KeySettings = DEFAULT_SETTINGS,
        leadership: Leadership | None = None,
        heed: Heed | None = None,
        take: Take | None = None,
    ) -> None:
        """Stand on a migrated database; nothing is read or written yet.

        Args:
            engine: The database.
            signer: Signs messages and answers.
            secret: Seals what is stored, see `manager_secret`.
            verifier: Gives a verifier with the statements known now.
            versions: Gives the verified versions of a type.
            notices: Where messages are published.
            network: The network whose ``connect`` brokers must hold, if any.
            settings: Periods and limits.
            leadership: Lets only the leader of several processes write.
            heed: Brings the verifier's statements up to date; without it somebody else does.
            take: Keeps statements that brokers bring; without it none are.
        """
        self._register = GroupRegister(
            engine, signer, secret, verifier=verifier, versions=versions, notices=notices, network=network,
            settings=settings, leadership=leadership,
        )  # fmt: skip
        lists = DemandedLists(self._register, heed, take)
        self._admission = Admission(self._register, lists)
        self._rounds = Rounds(self._register, lists)

    @property
    def public_key(self) -> PublicKey:
        """The key whose messages and answers count."""
        return self._register.public_key

    @property
    def settings(self) -> KeySettings:
        """How it works."""
        return self._register.settings

    def close(self) -> None:
        """Let go of the database's connections; they come back when the manager is used again."""
        self._register.close()

    def start(self, *, at: datetime) -> int:
        """Publish what was committed and not published; return how many messages that were.

        A log that cannot be used keeps nobody from starting: what waits is told by `status`, and tried every round.

        Raises:
            UnavailableError: The log shows a later epoch than the database: ``KEY_MANAGER_BEHIND``. Other groups are
                published all the same.
        """
        published = 0
        with suppress(UnavailableError):
            published = self.publish(at=at)
        behind = [status for status in self.status() if status.behind]
        if behind:
            raise UnavailableError(
                f"{len(behind)} key groups are older than the log shows: the database was restored from a backup; "
                "repair them",
                code="KEY_MANAGER_BEHIND",
            )
        return published

    def publish(self, *, at: datetime) -> int:
        """Put messages that the log lacks into it, oldest first; return how many.

        Raises:
            UnavailableError: The log cannot be used (``REKEYS_UNPUBLISHED``), or holds other messages of this manager.
        """
        return self._register.publish(at=at)

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
        register = self._register
        known = [version.definition for version in versions]  # what they inherit has key groups of its own
        groups = groups_of_type(known)
        prove_key_manager(self.public_key, known[0].name, evidence, verifier=register.verifier(), at=at)
        with register.writing() as connection:
            have = set(register.vault.groups(connection))
            new = [group for group in groups if group not in have]
            if len(have) + len(new) > MAX_GROUPS:
                raise UncheckedError(f"a key manager has at most {MAX_GROUPS} key groups", code="LIMIT_EXCEEDED")
            for group in new:
                register.vault.create(connection, group)
        return groups

    def join(
        self, request: bytes, evidence: Iterable[bytes], *, at: datetime, window: timedelta | None = None
    ) -> bytes:
        """Admit a broker to all groups of a type that its certificates open; see `Admission.join`."""
        return self._admission.join(request, evidence, at=at, window=window)

    def leave(self, request: bytes, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Let a broker go; see `Admission.leave`."""
        return self._admission.leave(request, at=at)

    def count_use(self, request: bytes, *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Take a broker's count of the blocks it sealed; see `Admission.count_use`."""
        return self._admission.count_use(request, at=at)

    def revoke(self, certificates: Iterable[CertificateId], *, at: datetime) -> tuple[KeyGroupId, ...]:
        """Admit nobody on these certificates any more, and put out whoever stands on nothing else.

        Returns:
            The groups whose key changes for it.
        """
        return review.revoke(self._register, certificates, at=at)

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
        return self._rounds.run(at)

    def refresh(self, group: KeyGroupId, *, at: datetime) -> int:
        """Change a group's key because somebody says so; return the number of the epoch."""
        return epochs.refresh(self._register, group, at=at)

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
        return repair.repair(self._register, group, at=at)

    def status(self) -> tuple[GroupStatus, ...]:
        """Tell where every group stands, sorted by group."""
        return views.status(self._register)

    def history(self, group: KeyGroupId) -> tuple[EpochRecord, ...]:
        """List the epochs of a group, oldest first."""
        return views.history(self._register, group)

    def changes(self, group: KeyGroupId) -> tuple[MembershipRecord, ...]:
        """List what happened to the membership of a group, oldest first."""
        return views.changes(self._register, group)

    def rekeys(self, group: KeyGroupId, *, after: int = -1, limit: int = 1000) -> tuple[LaneRecord, ...]:
        """List the published records of a group behind a place in its lane, oldest first."""
        return views.rekeys(self._register, group, after=after, limit=limit)

    def picture(self, group: KeyGroupId) -> TreePicture:
        """Show the shape of a group's tree."""
        return views.picture(self._register, group)
