"""Judging origins: what a broker was allowed to set when it stamped what a commit holds.

Rules kept here (choice C43):

- an origin's right is judged at the stamps of its commit, on the evidence that the commit names and the statements that
  speak of that time, and of no other: what expired or was revoked later leaves it in force, what is stamped after a
  revocation is refused;
- conditions and rates of its chain were asked where it published; they are not asked again. Demands on rows still are,
  by whoever opens the parcels (`maia.kernel`);
- a right that cannot be proven yet, since evidence, a statement or the definition of its version is missing, is
  a doubt. Whatever else the origin's certificates make the verifier say is a denial, and concerns that origin alone;
- of a type that extends others it is judged on each type of the lineage, for that type's attributes; it needs a right
  on the type itself. A child's commits are the parent's as well when their origin had a right on both then;
- the lists that an origin's certificates demand are listened to, as those of one's own certificates are;
- a commit over whose stamps the right changes more often than `MAX_PHASES` times is refused: nobody needs it, and each
  change costs a decision.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from maia.authority import (
    Action,
    CertificatePool,
    KnownVersions,
    ListStatement,
    Statement,
    StatementBook,
    Verifier,
    split_evidence,
)
from maia.domain.snapshot import Snapshot
from maia.domain.statements import named_signers
from maia.errors import MaiaError, UnavailableError, UncheckedError
from maia.events import EventType, TypeId, TypeName
from maia.home import Home
from maia.kernel import FOREVER, Clause, Origin, Tenure, clauses_for, confined, milliseconds, requests_for, versions_of
from maia.log import Commit, LogDirectory
from maia.principals import KeyHash, KeyId, OnlineTest, TestKind

MAX_PHASES = 32
_MAX_ORIGINS = 10_000
_MAX_SIGNERS = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = milliseconds(datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Judged:
    """What an origin may set and when; nothing when it has no right, or when ``doubt`` names what is missing.

    ``giver`` is who issued the right to it, in hex; empty for the owner itself.
    """

    tenures: tuple[Tenure, ...] = ()
    doubt: str = ""
    giver: str = ""


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The certificates that a hash names, and the lists that came with them."""

    pool: CertificatePool
    brought: tuple[Statement, ...]

    def lists(self, test: OnlineTest) -> list[ListStatement]:
        """List what came along for a test."""
        bodies = (item.body for item in self.brought if item.signer_id == test.signer.key_id)
        return [body for body in bodies if isinstance(body, ListStatement) and body.kind is test.kind]


