"""Plans of a domain: what a publisher may send and a subscriber may see, compiled for the workers.

This is the control plane's last step. Everything here asks the verifier through the broker's sessions; the plans that
come out hold clauses and references, never a key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from maia.authority import Action, CertificatePool, Challenge, Request, Verifier, ask_network, ask_type
from maia.domain.fetched import Fetcher
from maia.domain.grounds import Grounds
from maia.domain.keys import ensure_keys
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.snapshot import Snapshot
from maia.encryption import Tolerance
from maia.errors import DeniedError, MaiaError, UncheckedError, VerificationError
from maia.events import EventType, TypeName
from maia.home import Home
from maia.kernel import (
    FOREVER,
    Clause,
    DeliverPlan,
    Origin,
    PublishPlan,
    Sealing,
    Subscription,
    clauses_from,
    milliseconds,
)
from maia.log import Commit, LogDirectory
from maia.principals import CertificateId, KeyHash, KeyId, PublicKey

MAX_EVENTS = 16_384
"""Most events in one parcel, unless the publisher asks for fewer."""
_MAX_ORIGINS = 10_000


@dataclass(frozen=True, slots=True)
class Judged:
    """What an origin may set; nothing when it is proven to have no right, or when ``doubt`` names what is missing.

    ``giver`` is who issued the right to it, in hex; empty for the owner itself.
    """

    clauses: tuple[Clause, ...] = ()
    doubt: str = ""
    giver: str = ""


class Planner:
    """Compiles plans from what a home holds, and remembers which origins were proven on which evidence."""

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
        self._origins: dict[tuple[object, ...], Judged] = {}
        self._pools: dict[bytes, CertificatePool] = {}
        self._grounds = Grounds(home)

    def publish(
        self,
        known: Snapshot,
        name: TypeName,
        client: PublicKey,
        *,
        publication: str,
        at: datetime,
        max_events: int = MAX_EVENTS,
    ) -> PublishPlan:
        """Advertise for a client and compile what its rows will go through.

        Args:
            known: The home's evidence.
            name: The version that the rows have.
            client: Whose rows.
            publication: Names the publication; the same after a retry.
            at: Now.
            max_events: Most events in one parcel.

        Raises:
            MaiaError: The type is unknown, or the client or the broker has no right.
        """
        home, sessions, version = self._home, known.sessions, name.version.text
        challenge = self._asked(known, client, Action.PUBLISH, name, at=at)
        advertised = sessions.advertise(client, name.type_id, version, known.pool, at=at, challenge=challenge)
        event_type, clauses = advertised.event_type, advertised.clauses
        ensure_keys(home, self._own, event_type, at=at)
        certificates, own = self._own_right(known, event_type, at)
        ids, stamp = home.type_ids(), milliseconds(at)
        if ids is not None:
            certificates = (ids.seal_evidence(certificates, stamp),)
        sealing = Sealing(
            type_id=event_type.type_id if ids is None else ids.at(event_type.type_id, stamp),
            key_type=event_type.type_id,
            mode=event_type.options.encryption,
            evidence=self._log.put_evidence(certificates),
            padding=event_type.options.padding,
        )
        return PublishPlan(
            publication=publication,
            principal=client.fingerprint,
            definition=known.definition(name.type_id, version),
            clauses=clauses,
            sealing=sealing,
            own=own,
            max_events=max_events,
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

        Raises:
            UncheckedError: Something on which the right stood before is missing here: ``CERTIFICATE_MISSING``,
                ``CLIENT_KEY_CHANGED``.
            MaiaError: The type is unknown, the client has no right, or the filter is refused.
        """
        sessions = known.sessions
        sessions.unsubscribe(identity)  # whoever had the name before had it from this home too
        lost = self._grounds.lost(holder, name.type_id, client, known.pool, at=at)
        if lost == "CLIENT_KEY_CHANGED" and not proven:  # SECURITY: a file that was exchanged is nobody's proof
            raise _in_doubt(holder, lost)
        challenge = self._asked(known, client, Action.SUBSCRIBE, name, at=at)
        try:
            made = sessions.subscribe(
                identity, client, name.type_id, name.version.text, where, known.pool, at=at, challenge=challenge
            )
        except (VerificationError, DeniedError) as error:
            if lost:
                raise _in_doubt(holder, lost) from error
            raise
        if lost == "CERTIFICATE_MISSING":  # SECURITY: less than was proven before would be shown, for ever
            raise _in_doubt(holder, lost)
        self._grounds.note(holder, name.type_id, client, self._proof(known, client, made.clauses, at), known.pool)
        return Subscription(made.identity, made.event_type, made.filter, made.clauses)

    def _asked(
        self, known: Snapshot, client: PublicKey, action: Action, name: TypeName, *, at: datetime
    ) -> Challenge | None:
        """Ask for the answers that this one decision needs."""
        request = ask_type(action, name.owner, name.name, name.version.text)
        return self._fetcher.challenge(known.pool, client, request, known.verifier.statements, at=at)

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
        type_id, tolerance = event_type.type_id, home.tolerance
        return DeliverPlan(
            type_id=type_id,
            kinds=known.sessions.kinds(type_id),
            subscriptions=subscriptions,
            origins=self.origins(known, event_type, commits, at=at),
            arrives=milliseconds(at),
            tolerance=Tolerance(grace=FOREVER, skew=tolerance.skew) if history else tolerance,
            modes=known.sessions.modes(type_id),
            aliases=home.wire_ids(type_id) - {type_id},
        )

    def origins(
        self, known: Snapshot, event_type: EventType, commits: Iterable[Commit], *, at: datetime
    ) -> dict[Origin, tuple[Clause, ...]]:
        """Tell which of the brokers that filled these commits may publish the type, and what they may set.

        The certificates are those that the parcels name by hash, and they must prove the right now. A clause with
        conditions does not count: what holds at another domain cannot be seen from here.
        """
        found: dict[Origin, tuple[Clause, ...]] = {}
        wire = {identity.hex() for identity in self._home.wire_ids(event_type.type_id)}
        for commit in commits:
            if commit.type_id in wire and not commit.wrong:
                origin = (bytes.fromhex(commit.origin), bytes.fromhex(commit.evidence))
                if origin not in found:
                    found[origin] = self.judge(known, event_type, commit, at=at).clauses
        return {origin: clauses for origin, clauses in found.items() if clauses}

    def judge(self, known: Snapshot, event_type: EventType, commit: Commit, *, at: datetime) -> Judged:
        """Tell what the origin of a commit may set, anew only when its evidence, a statement or time could change it.

        A right that cannot be proven yet, since evidence or a statement is missing, is a doubt. Whatever else the
        origin's certificates make the verifier say is a denial, and concerns that origin alone.
        """
        name, book = event_type.name, known.verifier.statements
        origin = (bytes.fromhex(commit.origin), bytes.fromhex(commit.evidence))
        try:
            pool = self._evidence(known.verifier, origin[1])
        except MaiaError:
            return Judged()
        if not len(pool):
            return Judged(doubt="EVIDENCE_MISSING")
        moment = (pool.phase(at), book.phase(at), book.revision)
        key = (origin, name.type_id, known.verifier, pool.token, moment)
        judged = self._origins.get(key)
        if judged is None:
            if len(self._origins) >= _MAX_ORIGINS:
                self._origins.clear()
            request, principal = ask_type(Action.PUBLISH, name.owner, name.name, None), KeyHash(KeyId(origin[0]))
            challenge = self._fetcher.challenge(pool, principal, request, book, at=at)
            judged = self._judge(known.verifier, request, principal, pool, at, challenge)
            if challenge is None:  # what rests on answers to one question is asked again
                self._origins[key] = judged
        return judged

    @staticmethod
    def _judge(
        verifier: Verifier,
        request: Request,
        principal: KeyHash,
        pool: CertificatePool,
        at: datetime,
        challenge: Challenge | None,
    ) -> Judged:
        try:
            rights = verifier.clauses(request, principal=principal, evidence=pool, at=at, challenge=challenge)
            clauses = tuple(clause for clause in clauses_from(rights) if not clause.conditions)
            if not clauses:
                verifier.verify(request, principal=principal, evidence=pool, at=at)
        except UncheckedError as error:
            return Judged(doubt=error.code)
        except MaiaError:
            # SECURITY: what is wrong with another party's object is that party's refusal, not this reader's doubt.
            return Judged()
        chain = clauses[0].chain if clauses else ()
        return Judged(clauses, giver=pool.get(chain[-1]).body.issuer.key_id.hex() if chain else "")

    def _evidence(self, verifier: Verifier, digest: bytes) -> CertificatePool:
        """Read the certificates that a hash names; what was there whole once is not read again."""
        pool = self._pools.get(digest)
        if pool is None:
            certificates, ids = self._log.evidence(digest), self._home.type_ids()
            if ids is not None and len(certificates) == 1:
                certificates = ids.open_evidence(certificates[0]) or certificates
            pool = CertificatePool(certificates, limits=verifier.limits)
            if len(self._pools) >= _MAX_ORIGINS:
                self._pools.clear()
            if len(pool):
                self._pools[digest] = pool
        return pool

    def _own_right(
        self, known: Snapshot, event_type: EventType, at: datetime
    ) -> tuple[tuple[bytes, ...], tuple[Clause, ...]]:
        """Return the certificates that prove this broker's right to publish a type, and what it may set.

        Raises:
            VerificationError: It has none.
        """
        name = event_type.name
        request = ask_type(Action.PUBLISH, name.owner, name.name, None)
        broker = self._home.broker.public_key
        challenge = self._fetcher.challenge(known.pool, broker, request, known.verifier.statements, at=at)
        rights = known.verifier.clauses(
            request, principal=broker, evidence=known.pool, at=at, challenge=challenge
        )  # fmt: skip
        if not rights:
            known.verifier.verify(request, principal=broker, evidence=known.pool, at=at)
        found = {item: known.pool.get(item).raw for right in rights for item in right.proof.certificate_ids()}
        return tuple(found.values()), clauses_from(rights)


def _in_doubt(holder: str, code: str) -> UncheckedError:
    what = "is another one" if code == "CLIENT_KEY_CHANGED" else "stood on a certificate that is missing here"
    subject = "key" if code == "CLIENT_KEY_CHANGED" else "right"
    return UncheckedError(f"the {subject} of `{holder}` {what}, so nothing is known of it", code=code)
