"""Which key groups of a type a broker may join, until when and why.

A broker is admitted on the very certificates that carry its API requests (16.02). Rules kept here:

- Clients are never members: a member is a broker, of a domain, as `broker_places` proves it.
- A broker joins an attribute's group when it may read or set the attribute. A certificate for one version opens only
  the attributes of that version (C15). What a version inherits has the groups of the type that it comes from, and no
  others: versions come here with their own attributes.
- The key for whole events opens every attribute of every version, so its group takes a broker only on one chain that
  opens them all and is bound to no version (C15).
- Keys open columns, not rows. A clause with conditions opens no group: whether they hold elsewhere cannot be seen, and
  a key once given stays given. Nor does one with a constraint on rows, unless the link that set it says that the
  receiving domain is trusted to enforce it; its rows are served by a broker that holds the keys.
- On a network the broker also proves ``connect``.
- An admission ends with the first of: the chain's period, the names' periods, and the statements that vouch for them,
  as far as the accepted lists reach. Without a statement that is needed there is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from maia.authority import (
    Action,
    Budget,
    CellRight,
    CertificatePool,
    Derived,
    Grant,
    StatementBook,
    Verifier,
    ask_network,
    ask_type,
    cell_rights,
    intersect,
    is_nothing,
    parse_tag,
    permits,
)
from maia.encoding import Sexp
from maia.encryption import WHOLE_EVENT, KeyGroupId
from maia.errors import ChainError, UncheckedError, UsageError, VerificationError
from maia.events import EncryptionMode, EventType
from maia.kernel.broker_places import BrokerCase, BrokerPlaces, Network
from maia.kernel.clauses import versions_of
from maia.kernel.stamps import milliseconds
from maia.principals import CertificateId, Period, PublicKey

MAX_VERSIONS = 1_000


MAX_ADMISSIONS = 10_000


_VERSION = 3

_STEPS_A_VERSION = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdmission:
    """One chain that lets a broker into one key group.

    Attributes:
        group: Which group.
        valid_from: When the certificates began to be valid, in milliseconds; ``None`` without a beginning.
        valid_to: When the admission ends (exclusive), in milliseconds; ``None`` without an end.
        certificates: All that it rests on, names included.
        tested: Whether it rests on validity statements, which say nothing about the time before them.
    """

    group: KeyGroupId
    valid_from: int | None
    valid_to: int | None
    certificates: tuple[CertificateId, ...]
    tested: bool

    @property
    def credential(self) -> bytes:
        """What tells this admission from another of the same broker: the certificates behind it."""
        return hashlib.sha256(b"".join(sorted(self.certificates))).digest()


def admit_broker(
    broker: PublicKey,
    versions: Iterable[EventType],
    evidence: CertificatePool,
    *,
    verifier: Verifier,
    at: datetime,
    network: Network | None = None,
    actions: tuple[Action, ...] = (Action.SUBSCRIBE, Action.PUBLISH),
    budget: Budget | None = None,
) -> tuple[GroupAdmission, ...]:
    """Tell which key groups of a type a broker may join now, and on which chains.

    That the broker holds its key was proven before (see `maia.encryption.verify_group_request`).

    Args:
        broker: Who wants to join.
        versions: The known versions of the type, verified.
        evidence: The broker's certificates.
        verifier: Decides, with the statements it has.
        at: Now.
        network: The network that the manager belongs to, if any.
        actions: The rights that count; both by default.
        budget: What is left to the decision; without one a fresh budget, for all that is asked here.

    Returns:
        At least one admission, in an order of their own; several for a group when several chains lead there.

    Raises:
        VerificationError: The broker may join none: its rights are not proven, nobody names it a broker
            (``NOT_A_BROKER``), whoever does is no domain (``NOT_A_DOMAIN``), its right has conditions
            (``CONDITIONAL_RIGHT``) or chooses rows (``CONSTRAINED_RIGHT``), or a whole event's key is wanted with a
            right that is bound to a version (``VERSION_BOUND``) or closes attributes (``ATTRIBUTES_CLOSED``).
        UncheckedError: There are more chains than are looked at.
    """
    known = one_type(versions)
    budget = verifier.budget(evidence) if budget is None else budget
    budget.earn(_STEPS_A_VERSION * len(known))
    case = BrokerCase(broker=broker, evidence=evidence, verifier=verifier, at=at, network=network, budget=budget)
    admissions = _Admissions(case, known, actions)
    connected = None
    if network is not None:
        wanted = ask_network(Action.CONNECT, *network)
        connected = verifier.verify(wanted, principal=broker, evidence=evidence, at=at, budget=budget)
    found: dict[tuple[KeyGroupId, bytes], GroupAdmission] = {}
    for admission in (*admissions.by_attribute(connected), *admissions.by_event(connected)):
        found.setdefault((admission.group, admission.credential), admission)
        if len(found) > MAX_ADMISSIONS:
            raise UncheckedError("more chains than are looked at", code="LIMIT_EXCEEDED")
    if not found:
        raise admissions.refusal()
    return tuple(found[key] for key in sorted(found))


class _Admissions:
    """What one broker may join of one type."""

    def __init__(self, case: BrokerCase, versions: Sequence[EventType], actions: tuple[Action, ...]) -> None:
        self.case = case
        self.versions = versions
        self.actions = actions
        self._places = BrokerPlaces(case, versions[0].name.owner)
        self._held: dict[Action, tuple[Derived, ...]] = {}
        self._problem: VerificationError | None = None

    def by_attribute(self, connected: Grant | None) -> list[GroupAdmission]:
        """Open the groups of single attributes, version by version."""
        found: list[GroupAdmission] = []
        for version in self.versions:
            if version.options.encryption is not EncryptionMode.ATTRIBUTE:
                continue
            for derived, names in self._rights(version.name.version.text):
                for cells in self._unserved(cell_rights(derived.tag)):
                    if version.extends is not None and not {uid for uid, _ in cells.constraints} <= version.uids:
                        continue  # it speaks of inherited attributes, so it opens nothing (`descent`)
                    self.case.budget.spend(len(version.attributes))
                    opened = [item.uid for item in version.attributes if permits(cells.uids, item.uid.encode())]
                    found += [self._admission(uid.encode(), derived, names, connected) for uid in opened]
        return found

    def by_event(self, connected: Grant | None) -> list[GroupAdmission]:
        """Open the group of whole events, on a chain that opens every attribute of every version."""
        if all(version.options.encryption is EncryptionMode.PLAIN for version in self.versions):
            return []
        uids = {item.uid.encode() for version in self.versions for item in version.attributes}
        found: list[GroupAdmission] = []
        for derived, names in self._rights(None):
            for option in _alternatives(derived.tag.to_sexp()):
                rights = cell_rights(parse_tag(option))
                if len(tuple(self._unserved(rights))) < len(rights):
                    continue
                if not all(permits(cells.uids, uid) for cells in rights for uid in uids):
                    self._note(
                        "a right that closes attributes cannot join the key group of whole events", "ATTRIBUTES_CLOSED"
                    )
                elif option[_VERSION : _VERSION + 1] not in ((), ((b"*",),)):
                    self._note(
                        "a right bound to one version cannot join the key group of whole events", "VERSION_BOUND"
                    )
                else:
                    found.append(self._admission(WHOLE_EVENT, derived, names, connected))
        return found

    def refusal(self) -> VerificationError:
        """Say why there is no admission."""
        if self._problem is not None:
            return self._problem
        name = self.versions[0].name
        for action in self.actions:
            request = ask_type(action, name.owner, name.name, None, versions_of(self.versions))
            decision = self.case.decide(request, self.case.broker)
            if decision.error is not None:
                return decision.error
        return ChainError("the right opens no key group of the type", code="NO_KEY_GROUP")

    def _rights(self, version: str | None) -> list[tuple[Derived, tuple[Grant, ...]]]:
        """List the rights to read and to set that the broker holds as a broker, with the names that say so."""
        found = []
        for action in self.actions:
            for derived in self._clauses(action, version):
                if derived.conditions:
                    self._note("a right with conditions opens no key group", "CONDITIONAL_RIGHT")
                    continue
                try:
                    found.append((derived, self._places.of(derived.proof.tree)))
                except ChainError as error:
                    self._problem = self._problem or error
        return found

    def _unserved(self, rights: Iterable[CellRight]) -> Iterator[CellRight]:
        """Leave out what chooses rows: a key opens a whole column."""
        for cells in rights:
            if cells.served:
                self._note(
                    "a right on some rows opens no key group: keys open whole columns. Its rows are served by a broker "
                    "that holds the keys, or whoever gave it says that the receiving domain enforces it",
                    "CONSTRAINED_RIGHT",
                )
            else:
                yield cells

    def _clauses(self, action: Action, version: str | None) -> list[Derived]:
        """Derive what is held of all versions, once, and narrow it to one."""
        name, case = self.versions[0].name, self.case
        if action not in self._held:
            self._held[action] = case.verifier.clauses(
                ask_type(action, name.owner, name.name, None, versions_of(self.versions)), principal=case.broker,
                evidence=case.evidence, at=case.at, budget=case.budget,
            )  # fmt: skip
        if version is None:
            return list(self._held[action])
        wanted = ask_type(action, name.owner, name.name, version).wanted
        narrowed = (replace(held, tag=intersect(held.tag, wanted, self.case.budget)) for held in self._held[action])
        return [held for held in narrowed if not is_nothing(held.tag)]

    def _admission(
        self, label: bytes, derived: Derived, names: tuple[Grant, ...], connected: Grant | None
    ) -> GroupAdmission:
        grants = names if connected is None else (*names, connected)
        identities = dict.fromkeys(derived.proof.certificate_ids())
        identities |= dict.fromkeys(item.certificate_id for grant in grants for item in grant.certificates)
        periods = [derived.period, *(grant.period for grant in grants)]
        statements, tested = self._assured(identities)
        return GroupAdmission(
            group=KeyGroupId(self.versions[0].type_id, label),
            valid_from=_start(periods),
            valid_to=_end(periods, statements),
            certificates=tuple(identities),
            tested=tested,
        )

    def _assured(self, identities: Iterable[CertificateId]) -> tuple[list[datetime], bool]:
        """Tell until when the accepted lists vouch for certificates, and whether any needs them."""
        book: StatementBook = self.case.verifier.statements
        ends: list[datetime] = []
        tested = False
        for identity in identities:
            for test in self.case.evidence.get(identity).body.tests:
                tested = True
                until = book.assured_until(test, identity, at=self.case.at)
                if until is not None:
                    ends.append(until)
        return ends, tested

    def _note(self, message: str, code: str) -> None:
        """Keep the first reason why a right that was proven opened nothing."""
        if self._problem is None:
            self._problem = ChainError(message, code=code)


def one_type(versions: Iterable[EventType]) -> tuple[EventType, ...]:
    """Give the versions of one type, or refuse them."""
    known = tuple(versions)
    if not known or len({version.type_id for version in known}) != 1 or len(known) > MAX_VERSIONS:
        raise UsageError(f"key groups are of one type, with 1 to {MAX_VERSIONS} versions", code="KEY_GROUP_TYPE")
    return known


def _alternatives(expression: Sexp) -> list[tuple[Sexp, ...]]:
    match expression:
        case (b"*", b"set", *options):
            return [option for option in options if isinstance(option, tuple)]
        case tuple():
            return [expression]
        case _:
            return []


def _start(periods: Iterable[Period]) -> int | None:
    return max((milliseconds(p.not_before) for p in periods if p.not_before is not None), default=None)


def _end(periods: Iterable[Period], statements: Iterable[datetime]) -> int | None:
    """Tell when the first of them ends, exclusively: a period still holds at its last instant, a list does not."""
    ends = [milliseconds(period.not_after) + 1 for period in periods if period.not_after is not None]
    return min([*ends, *(milliseconds(until) for until in statements)], default=None)
