"""How a domain stands: what it is, which rights and keys it has and lacks, what ends when, and what to do next.

Looking changes nothing: no notice is taken up, no database is opened, no key is made. What cannot be read is said as a
problem, and the rest is told all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from maia.authority import Action
from maia.domain.grounds import missing_certificates
from maia.domain.own_right import prove_own_right
from maia.domain.parked import read_parked
from maia.domain.shares import SHARES_FILE, read_shares
from maia.domain.snapshot import Snapshot
from maia.domain.status.lists import list_statuses
from maia.domain.status.steps import next_steps
from maia.domain.status.values import (
    DomainStatus,
    KeyStatus,
    LogStatus,
    Renewal,
    RightStatus,
    TypeStatus,
)
from maia.domain.structure import Structure, domain_structure
from maia.domain.types import find_type, show_type, type_conflicts
from maia.domain.wanted import read_subscriptions
from maia.encryption import WHOLE_EVENT, Keyring, groups_of
from maia.errors import MaiaError, RevokedError, VerificationError
from maia.events import EventType
from maia.home import ClockFile, read_file
from maia.kernel import BROKERS, Descent, MemberNames, instant_at, milliseconds, read_mark, requests_for
from maia.log import LogDirectory, Outbox, read_place
from maia.principals import CertificateId, OnlineTest, PublicKey

if TYPE_CHECKING:
    from maia.domain.domain import Domain

_SOON = timedelta(days=14)
_MAX_CLIENTS = 200
_SHORT = 16


def domain_status(domain: Domain, *, at: datetime | None = None) -> DomainStatus:
    """Tell how a domain stands.

    Args:
        domain: Which.
        at: When; now by default.

    Raises:
        NotFoundError: Its broker's key is gone.
    """
    return _Look(domain, domain.clock() if at is None else at).status()


def who_lacks(domain: Domain, type_: str, *, client: str, action: Action, version: str | None = None) -> str:
    """Tell whose right is missing when a plan was refused: the client's, or that of the domain's broker.

    Raises:
        MaiaError: The type is unknown, or evidence cannot be read.
    """
    at, key = domain.clock(), domain.home.key(client)
    name, known = find_type(domain.home, type_, version), domain.known(at=at)
    try:
        event_type = known.sessions.event_type(name.type_id, name.version.text, at=at)
        known.sessions.check_connected(key, known.pool, at=at)
    except MaiaError:
        return client
    held = known.sessions.clauses(key, action, event_type, known.pool, at=at)
    return domain.home.config.broker if held else client


class _Look:
    """One look at a home."""

    def __init__(self, domain: Domain, at: datetime) -> None:
        self.domain, self.home, self.at = domain, domain.home, at
        self.folder = domain.home.folder
        self.broker = domain.home.key(domain.home.config.broker)
        self.problems: list[str] = []
        self.known: Snapshot | None = None
        self._clock()
        try:
            self.known = domain.known(at=at)
        except MaiaError as error:
            self.problems.append(f"certificates, statements or types cannot be read: {error}")
        else:
            self._kinds(self.known)
            for name in type_conflicts(self.home, verifier=self.known.verifier, at=at):
                self.problems.append(
                    f"two signed definitions of `{show_type(self.home, name)}` contradict each other "
                    "(`TYPE_CONFLICT`); what was accepted first counts: ask its owner, "
                    "and remove the other from `types/`"
                )

    def status(self) -> DomainStatus:
        config = self.home.config
        network = None if config.network is None else "/".join(config.network)
        types = tuple(self._types())
        self._shares()
        made = DomainStatus(
            name=config.name,
            home=str(self.home.path),
            broker=self.broker.fingerprint,
            domain=None if config.domain not in self.folder.keys else self.folder.keys[config.domain].fingerprint,
            network=network,
            connect=None if network is None else self._connect(),
            at=self.at,
            structure=self._structure(),
            types=types,
            lists=() if self.known is None else tuple(list_statuses(self.folder, self.known, at=self.at)),
            renewals=tuple(self._renewals()),
            log=self._log(),
        )
        steps = tuple(next_steps(made, self.home, self.folder))
        return DomainStatus(
            **{name: getattr(made, name) for name in made.__slots__ if name not in ("steps", "problems")},
            steps=steps,
            problems=tuple(self.problems),
        )

    def _structure(self) -> Structure | None:
        """Read what the domain says that belongs to it; one that is both kinds of group serves nobody."""
        key = self.folder.keys.get(self.home.config.domain)
        if key is None:
            return None
        try:
            return domain_structure(self.folder, key, at=self.at)
        except MaiaError:
            return None  # `_kinds` says why

    def _kinds(self, known: Snapshot) -> None:
        """Say when a domain that has this broker is both kinds of group: then it serves nobody."""
        names = MemberNames(known.pool, verifier=known.verifier, at=self.at)
        for domain in sorted(names.namers(self.broker.key_id, BROKERS)):
            try:
                names.check_kind(domain)
            except MaiaError as error:
                self.problems.append(f"the broker serves nobody: {self.folder.decorate(str(error))}")

    def _clock(self) -> None:
        """Say when nothing can be planned here: whoever follows the log asks for the same."""
        try:
            ClockFile(self.home.path / "clock").check(self.domain.clock())
        except MaiaError as error:
            self.problems.append(f"nothing works here: {error}")

    def _connect(self) -> RightStatus:
        if self.known is None:
            return RightStatus(held=False, code="UNKNOWN", reason="its evidence cannot be read")
        try:
            self.known.sessions.check_connected(self.broker, self.known.pool, at=self.at)
        except MaiaError as error:
            return RightStatus(held=False, code=error.code, reason=self.folder.decorate(error.message))
        return RightStatus(held=True)

    def _types(self) -> Iterator[TypeStatus]:
        ring = self._ring()
        verified = {} if self.known is None else {item.event_type.name: item.event_type for item, _ in self.known.types}
        for name in self.home.types.names():
            shown = show_type(self.home, name)
            event_type = verified.get(name)
            if event_type is None or self.known is None:
                reason = "its definition does not verify now"
                yield TypeStatus(
                    type=shown, verified=False, publish=RightStatus(held=False, code="NOT_VERIFIED", reason=reason)
                )
                continue
            yield TypeStatus(
                type=shown,
                verified=True,
                publish=self._publish(self.known, event_type),
                publishers=tuple(self._holders(self.known, event_type, Action.PUBLISH)),
                readers=tuple(self._holders(self.known, event_type, Action.SUBSCRIBE)),
                keys=tuple(_keys(ring, event_type, self.known.sessions.descent(event_type.type_id))),
                managed=self.home.config.key_manager is not None,
            )

    def _publish(self, known: Snapshot, event_type: EventType) -> RightStatus:
        """Ask for what a plan asks for: the broker's right on this version."""
        try:
            for request in requests_for(Action.PUBLISH, event_type):
                prove_own_right(known.verifier, request, self.broker, known.pool, at=self.at)
        except VerificationError as error:
            return RightStatus(held=False, code=error.code, reason=self.folder.decorate(error.message))
        return RightStatus(held=True)

    def _holders(self, known: Snapshot, event_type: EventType, action: Action) -> Iterator[str]:
        """Name the clients whose private keys are here and who hold a right now."""
        for name, key in list(self.folder.keys.items())[:_MAX_CLIENTS]:
            if key == self.broker or not self.folder.key_path(name).is_file():
                continue
            try:
                if known.sessions.clauses(key, action, event_type, known.pool, at=self.at):
                    known.sessions.check_connected(key, known.pool, at=self.at)
                    yield name
            except MaiaError:
                continue  # no right is no news here; `maia explain` says why

    def _ring(self) -> Keyring:
        try:
            return self.home.keyring()
        except MaiaError as error:
            self.problems.append(f"the keyring cannot be opened: {error}")
            return Keyring()

    def _renewals(self) -> Iterator[Renewal]:
        """List what ends soon: within a quarter of its life, and within two weeks."""
        if self.known is None:
            return
        found = []
        for certificate in self.known.pool:
            body = certificate.body
            ends, subject = body.period.not_after, body.subject
            if ends is None or not isinstance(subject, PublicKey) or subject.key_id not in self.folder.names:
                continue
            life = _SOON if body.period.not_before is None else (ends - body.period.not_before) / 4
            if ends - self.at <= min(life, _SOON) and self._counted(certificate.certificate_id, body.tests):
                found.append(
                    Renewal(
                        certificate=certificate.certificate_id.hex()[:_SHORT],
                        issuer=self.folder.show(body.issuer_id),
                        holder=self.folder.names[subject.key_id],
                        ends=ends,
                        over=ends < self.at,
                    )
                )
        yield from sorted(found, key=lambda item: item.ends)

    def _counted(self, identity: CertificateId, tests: Iterable[OnlineTest]) -> bool:
        """Leave out what was revoked: it is not to be renewed."""
        if self.known is None:
            return False
        for test in tests:
            try:
                self.known.verifier.statements.check(test, identity, at=self.at)
            except RevokedError:
                return False
            except VerificationError:
                continue
        return True

    def _shares(self) -> None:
        """Say whose certificates found no room here."""
        for sender, share in read_shares(self.home.path / SHARES_FILE).items():
            if share.refused:
                self.problems.append(
                    f"{share.refused} certificates of `{self.folder.show(sender)}` were refused: its share of this "
                    "home is full"
                )

    def _missing(self) -> Iterator[dict[str, str]]:
        """Name the certificates that somebody waits for."""
        if self.known is not None:
            for item in missing_certificates(self.home, self.known.pool, at=self.at):
                yield {"certificate": item.identity.hex(), "clients": ", ".join(item.clients)}

    def _log(self) -> LogStatus | None:
        log = LogDirectory(self.home.log_store, before_lanes=self.home.log_before_lanes, memory=self.home.seen_path)
        outbox = Outbox(self.home.path / "outbox")
        try:
            wanted = len(read_subscriptions(self.home.path))
            head = outbox.head()
            upto = {} if head is None else head.upto
            ids = {name.type_id for name in self.home.types.names()}
            types = [identity.hex() for type_id in ids for identity in self.home.wire_ids(type_id)]
            lanes = log.lanes(types, first=tuple(upto))
            self.problems += [f"{lane.finding.message} (`{lane.finding.code}`)" for lane in lanes if lane.finding]
            lanes = [lane for lane in lanes if lane.count]
            parked = [{**asdict(item), "waits": item.waits} for item in read_parked(self.home.path)]
            stamps = self.home.path / "stamps"
            mark = read_mark(read_file(stamps, limit=64)) if stamps.exists() else 0
            return LogStatus(
                lanes=len(lanes),
                commits=sum(lane.count for lane in lanes),
                expired=sum(read_place(lane.floor)[0].number + 1 for lane in lanes),
                subscriptions=wanted,
                delivered=None if head is None else sum(read_place(place)[0].number + 1 for place in upto.values()),
                lag=log.behind(upto, types) if wanted else 0,
                parked=tuple(parked),
                missing=tuple(self._missing()),
                ahead=max(0, mark - milliseconds(self.at) - self.home.config.skew * 1000) // 1000,
            )
        except MaiaError as error:
            self.problems.append(f"the log or the outbox cannot be read: {error}")
            return None


def _keys(ring: Keyring, event_type: EventType, descent: Descent) -> Iterator[KeyStatus]:
    """Tell of each key that a type's events need; an inherited attribute is sealed by the group of its own type."""
    names = {item.uid.encode(): item.name for item in event_type.attributes}
    needed = (
        group
        for label in names
        for group in groups_of(
            descent.type_of(label.decode()) or event_type.type_id, [label], event_type.options.encryption
        )
    )
    for group in dict.fromkeys(needed):
        epochs = ring.epochs(group)
        whole = group.label == WHOLE_EVENT
        yield KeyStatus(
            attribute="whole events" if whole else names.get(group.label, group.label.decode("utf-8", "replace")),
            uid=None if whole else group.label.decode("utf-8", "replace"),
            since=instant_at(epochs[-1]) if epochs else None,
        )
