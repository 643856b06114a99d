"""Whom a broker serves, and with what: clients of its own domain, within its own right.

Rules kept here:

- 4.02: a client uses a broker of its own domain. A broker's domains are those that call it one of their ``brokers``, a
  client's those that call it one of their ``clients``. Whom nobody calls so belongs to the domain from which its right
  to connect comes, or without a network its right to the type: the nearest one on the chain. When the two have no
  domain in common the client is not served (``NOT_LOCAL``);
- not everybody's name counts there. A broker is named by the owner of the type or the network, by whoever stands above
  it on a chain of its own rights, or by the domain of its own home; a client by the owners, by whoever stands above it,
  or by a domain that the broker belongs to. Nobody names itself. A foreign name adds nothing and replaces nothing;
- where an owner or the domain of the home names somebody, their word stands. Anybody else above it only adds: whoever
  passes a right on to a broker or a client and gives it a name takes it from nobody;
- who passes a right on is a domain, for this, when it owns the type or the network, names members, or may let others
  connect to the network (C42). So in a home where nobody is named and no network is set all belong to the owner;
- 4.01: a broker of a domain that names sub-domains as well serves nobody (``DOMAIN_KIND``);
- 4.05: a broker acts for its domain and shows no cell that it may not open itself: a client's clause is cut down to
  what the broker's own clauses hold, with their demands and conditions; where nothing is left the client is not served
  (``BROKER_LACKS_RIGHT``). Its right to publish counts as well as that to subscribe, as when it asks for keys: whoever
  seals a column can open it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import Action, CertificatePool, covers, uids_tag
from maia.errors import DeniedError
from maia.events import TOPIC, EventType
from maia.kernel.clauses import Clause
from maia.kernel.member_names import namers_in
from maia.kernel.neighbourhood import Chains, Holder, Neighbourhood
from maia.principals import CertificateId, KeyId, PublicKey

if TYPE_CHECKING:
    from maia.kernel.sessions import Sessions

_OPENING = (Action.SUBSCRIBE, Action.PUBLISH)
"""The rights that bring the keys of a column."""
_MOST_KEPT = 10_000


class Serving:
    """The rules for one broker and its sessions; what was found holds while evidence, lists and their times do."""

    def __init__(self, sessions: Sessions, broker: PublicKey) -> None:
        """Serve for a broker.

        Args:
            sessions: Whose clients.
            broker: Who serves them.
        """
        self._sessions = sessions
        self._broker = broker
        self._issuers: tuple[object, dict[str, tuple[KeyId, ...]]] | None = None
        self._local: set[tuple[object, ...]] = set()

    def own_clauses(self, event_type: EventType, evidence: CertificatePool, *, at: datetime) -> tuple[Clause, ...]:
        """Return the clauses by which the broker itself may open cells, so that it may show them."""
        ask = self._sessions.clauses
        held = (ask(self._broker, action, event_type, evidence, at=at) for action in _OPENING)
        found = (clause for clauses in held for clause in clauses)
        if not event_type.options.topic:
            return tuple(found)
        topic = event_type.by_name(TOPIC).uid  # every event under a topic says its name, so it chooses no rows
        return tuple(_without_demand(clause, topic) for clause in found)

    def check_local(
        self,
        principal: Holder,
        action: Action,
        event_type: EventType,
        clauses: Iterable[Clause],
        evidence: CertificatePool,
        *,
        at: datetime,
    ) -> None:
        """Refuse a client of another domain than the broker's.

        Raises:
            DeniedError: ``NOT_LOCAL``.
            ChainError: The domain is both kinds of group: ``DOMAIN_KIND``.
        """
        if self._broker.key_id == principal.key_id:
            return
        # Every chain counts: which of two that say the same was found first must not decide who is served.
        chains = _chains_of(clauses)
        asked = (principal, action, event_type.name, chains, *self._sessions.moment(evidence, at=at))
        if asked in self._local:
            return
        self._neighbourhood(evidence, at=at).check_local(
            principal, self._broker, event_type.name.owner, client_chains=chains,
            broker_chains=self._own_chains(event_type, evidence, at=at),
        )  # fmt: skip
        if len(self._local) > _MOST_KEPT:
            self._local.clear()
        self._local.add(asked)

    def elsewhere(
        self, principal: Holder, action: Action, event_type: EventType, evidence: CertificatePool, *, at: datetime
    ) -> tuple[Clause, ...]:
        """Tell what the right of somebody who is no client of this broker gives it, at a broker of its own domain.

        Nothing is served by this: that broker decides for itself, and may show less. Of this broker's own clients there
        is nothing to tell, whatever their rights.

        Raises:
            UncheckedError: It cannot be told.
            MaiaError: It has no right, or may not connect.
        """
        if self._broker.key_id == principal.key_id:
            return ()
        clauses = self._sessions.held(principal, action, event_type, evidence, at=at)
        ours = self._neighbourhood(evidence, at=at).is_ours(
            principal, self._broker, event_type.name.owner, client_chains=_chains_of(clauses),
            broker_chains=self._own_chains(event_type, evidence, at=at),
        )  # fmt: skip
        return () if ours else clauses

    def _own_chains(self, event_type: EventType, evidence: CertificatePool, *, at: datetime) -> Chains:
        """List the chains by which the broker may open cells of a type, conditions unasked."""
        derive = self._sessions.derived
        return [
            chain
            for opening in _OPENING
            for clause in derive(self._broker, opening, event_type, evidence, at=at, challenge=None)
            for chain in clause.chains
        ]

    def _neighbourhood(self, evidence: CertificatePool, *, at: datetime) -> Neighbourhood:
        """Look at who belongs to which domain now."""
        if self._issuers is None or self._issuers[0] is not evidence.token:
            self._issuers = (evidence.token, namers_in(evidence))
        there = self._sessions
        return Neighbourhood(
            evidence, verifier=there.verifier, at=at, network=there.network, domain=there.domain,
            issuers=self._issuers[1],
        )  # fmt: skip

    def served(
        self,
        principal: Holder,
        event_type: EventType,
        clauses: tuple[Clause, ...],
        evidence: CertificatePool,
        *,
        at: datetime,
    ) -> tuple[Clause, ...]:
        """Cut a subscriber's clauses down to what the broker may show it, if it may serve it at all.

        Raises:
            UncheckedError: The broker's own right is in doubt, which is not denied.
            DeniedError: ``BROKER_LACKS_RIGHT``, ``NOT_LOCAL``.
            ChainError: The domain is both kinds of group: ``DOMAIN_KIND``.
        """
        if self._broker.key_id == principal.key_id:
            return clauses
        own = self.own_clauses(event_type, evidence, at=at)
        left = within_own(clauses, own, (item.uid for item in event_type.attributes))
        if not left:
            for action in _OPENING:
                self._sessions.check_doubt(self._broker, action, event_type, evidence, at=at, challenge=None)
            raise DeniedError(
                f"the broker `{self._broker.fingerprint}` may not open what the client asks for, so it does not serve "
                "it",
                code="BROKER_LACKS_RIGHT",
            )
        self.check_local(principal, Action.SUBSCRIBE, event_type, clauses, evidence, at=at)
        return left


def _chains_of(clauses: Iterable[Clause]) -> tuple[tuple[CertificateId, ...], ...]:
    """List every chain of somebody's clauses on the type itself."""
    return tuple(chain for clause in clauses if clause.holder is None for chain in clause.chains)