class Origins:
    """Judges origins, and remembers what was found until evidence or statements change it."""

    def __init__(self, home: Home, log: LogDirectory) -> None:
        """Judge for a home, by the evidence in a log."""
        self._home = home
        self._log = log
        self._judged: dict[tuple[object, ...], Judged] = {}
        self._turns: dict[tuple[object, ...], list[int]] = {}
        self._evidence: dict[bytes, _Evidence] = {}
        self._signers: dict[KeyId, None] = {}

    @property
    def signers(self) -> frozenset[KeyId]:
        """Name the signers of the lists on which origins stand that hold a right, or would but for a list."""
        return frozenset(self._signers)

    def of_commits(
        self, known: Snapshot, event_type: EventType, commits: Iterable[Commit]
    ) -> dict[Origin, tuple[Tenure, ...]]:
        """Tell which of the brokers that filled these commits might publish the type when, and what they might set.

        Raises:
            UncheckedError: One is in doubt: whoever offered these commits saw that none was, and nothing may be passed
                over that can be resolved.
        """
        found: dict[Origin, dict[Tenure, None]] = {}
        wire = known.read_as(event_type.type_id, self._home)
        for commit in commits:
            if commit.type_id in wire and not commit.wrong:
                judged = self.judge(known, event_type, commit)
                if judged.doubt:
                    raise UncheckedError("whether an origin had a right became a doubt meanwhile", code=judged.doubt)
                found.setdefault(origin_of(commit), {}).update(dict.fromkeys(judged.tenures))
        return {origin: tuple(tenures) for origin, tenures in found.items() if tenures}

    def judge(self, known: Snapshot, event_type: EventType, commit: Commit, *, stamp: int | None = None) -> Judged:
        """Tell what the origin of a commit might set, at each of the commit's stamps; or at another one.

        Of a commit of a type that extends this one: what it might set of this one, while it might publish both.
        """
        found = self._judged_on(known, event_type, commit, stamp)
        child = self._child(known, event_type, commit) if found.tenures else None
        if child is None:
            return found
        whole = self._judged_on(known, child, commit, stamp)
        return whole if whole.doubt else replace(found, tenures=tuple(_both(found.tenures, whole.tenures)))

    def _child(self, known: Snapshot, event_type: EventType, commit: Commit) -> EventType | None:
        """Find the type that a commit is of, when that extends the one as which it is read."""
        if commit.type_id == event_type.type_id.hex():
            return None
        for child in known.sessions.children(event_type.type_id):
            if commit.type_id in {identity.hex() for identity in self._home.wire_ids(child)}:
                return known.versions(child)[0].event_type
        return None

    def _judged_on(self, known: Snapshot, event_type: EventType, commit: Commit, stamp: int | None) -> Judged:
        """Tell what the origin of a commit might set of one type."""
        origin, book = origin_of(commit), known.verifier.statements
        try:
            evidence = self._read(known.verifier, origin[1])
        except UnavailableError as error:
            return Judged(doubt=error.code)  # a disk that fails for a moment proves nothing
        except MaiaError:
            return Judged()
        if not len(evidence.pool):
            return Judged(doubt="EVIDENCE_MISSING")
        first, last = stamps_of(commit) if stamp is None else (stamp, stamp)
        turns = self._turns_of(evidence, book)
        lineage = _lineage(known, event_type)
        phases = range(bisect_right(turns, first), bisect_right(turns, last) + 1)
        if len(phases) > MAX_PHASES:
            return Judged()
        tenures: list[Tenure] = []
        giver = ""
        for phase in phases:
            start, end = turns[phase - 1] if phase else 0, turns[phase] if phase < len(turns) else FOREVER
            key = (origin, event_type.type_id, known.verifier, evidence.pool.token, book.revision, lineage, phase)
            judged = self._judged.get(key)
            if judged is None:
                _make_room(self._judged)
                judged = _judge(known.verifier, lineage, origin[0], evidence, (start, end), first)
                self._judged[key] = judged
                if judged.tenures or judged.doubt == "NO_STATEMENT":
                    # SECURITY: a root leads to these certificates, so strangers name nobody here.
                    fresh = [item for item in sorted(named_signers(evidence.pool)) if item not in self._signers]
                    self._signers.update(dict.fromkeys(fresh[: max(0, _MAX_SIGNERS - len(self._signers))]))
            if judged.doubt:
                return judged
            tenures += judged.tenures
            giver = judged.giver or giver
        return Judged(tuple(tenures), giver=giver)

    def _turns_of(self, evidence: _Evidence, book: StatementBook) -> list[int]:
        """List the stamps from which on the answer may be another one."""
        key = (evidence.pool.token, book, book.revision)
        found = self._turns.get(key)
        if found is None:
            _make_room(self._turns)
            found = self._turns[key] = sorted(_turns(evidence, book))
        return found

    def _read(self, verifier: Verifier, digest: bytes) -> _Evidence:
        """Read the evidence that a hash names; what was there whole once is not read again."""
        found = self._evidence.get(digest)
        if found is None:
            items, ids = self._log.evidence(digest), self._home.type_ids()
            if ids is not None and len(items) == 1:
                items = ids.open_evidence(items[0]) or items
            certificates, brought = split_evidence(items)
            found = _Evidence(CertificatePool(certificates, limits=verifier.limits), brought)
            _make_room(self._evidence)
            if len(found.pool):
                self._evidence[digest] = found
        return found


def origin_of(commit: Commit) -> Origin:
    """Name the broker that filled a commit, and the evidence for its right."""
    return bytes.fromhex(commit.origin), bytes.fromhex(commit.evidence)


def stamps_of(commit: Commit) -> tuple[int, int]:
    """Tell the first and the last stamp of what a commit holds."""
    stamps = [stamp for file in commit.files for stamp in (file.first_stamp, file.last_stamp)] or [commit.stamp]
    return min(stamps), max(stamps)


@dataclass(frozen=True, slots=True)
class _Share:
    """One type of a lineage, and its known versions with their own attributes; ``holder`` is as in clauses."""

    definition: EventType
    versions: KnownVersions
    holder: TypeId | None
    inherits: bool


