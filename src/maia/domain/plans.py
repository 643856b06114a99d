"""Plans of a domain: what a publisher may send and a subscriber may see, compiled for the workers.

This is the control plane's last step. Everything here asks the verifier through the broker's sessions; the plans that
come out hold clauses and references, never a key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from maia.authority import Action, Challenge, ask_network
from maia.domain.decisions import DecisionRecords, recording
from maia.domain.fetched import Fetcher
from maia.domain.grounds import Grounds
from maia.domain.keys import ensure_keys
from maia.domain.label_files import FrameLabels, screened_clauses
from maia.domain.memberships import GroupKeys
from maia.domain.origins import Origins
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.own_right import prove_own_right
from maia.domain.snapshot import Snapshot
from maia.domain.statements import lists_behind
from maia.encryption import Compression
from maia.errors import ChainError, DeniedError, UncheckedError, VerificationError
from maia.events import EventType, TypeId, TypeName
from maia.home import Home
from maia.kernel import (
    CONDITION_FALSE,
    FOREVER,
    Clause,
    DeliverPlan,
    PlanTerm,
    PublishPlan,
    Sealing,
    Subscription,
    clauses_for,
    confined,
    milliseconds,
    requests_for,
    tests_behind,
)
from maia.log import Commit, LogDirectory
from maia.principals import CertificateId, PublicKey

MAX_EVENTS = 16_384
"""Most events in one parcel, unless the publisher asks for fewer."""


@dataclass(frozen=True, slots=True)
class Advertised:
    """What a client that advertises a version may set, and what proves that its broker may as well.

    Attributes:
        event_type: The version.
        clauses: The client's, without what the broker may not set.
        evidence: What proves the broker's right to later readers.
        own: The broker's clauses.
        decision: What the audit is told of how it was decided.
    """

    event_type: EventType
    clauses: tuple[Clause, ...]
    evidence: tuple[bytes, ...]
    own: tuple[Clause, ...]
    decision: str = ""


class Planner:
    """Compiles plans from what a home holds.

    Attributes:
        origins: Judges the brokers behind commits.
        grounds: On what rights stood before.
        records: Writes decisions down; ``None`` while one is repeated.
    """

    def __init__(self, home: Home, log: LogDirectory, own: OwnKeyManager, fetcher: Fetcher) -> None:
        """Plan for a home, over a log.

        Args:
            home: The home.
            log: The log.
            own: The key manager that the home runs itself.
            fetcher: Asks those who have to confirm certificates for one decision.
        """
        self._home = home
        self._fetcher = fetcher
        self._log = log
        self._own = own
        self.origins = Origins(home, log)
        self.grounds = Grounds(home)
        self.records: DecisionRecords | None = DecisionRecords(home)

    def advertise(
        self, known: Snapshot, name: TypeName, client: PublicKey, *, said: str | None, at: datetime
    ) -> Advertised:
        """Prove that a client and this broker may publish a version; nothing is kept, and no key is made.

        Args:
            known: The home's evidence.
            name: The version.
            client: Who will publish.
            said: What it says that it will publish, as a filter.
            at: Now.

        Raises:
            MaiaError: The type is unknown, the client or the broker has no right, or what is said is out of its bounds.
        """
        with recording(self.records, known, name, client, action="publish", filter_=said, at=at) as told:
            challenge = self._asked(known, client, Action.PUBLISH, name, at=at)
            told.answers = bool(challenge)
            made = known.sessions.advertise(
                client, name.type_id, name.version.text, known.pool, at=at, filter_text=said, challenge=challenge
            )
            evidence, own = self._own_rights(known, made.event_type, made.clauses, at)
        # What the broker may not set is left out, as what the client may not: no reader would take it.
        held = {clause.holder for clause in own}
        clauses = tuple(clause for clause in made.clauses if clause.holder in held)
        return Advertised(made.event_type, clauses, evidence, own, told.granted(made.event_type, clauses, own))

    def check_rights(
        self, known: Snapshot, definition: EventType, client: PublicKey, action: Action, *, at: datetime
    ) -> None:
        """Prove that a client and this broker have a right on a definition, which the home need not keep yet.

        Raises:
            VerificationError: One of them has none.
        """
        known.sessions.check_connected(client, known.pool, at=at)
        broker, book = self._home.key(self._home.config.broker), known.verifier.statements
        for request in requests_for(action, definition):
            question = self._fetcher.challenge(known.pool, client, request, book, at=at)
            known.verifier.verify(request, principal=client, evidence=known.pool, at=at, challenge=question)
            known.verifier.verify(request, principal=broker, evidence=known.pool, at=at)

    def publish(
        self,
        known: Snapshot,
        name: TypeName,
        client: PublicKey,
        *,
        publication: str,
        at: datetime,
        max_events: int = MAX_EVENTS,
        advertise: str | None = None,
    ) -> PublishPlan:
        """Advertise for a client and compile what its rows will go through.

        Args:
            known: The home's evidence.
            name: The version that the rows have.
            client: Whose rows.
            publication: Names the publication; the same after a retry.
            at: Now.
            max_events: Most events in one parcel.
            advertise: What the client says that it will publish, as a filter; it is held to it.

        Raises:
            MaiaError: The type is unknown, or the client or the broker has no right.
        """
        home, sessions, version = self._home, known.sessions, name.version.text
        made = self.advertise(known, name, client, said=advertise, at=at)
        event_type, clauses, evidence, own = made.event_type, made.clauses, made.evidence, made.own
        for definition in sessions.lineage(event_type):
            if definition.type_id == event_type.type_id or any(one.holder == definition.type_id for one in clauses):
                ensure_keys(home, self._own, definition, at=at)
        ends = sessions.ends(client, event_type, clauses, known.pool, at=at)
        ids, stamp = home.type_ids(), milliseconds(at)
        if ids is not None:
            evidence = (ids.seal_evidence(evidence, stamp),)
        sealing = Sealing(
            type_id=event_type.type_id if ids is None else ids.at(event_type.type_id, stamp),
            key_type=event_type.type_id,
            mode=event_type.options.encryption,
            evidence=self._log.put_evidence(evidence),
            padding=event_type.options.padding,
            compression=Compression.ZSTD if event_type.options.compression else Compression.NONE,
            descent=known.sessions.descent(event_type.type_id),
        )
        return PublishPlan(
            publication=publication,
            principal=client.fingerprint,
            definition=known.definition(name.type_id, version),
            clauses=clauses,
            sealing=sealing,
            term=self.term(known, (*clauses, *own), (ends, *(item.until for item in own)), at=at),
            own=own,
            max_events=max_events,
            parents=known.parents(name.type_id, version),
            decision=made.decision,
        )

    def subscription(
        self,
        known: Snapshot,
        name: TypeName,
        client: PublicKey,
        *,
        holder: str,
        identity: str,
        where: str,
        at: datetime,
        proven: bool = False,
        frames: FrameLabels | None = None,
    ) -> Subscription:
        """Subscribe for a client, with the clauses that it has now.

        Args:
            known: The home's evidence.
            name: The version that it wants.
            client: Whose subscription.
            holder: What the client's key is called in the home.
            identity: Names the subscription.
            where: Its filter.
            at: Now.
            proven: Whether somebody proved to hold the client's key, which may be a new one then.
            frames: By what a labelled frame that reads was labelled; it checks again what leaves it.

        Raises:
            UncheckedError: Something on which the right stood before is missing here: ``CERTIFICATE_MISSING``,
                ``CLIENT_KEY_CHANGED``.
            MaiaError: The type is unknown, the client has no right, or the filter is refused.
        """
        sessions = known.sessions
        with recording(
            self.records, known, name, client, action="subscribe", holder=holder, filter_=where or None, proven=proven,
            frames=frames, at=at,
        ) as told:  # fmt: skip
            sessions.unsubscribe(identity)  # whoever had the name before had it from this home too
            lost = self.grounds.lost(holder, name.type_id, client, known.pool, at=at)
            told.ground = self.grounds.known(holder, name.type_id) if lost else None
            if lost == "CLIENT_KEY_CHANGED" and not proven:  # SECURITY: a file that was exchanged is nobody's proof
                raise _in_doubt(holder, lost)
            try:
                challenge = self._asked(known, client, Action.SUBSCRIBE, name, at=at)
                told.answers = bool(challenge)
                made = sessions.subscribe(
                    identity, client, name.type_id, name.version.text, where, known.pool, at=at, challenge=challenge
                )
            except (VerificationError, DeniedError) as error:
                if lost:
                    raise _in_doubt(holder, lost) from error
                raise
            if lost == "CERTIFICATE_MISSING":  # SECURITY: less than was proven before would be shown, for ever
                raise _in_doubt(holder, lost)
            self.grounds.note(holder, name.type_id, client, self._proof(known, client, made.clauses, at), known.pool)
            ends = sessions.ends(client, made.event_type, made.clauses, known.pool, at=at)
            # SECURITY: every read goes through here, so what may not flow to the client is closed for all of them.
            clauses = screened_clauses(
                self._home, known, made.clauses, made.event_type, holder, at=at, filter_=made.filter, frames=frames
            )
        said = told.granted(made.event_type, clauses)
        return Subscription(made.identity, made.event_type, made.filter, clauses, ends, said)

    def _asked(
        self, known: Snapshot, client: PublicKey, action: Action, name: TypeName, *, at: datetime
    ) -> dict[TypeName, Challenge]:
        """Ask for the answers that this one decision needs, on the type and on those that it extends."""
        event_type = known.sessions.event_type(name.type_id, name.version.text, at=at)
        asked = (
            (item.name, self._fetcher.challenge(known.pool, client, request, known.verifier.statements, at=at))
            for item in known.sessions.lineage(event_type)
            for request in requests_for(action, item)[-1:]  # of a super-topic, only lists can confirm the right
        )
        return {version: challenge for version, challenge in asked if challenge is not None}

    @staticmethod
    def _proof(
        known: Snapshot, client: PublicKey, clauses: tuple[Clause, ...], at: datetime
    ) -> frozenset[CertificateId]:
        """Name the certificates by which a client may connect and see."""
        found = {identity for clause in clauses for identity in clause.chain}
        if known.sessions.network is not None:
            request = ask_network(Action.CONNECT, *known.sessions.network)
            grant = known.verifier.verify(request, principal=client, evidence=known.pool, at=at)
            found |= {item.certificate_id for item in grant.certificates}
        return frozenset(found)

    def deliver(
        self,
        known: Snapshot,
        subscriptions: tuple[Subscription, ...],
        commits: Iterable[Commit],
        *,
        at: datetime,
        history: bool = True,
    ) -> DeliverPlan:
        """Compile what the subscriptions to one type will see of these commits.

        Args:
            known: The home's evidence.
            subscriptions: All to the same type.
            commits: The part of the log that is read.
            at: Now; rights are those of this instant.
            history: Read old parcels with every key that is still held, however long ago they were replaced.
        """
        event_type, home = subscriptions[0].event_type, self._home
        clauses = [clause for item in subscriptions for clause in item.clauses]
        if known.sessions.serving is not None:  # what the broker may show ends as well
            clauses += known.sessions.serving.own_clauses(event_type, known.pool, at=at)
        type_id, sessions = event_type.type_id, known.sessions
        descent, children = sessions.descent(type_id), sessions.children(type_id)
        tolerance = GroupKeys(home).tolerance(type_id, *descent.holders.values())
        return DeliverPlan(
            type_id=type_id,
            kinds=sessions.kinds(type_id),
            subscriptions=subscriptions,
            term=self.term(known, clauses, (item.until for item in subscriptions), at=at),
            origins=self.origins.of_commits(known, event_type, commits),
            arrives=milliseconds(at),
            tolerance=replace(tolerance, grace=FOREVER) if history else tolerance,
            modes=sessions.modes(type_id).union(*(sessions.modes(child) for child in children)),
            aliases=home.wire_ids(type_id) - {type_id},
            descent=descent,
            children={alias: seen for child, seen in children.items() for alias in home.wire_ids(child)},
        )

    def term(
        self, known: Snapshot, clauses: Iterable[Clause], ends: Iterable[datetime | None], *, at: datetime
    ) -> PlanTerm:
        """Tell from when to when a plan may be worked by that leans on these clauses."""
        return PlanTerm.of(
            ends, made=at, age=self._home.plan_age, skew=timedelta(milliseconds=self._home.tolerance.skew),
            rests_on=tests_behind(clauses, known.pool),
        )  # fmt: skip

    def _own_rights(
        self, known: Snapshot, event_type: EventType, clauses: Iterable[Clause], at: datetime
    ) -> tuple[tuple[bytes, ...], tuple[Clause, ...]]:
        """Return what proves this broker's rights on a type and on those that it extends; and what it may set.

        Raises:
            VerificationError: It has no right on the type itself, or the conditions of its right do not hold.
        """
        held, (first, *extended) = tuple(clauses), known.sessions.lineage(event_type)
        mine = [clause for clause in held if clause.holder is None]
        evidence, own = self._own_right(known, first, mine, at, confine=bool(extended))
        for parent in extended:
            asked = [clause for clause in held if clause.holder == parent.type_id]
            if asked:
                try:
                    shown, more = self._own_right(known, parent, asked, at, confine=True, holder=parent.type_id)
                except UncheckedError:
                    raise
                except VerificationError:
                    continue
                evidence, own = (*evidence, *(raw for raw in shown if raw not in evidence)), (*own, *more)
        return evidence, own

    def _own_right(
        self,
        known: Snapshot,
        definition: EventType,
        clauses: Iterable[Clause],
        at: datetime,
        *,
        confine: bool = False,
        holder: TypeId | None = None,
    ) -> tuple[tuple[bytes, ...], tuple[Clause, ...]]:
        """Return what proves this broker's right to publish a type, now and to later readers; and what it may set.

        Conditions that every clause of the client has as well are asked of the client. Others are asked of the broker.

        Raises:
            VerificationError: It has none, or the conditions of its right do not hold.
        """
        pool = known.pool
        requests = requests_for(Action.PUBLISH, definition)
        # Where a decision is repeated there is no private key; otherwise it is the key that will sign.
        broker = self._home.broker.public_key if self.records else self._home.key(self._home.config.broker)
        grants = [prove_own_right(known.verifier, request, broker, pool, at=at) for request in requests]
        rights = [known.verifier.clauses(request, principal=broker, evidence=pool, at=at) for request in requests]
        asked = frozenset.intersection(*(frozenset(clause.conditions) for clause in clauses))
        left: Iterable[Clause] = (
            replace(clause, conditions=tuple(text for text in clause.conditions if text not in asked))
            for clause in clauses_for(Action.PUBLISH, definition, rights)
        )
        if confine:
            left = confined(left, definition.uids, holder=holder)
        own = known.sessions.guarded(left, broker, Action.PUBLISH, definition.name.name, pool, at=at)
        if not own:
            raise ChainError("the conditions of the broker's own right do not hold", code=CONDITION_FALSE)
        found = {item.certificate_id: item.raw for grant in grants for item in grant.certificates}
        proofs = [right.proof for derived in rights for right in derived]
        found |= {item: pool.get(item).raw for proof in proofs for item in proof.certificate_ids()}
        tests = (test for identity in found for test in pool.get(identity).body.tests)
        return (*found.values(), *lists_behind(tests, known.verifier.statements, at=at)), own


def _in_doubt(holder: str, code: str) -> UncheckedError:
    what = "is another one" if code == "CLIENT_KEY_CHANGED" else "stood on a certificate that is missing here"
    subject = "key" if code == "CLIENT_KEY_CHANGED" else "right"
    return UncheckedError(f"the {subject} of `{holder}` {what}, so nothing is known of it", code=code)
