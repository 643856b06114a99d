"""How a domain stands: what it is, which rights and keys it has and lacks, what ends when, and what to do next.

Looking changes nothing: no notice is taken up, no database is opened, no key is made. What cannot be read is said as a
problem, and the rest is told all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from maia.authority import Action, ListStatement, StatementBook, ask_type, parse_statement
from maia.domain.snapshot import Snapshot
from maia.domain.subscriptions import read_subscriptions
from maia.domain.types import find_type, show_type
from maia.encryption import WHOLE_EVENT, Keyring, groups_of
from maia.errors import MaiaError, RevokedError, VerificationError
from maia.events import EventType
from maia.home import Folder, Home, read_file
from maia.kernel import milliseconds, read_mark
from maia.log import LogDirectory, Outbox
from maia.principals import CertificateId, OnlineTest, PublicKey, TestKind

if TYPE_CHECKING:
    from maia.domain.domain import Domain

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOON = timedelta(days=14)
_MAX_CLIENTS = 200
_SHORT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RightStatus:
    """A right that is held; or the code and the reason why it is not."""

    held: bool
    code: str = "OK"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStatus:
    """The newest key of one attribute that this home holds, and since when; ``since`` is empty when it holds none."""

    attribute: str
    uid: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStatus:
    """One version of a type.

    Attributes:
        type: ``owner/name@version``.
        verified: Whether its definition verifies now; without it nothing else is known.
        publish: The broker's right to publish it.
        publishers: Clients of this home that may publish it.
        readers: Clients of this home that may subscribe to it.
        keys: Of each attribute that is sealed.
        managed: Whether somebody else manages its keys.
    """

    type: str
    verified: bool
    publish: RightStatus
    publishers: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    keys: tuple[KeyStatus, ...] = ()
    managed: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """Attributes whose key this home does not hold."""
        return tuple(key.attribute for key in self.keys if key.since is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStatus:
    """A signer's validity lists: the number of the newest in force, and until when lists reach without a gap.

    ``number`` is empty when certificates of this home demand a list and none is in force.
    """

    signer: str
    kind: str
    number: int | None
    ends: datetime | None
    certificates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """A certificate for a key of this home that ends soon, or has ended."""

    certificate: str
    issuer: str
    holder: str
    ends: datetime
    over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """The log, and how far deliveries have come.

    Attributes:
        commits: How many commits the log has, expired ones included.
        expired: How many of them have expired.
        subscriptions: How many subscriptions the home keeps.
        delivered: How many commits are in the outbox; empty before the first delivery.
        lag: Commits that wait to be delivered.
        ahead: Seconds by which this broker's stamps run ahead of the clock; events stamped so are refused until then.
    """

    commits: int
    expired: int
    subscriptions: int
    delivered: int | None
    lag: int
    ahead: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to do: why, and the exact command; ``where`` says whose home when it is not this one."""

    why: str
    command: str
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainStatus:
    """How a domain stands at an instant.

    Attributes:
        name: What people call it.
        home: Where its files are.
        broker: Fingerprint of its broker's key.
        domain: Fingerprint of the key that speaks for it, when it is known here.
        network: ``owner/name``, when it belongs to one.
        connect: The broker's right to connect to it.
        at: When this was so.
        types: Every version that the home keeps.
        lists: Validity lists that are in force, or are demanded and missing.
        renewals: Certificates that end soon, the earliest first.
        log: Its log and its deliveries.
        steps: What to do next, the most pressing first.
        problems: What could not be read.
    """

    name: str
    home: str
    broker: str
    domain: str | None
    network: str | None
    connect: RightStatus | None
    at: datetime
    types: tuple[TypeStatus, ...] = ()
    lists: tuple[ListStatus, ...] = ()
    renewals: tuple[Renewal, ...] = ()
    log: LogStatus | None = None
    steps: tuple[Step, ...] = ()
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        written = _plain(asdict(self))
        assert isinstance(written, dict)  # noqa: S101 - of a dataclass
        return written


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
        self.folder = Folder(domain.home.path)
        self.broker = domain.home.key(domain.home.config.broker)
        self.problems: list[str] = []
        self.known: Snapshot | None = None
        try:
            self.known = domain.known(at=at)
        except MaiaError as error:
            self.problems.append(f"certificates, statements or types cannot be read: {error}")

    def status(self) -> DomainStatus:
        config = self.home.config
        network = None if config.network is None else "/".join(config.network)
        types = tuple(self._types())
        made = DomainStatus(
            name=config.name,
            home=str(self.home.path),
            broker=self.broker.fingerprint,
            domain=None if config.domain not in self.folder.keys else self.folder.keys[config.domain].fingerprint,
            network=network,
            connect=None if network is None else self._connect(),
            at=self.at,
            types=types,
            lists=tuple(self._lists()),
            renewals=tuple(self._renewals()),
            log=self._log(),
        )
        steps = tuple(_steps(made, self.home, self.folder))
        return DomainStatus(
            **{name: getattr(made, name) for name in made.__slots__ if name not in ("steps", "problems")},
            steps=steps,
            problems=tuple(self.problems),
        )

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
                keys=tuple(_keys(ring, event_type)),
                managed=self.home.config.key_manager is not None,
            )

    def _publish(self, known: Snapshot, event_type: EventType) -> RightStatus:
        """Ask for what a plan asks for: the broker's right, whatever the version."""
        name = event_type.name
        try:
            known.verifier.verify(
                ask_type(Action.PUBLISH, name.owner, name.name, None), principal=self.broker, evidence=known.pool,
                at=self.at,
            )  # fmt: skip
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

    def _lists(self) -> Iterator[ListStatus]:
        if self.known is None:
            return
        book = self.known.verifier.statements
        found: dict[tuple[str, str], ListStatus] = {}
        for body in _held_lists(book):
            key = (self.folder.show(body.signer.key_id), body.kind.value)
            if body.in_force(self.at) and body.sequence > (-1 if key not in found else found[key].number or -1):
                ends = _reach(book, body, self.at)
                found[key] = ListStatus(
                    signer=key[0], kind=key[1], number=body.sequence, ends=ends, certificates=len(body.certificates)
                )
        for test, _ in self._demanded():
            key = (self.folder.show(test.signer.key_id), test.kind.value)
            if key not in found and test.kind is not TestKind.ONE_TIME:
                found[key] = ListStatus(signer=key[0], kind=key[1], number=None, ends=None)
        yield from (found[key] for key in sorted(found))

    def _demanded(self) -> Iterator[tuple[OnlineTest, CertificateId]]:
        if self.known is not None:
            for certificate in self.known.pool:
                for test in certificate.body.tests:
                    yield test, certificate.certificate_id

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

    def _log(self) -> LogStatus | None:
        log, outbox = LogDirectory(self.home.log_path), Outbox(self.home.path / "outbox")
        try:
            wanted = len(read_subscriptions(self.home.path))
            head, latest = outbox.head(), log.latest()
            upto = None if head is None else head.upto
            stamps = self.home.path / "stamps"
            mark = read_mark(read_file(stamps, limit=64)) if stamps.exists() else 0
            return LogStatus(
                commits=latest + 1,
                expired=log.expired() + 1,
                subscriptions=wanted,
                delivered=None if upto is None else upto + 1,
                lag=latest - max(log.expired(), -1 if upto is None else upto) if wanted else 0,
                ahead=max(0, mark - milliseconds(self.at) - self.home.config.skew * 1000) // 1000,
            )
        except MaiaError as error:
            self.problems.append(f"the log or the outbox cannot be read: {error}")
            return None


