"""What the rights of a principal come to now: the clauses of a version, or a right that is about no cells.

Rules kept here:

- where there is a network, nothing is held by whoever may not connect to it (`SessionRights.held`, `prove`);
- a clause with conditions counts only while all of them hold. Those that depend on the moment are asked here at each
  request; the clause then carries a guard that asks the others when data meets it;
- clauses are derived anew only when a statement arrived or the time of a certificate or statement came;
- a right that is in doubt is never taken for no right.

Whose client somebody is, and what its broker may show, is asked above (`Sessions.granted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from maia.authority import (
    SPEAKS_OF_CLOSED,
    Action,
    CertificatePool,
    Challenge,
    Grant,
    Request,
    Verifier,
    ask_network,
)
from maia.errors import ChainError, UncheckedError, VerificationError
from maia.events import EventType, TypeName
from maia.kernel.broker_places import Network
from maia.kernel.clauses import Clause
from maia.kernel.conditions import CONDITION_FALSE, MakeSurroundings, NoSurroundings, make_guard
from maia.kernel.descent import confined
from maia.kernel.known_types import KnownTypes
from maia.kernel.topics import clauses_for, requests_for
from maia.kernel.whole_rights import prove_whole
from maia.principals import KeyHash, PublicKey

Challenges = Mapping[TypeName, Challenge]
"""What was asked for one decision, by the version that the right is on: that of the session, and those it extends."""


@dataclass(slots=True)
class SessionRights(KnownTypes):
    """Everybody's rights, by the evidence and at the moment that are given.

    Attributes:
        verifier: Proves rights.
        network: Whose members alone are served, when there is one.
        surroundings: Builds what conditions may ask here; it travels with the clauses to wherever data meets them.
    """

    verifier: Verifier
    network: Network | None = None
    surroundings: MakeSurroundings = NoSurroundings
    _clauses: dict[tuple[object, ...], tuple[Clause, ...]] = field(default_factory=dict)

    def check_connected(
        self, principal: PublicKey | KeyHash, evidence: CertificatePool, *, at: datetime
    ) -> datetime | None:
        """Refuse a client that may not connect to this broker's network, when it belongs to one.

        Returns:
            The first instant at which what proves it carries no longer, statements being as they are.
        """
        if self.network is None:
            return None
        request = ask_network(Action.CONNECT, *self.network)
        return self._prove(principal, Action.CONNECT, request, evidence, at=at)[1]

    def prove(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        request: Request,
        evidence: CertificatePool,
        *,
        at: datetime,
        type_name: str = "",
    ) -> Grant:
        """Prove a right that is about no cells, such as to install, with its conditions and the right to connect.

        Raises:
            VerificationError: It is not proven, a condition does not hold now, or it waits for an event.
        """
        self.check_connected(principal, evidence, at=at)
        return self._prove(principal, action, request, evidence, at=at, type_name=type_name)[0]

    def _prove(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        request: Request,
        evidence: CertificatePool,
        *,
        at: datetime,
        type_name: str = "",
    ) -> tuple[Grant, datetime | None]:
        return prove_whole(
            principal, action, request, evidence, type_name=type_name, verifier=self.verifier, make=self.surroundings,
            at=at,
        )  # fmt: skip

    def held(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        event_type: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenges | None = None,
    ) -> tuple[Clause, ...]:
        """Return a principal's clauses, whoever serves it, if it may connect; raise why when there are none."""
        self.check_connected(principal, evidence, at=at)
        return self.require_clauses(principal, action, event_type, evidence, at=at, challenge=challenge)

    def require_clauses(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        event_type: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenges | None = None,
    ) -> tuple[Clause, ...]:
        """Return a principal's clauses, or raise what the verifier says when there are none."""
        clauses = self.clauses(principal, action, event_type, evidence, at=at, challenge=challenge)
        asked = challenge or {}
        own, *extended = self.lineage(event_type)
        if not clauses:
            question, requests = asked.get(own.name), requests_for(action, own)
            for request in requests:
                self.verifier.verify(request, principal=principal, evidence=evidence, at=at, challenge=question)
            held = self.derived(principal, action, own, evidence, at=at, challenge=question)
            if extended and held and not confined(held, own.uids, holder=None):
                raise ChainError(
                    f"the right on `{own.name.name}` opens none of its own attributes, or speaks of inherited ones",
                    code=SPEAKS_OF_CLOSED,
                )
            if len(requests) > 1:  # each holds alone
                raise ChainError("the rights on the topic and its super-topics leave nothing", code=CONDITION_FALSE)
            raise ChainError("the conditions of the right do not hold", code=CONDITION_FALSE)
        for parent in extended:
            if all(clause.holder != parent.type_id for clause in clauses):
                self.check_doubt(principal, action, parent, evidence, at=at, challenge=asked.get(parent.name))
        return clauses

    def check_doubt(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        definition: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenge | None,
    ) -> None:
        """Raise when a right on a parent is in doubt: to show nulls for what comes later would be to lose it."""
        try:
            for request in requests_for(action, definition):
                self.verifier.verify(request, principal=principal, evidence=evidence, at=at, challenge=challenge)
        except UncheckedError:
            raise
        except VerificationError:
            return  # no right, and what is inherited stays closed

    def clauses(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        event_type: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenges | None = None,
    ) -> tuple[Clause, ...]:
        """Return a principal's clauses for an action at an instant, those whose conditions hold.

        With challenges, clauses that rest on their answers count as well, this once.
        """
        lineage = self.lineage(event_type)
        found: list[Clause] = []
        for definition in lineage:
            question = None if challenge is None else challenge.get(definition.name)
            part = self.derived(principal, action, definition, evidence, at=at, challenge=question)
            if len(lineage) > 1:
                holder = None if definition is lineage[0] else definition.type_id
                part = confined(part, definition.uids, holder=holder)
            part = self.guarded(part, principal, action, definition.name.name, evidence, at=at)
            if not part and definition is lineage[0]:
                return ()
            found += part
        return tuple(found)

    def derived(
        self,
        principal: PublicKey | KeyHash,
        action: Action,
        definition: EventType,
        evidence: CertificatePool,
        *,
        at: datetime,
        challenge: Challenge | None,
    ) -> tuple[Clause, ...]:
        """Derive a principal's clauses on one type, conditions unasked."""
        key = (principal, action, definition.name, *self.moment(evidence, at=at))
        found = self._clauses.get(key) if challenge is None else None
        if found is None:
            rights = (
                self.verifier.clauses(request, principal=principal, evidence=evidence, at=at, challenge=challenge)
                for request in requests_for(action, definition)
            )
            found = clauses_for(action, definition, rights)
            if challenge is None:
                if len(self._clauses) > 10_000:
                    self._clauses.clear()
                self._clauses[key] = found
        return found

    def guarded(
        self,
        clauses: Iterable[Clause],
        principal: PublicKey | KeyHash,
        action: Action,
        type_name: str,
        evidence: CertificatePool,
        *,
        at: datetime,
    ) -> tuple[Clause, ...]:
        """Put clauses with conditions under guards, and leave out those whose conditions do not hold now."""
        found: list[Clause] = []
        for clause in clauses:
            if not clause.conditions:
                found.append(clause)
                continue
            guard = make_guard(
                clause.conditions, clause.chain, action=action, principal=principal.key_id, event_type=type_name,
                evidence=evidence, make=self.surroundings, at=at,
            )  # fmt: skip
            if guard is not None:
                found.append(replace(clause, guard=guard))
        return tuple(found)

    def moment(self, evidence: CertificatePool, *, at: datetime) -> tuple[object, ...]:
        """Name what decisions may lean on without being asked again: evidence, lists, and their times."""
        book = self.verifier.statements
        return (evidence.token, evidence.phase(at), book.phase(at), book.revision)