def _lineage(known: Snapshot, event_type: EventType) -> tuple[_Share, ...]:
    """List a type and those that known versions of it extend."""
    found: dict[TypeId, dict[TypeName, EventType]] = {event_type.type_id: {}}
    for verified in known.versions(event_type.type_id):
        for item in verified.lineage:
            found.setdefault(item.definition.type_id, {})[item.definition.name] = item.definition
    for type_id, definitions in found.items():
        definitions.update({item.definition.name: item.definition for item in known.versions(type_id)})
    return tuple(
        _Share(
            next(iter(definitions.values()), event_type), versions_of(definitions.values()),
            None if type_id == event_type.type_id else type_id, len(found) > 1,
        )
        for type_id, definitions in found.items()
    )  # fmt: skip


def _judge(
    verifier: Verifier,
    lineage: tuple[_Share, ...],
    origin: bytes,
    evidence: _Evidence,
    phase: tuple[int, int],
    first: int,
) -> Judged:
    stamp = max(first, phase[0])
    at, pool = _EPOCH + timedelta(milliseconds=min(stamp, _LATEST)), evidence.pool
    found: list[Clause] = []
    for share in lineage:
        try:
            clauses = _clauses(verifier, share, origin, evidence, at)
        except UncheckedError as error:
            return Judged(doubt=error.code)
        except MaiaError:
            # SECURITY: what is wrong with another party's object is that party's refusal, not this reader's doubt.
            clauses = ()
        if not clauses and share.holder is None:
            return Judged()
        found += clauses
    chain = found[0].chain
    giver = pool.get(chain[-1]).body.issuer.key_id.hex() if chain else ""
    return Judged((Tenure(*phase, tuple(found)),), giver=giver)


def _clauses(verifier: Verifier, share: _Share, origin: bytes, evidence: _Evidence, at: datetime) -> tuple[Clause, ...]:
    """Derive what an origin might set of one type at an instant.

    Raises:
        UncheckedError: It cannot be told yet.
        MaiaError: It has no right.
    """
    definition, versions, principal = share.definition, share.versions, KeyHash(KeyId(origin))
    requests = requests_for(Action.PUBLISH, definition, any_version=True, versions=versions)
    pool, brought = evidence.pool, evidence.brought
    rights = (
        verifier.clauses(request, principal=principal, evidence=pool, at=at, hindsight=brought) for request in requests
    )
    clauses = clauses_for(Action.PUBLISH, definition, rights, versions)
    if share.holder is None and not all(versions.knows(clause.cells.version) for clause in clauses):
        raise UncheckedError("a right on a version that is not known here", code="UNKNOWN_VERSION")
    for request in () if clauses else requests:
        verifier.verify(request, principal=principal, evidence=pool, at=at, hindsight=brought)
    if not share.inherits:
        return clauses
    return confined(clauses, (uid for _, uids in versions.uids for uid in uids), holder=share.holder)


def _turns(evidence: _Evidence, book: StatementBook) -> set[int]:
    found: set[int] = set()
    for certificate in evidence.pool:
        period = certificate.body.period
        found.update(milliseconds(start) for start in (period.not_before,) if start is not None)
        found.update(milliseconds(end) + 1 for end in (period.not_after,) if end is not None)
        for test in certificate.body.tests:
            if test.kind is TestKind.ONE_TIME:
                continue
            for body in (*book.lists(test.signer.key_id, test.kind), *evidence.lists(test)):
                found.update(milliseconds(turn) for turn in (body.starts, body.ends) if turn is not None)
                if certificate.certificate_id in body.certificates:
                    found.add(body.moments()[certificate.certificate_id])
    return found


def _both(ours: Iterable[Tenure], others: Iterable[Tenure]) -> Iterator[Tenure]:
    """Give the parts of tenures for which there were others as well."""
    others = tuple(others)
    for mine in ours:
        for other in others:
            first, end = max(mine.first, other.first), min(mine.end, other.end)
            if first < end:
                yield Tenure(first, end, mine.clauses)


def _make_room(memory: MutableMapping[Any, Any]) -> None:
    if len(memory) >= _MAX_ORIGINS:
        memory.clear()