def within_own(clauses: Iterable[Clause], own: Sequence[Clause], uids: Iterable[str]) -> tuple[Clause, ...]:
    """Cut a client's clauses down to the cells that the broker may read itself.

    Args:
        clauses: The client's.
        own: The broker's.
        uids: The attributes of the version in question.
    """
    found, asked = [], tuple(uids)
    for clause in clauses:
        holding = [item for item in own if item.holder == clause.holder and _admits(item, clause)]
        if not holding:
            continue
        opened = [uid for uid in asked if clause.opens(uid)]
        held = {uid: [item for item in holding if item.opens(uid)] for uid in opened}
        left = [uid for uid in opened if held[uid]]
        if opened and not left:
            continue
        ends = [_last(items) for items in held.values() if items] or [_last(holding)]
        until = min((end for end in (clause.until, *ends) if end is not None), default=None)
        cells = clause.cells if len(left) == len(opened) else replace(clause.cells, uids=uids_tag(left))
        found.append(replace(clause, cells=cells, until=until))
    return tuple(found)


def _admits(own: Clause, clause: Clause) -> bool:
    """Tell whether every row that a client's clause admits, at any time, is one that the broker's clause admits."""
    settled = own.guard is not None and not own.guard.conditions  # they hold now, and need no event to be asked
    if not settled and not set(own.conditions) <= set(clause.conditions):
        return False
    demands = dict(clause.constraints)
    return set(own.cells.bounds) <= set(clause.cells.bounds) and all(
        uid in demands and covers(tag, demands[uid]) for uid, tag in own.constraints
    )


def _without_demand(clause: Clause, uid: str) -> Clause:
    """Leave out what a clause demands of one attribute."""
    left = tuple((named, tag) for named, tag in clause.constraints if named != uid)
    return replace(clause, cells=replace(clause.cells, constraints=left))


def _last(clauses: Iterable[Clause]) -> datetime | None:
    """Tell when the last of some clauses ends."""
    ends = [clause.until for clause in clauses]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None