def _keys(ring: Keyring, event_type: EventType) -> Iterator[KeyStatus]:
    names = {item.uid.encode(): item.name for item in event_type.attributes}
    for group in groups_of(event_type.type_id, list(names), event_type.options.encryption):
        epochs = ring.epochs(group)
        whole = group.label == WHOLE_EVENT
        yield KeyStatus(
            attribute="whole events" if whole else names.get(group.label, group.label.decode("utf-8", "replace")),
            uid=None if whole else group.label.decode("utf-8", "replace"),
            since=_EPOCH + timedelta(milliseconds=epochs[-1]) if epochs else None,
        )


def _held_lists(book: StatementBook) -> Iterator[ListStatement]:
    for raw in book.raw_statements():
        body = parse_statement(raw).body
        if isinstance(body, ListStatement):
            yield body


def _reach(book: StatementBook, first: ListStatement, at: datetime) -> datetime | None:
    """Tell until when the lists of a signer follow one another without a gap; a plain list has no end."""
    if first.ends is None:
        return None
    mine = [item for item in _held_lists(book) if (item.signer, item.kind) == (first.signer, first.kind)]
    end = first.ends
    for item in sorted((item for item in mine if item.starts is not None), key=lambda item: item.starts or at):
        if item.starts is not None and item.ends is not None and item.starts <= end < item.ends:
            end = item.ends
    return end


def _steps(status: DomainStatus, home: Home, folder: Folder) -> Iterator[Step]:
    """Say what to do, the most pressing first."""
    broker = home.config.broker
    if status.log is not None and status.log.ahead:
        yield Step(
            why=f"the stamps of this broker run {status.log.ahead} seconds ahead of the clock; "
            "what it publishes is refused until then",
            command="date",
        )
    if not status.types:
        yield Step(why="this home knows no event type", command="maia type from-schema FILE OWNER/NAME")
    if status.connect is not None and not status.connect.held and status.network is not None:
        owner = status.network.partition("/")[0]
        grant = f"maia grant --from {owner} --to {broker} --network '{status.network}' --action connect"
        yield _asked(folder, owner, f"the broker may not connect to `{status.network}`: {status.connect.code}", grant)
    for item in status.types:
        yield from _type_steps(item, home, folder)
    for held in status.lists:
        yield from _list_steps(held, status.at, folder)
    for renewal in status.renewals:
        state = "has ended" if renewal.over else "ends soon"
        yield Step(
            why=f"the certificate {renewal.certificate} of `{renewal.holder}` {state}; `{renewal.issuer}` renews it",
            command=f"maia cert show {renewal.certificate}",
        )
    if status.log is not None and status.log.lag:
        yield Step(why=f"commits that wait to be delivered: {status.log.lag}", command="maia deliver --once")


def _type_steps(item: TypeStatus, home: Home, folder: Folder) -> Iterator[Step]:
    whole = item.type.rpartition("@")[0]
    owner = whole.partition("/")[0]
    if not item.verified:
        yield Step(why=f"`{item.type}` does not verify", command=f"maia type show {item.type}")
        return
    if not item.publish.held and item.publishers:
        grant = f"maia grant --from {owner} --to {home.config.broker} --type {whole} --action publish"
        yield _asked(folder, owner, f"the broker may not publish `{whole}`: {item.publish.code}", grant)
    if not item.publishers and not item.readers:
        why = f"no client of this home may publish or read `{whole}`"
        yield _asked(folder, owner, why, f"maia grant --from {owner} --to NAME --type {whole} --action subscribe")
    if item.missing and item.managed:
        name = find_type(home, item.type).name
        why = f"this home holds no key for {', '.join(f'`{name}`' for name in item.missing)} of `{whole}`"
        yield Step(why=why, command=f"maia keys join {name}")


def _list_steps(held: ListStatus, at: datetime, folder: Folder) -> Iterator[Step]:
    signer = held.signer.partition(" ")[0]
    until = " --until +1d" if held.ends is not None or held.kind != TestKind.CRL.value else ""
    command = f"maia statement {held.kind} --from {signer}{until}"
    if held.number is None:
        why = f"certificates here need a {held.kind} of `{held.signer}`, and none is in force"
        yield _asked(folder, signer, why, command)
    elif held.ends is not None and held.ends - at < timedelta(days=1):
        yield _asked(folder, signer, f"the {held.kind} of `{held.signer}` ends within a day", command)


def _asked(folder: Folder, who: str, why: str, command: str) -> Step:
    """Make a step of somebody: here when that key is here, else where it is."""
    here = who in folder.keys and folder.key_path(who).is_file()
    return Step(why=why, command=command, where="" if here else f"the home of `{who}`")


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
