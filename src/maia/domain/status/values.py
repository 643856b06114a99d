"""What can be told of a domain's standing: values, no more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from maia.domain.structure import Structure
from maia.encoding import counted, html_table


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
    """A signer's validity lists.

    Attributes:
        signer: Whose.
        kind: What they say.
        number: That of the newest in force; empty when certificates of this home demand a list and none is in force.
        ends: Until when timed lists reach without a gap; empty where all are plain.
        certificates: How many the newest names.
        starts: When the last of these timed lists begins.
        renews: Whether this home, or its service, signs the next one by itself.
        names: What a revalidation has to name.
    """

    signer: str
    kind: str
    number: int | None
    ends: datetime | None
    certificates: int = 0
    starts: datetime | None = None
    renews: bool = False
    names: tuple[str, ...] = ()

    def due(self, at: datetime, *, share: int) -> bool:
        """Tell whether less than a share of the last timed list is left."""
        if self.ends is None or self.starts is None:
            return False
        return self.ends - at < (self.ends - self.starts) / share


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
        lanes: How many lanes the log has of types that are known here.
        commits: How many commits they have, expired ones included.
        expired: How many of them have expired.
        subscriptions: How many subscriptions the home keeps.
        delivered: How many commits are in the outbox; empty before the first delivery.
        lag: Commits that wait to be delivered.
        ahead: Seconds by which this broker's stamps run ahead of the clock; nothing is published until then.
        parked: Lanes that readers of this home cannot read on: who reads, the lane, the code, since when, what for.
        missing: Certificates that rights stood on and that are not here: the id of each, and whose rights.
    """

    lanes: int
    commits: int
    expired: int
    subscriptions: int
    delivered: int | None
    lag: int
    ahead: int = 0
    parked: tuple[dict[str, str], ...] = ()
    missing: tuple[dict[str, str], ...] = ()


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
        structure: What belongs to the domain, by its own word, when its key is known here.
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
    structure: Structure | None = None
    types: tuple[TypeStatus, ...] = ()
    lists: tuple[ListStatus, ...] = ()
    renewals: tuple[Renewal, ...] = ()
    log: LogStatus | None = None
    steps: tuple[Step, ...] = ()
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it in a line, and each thing to do in one of its own."""
        todo = f"{len(self.steps)} to do" if self.steps else "nothing else to do" if self.problems else "nothing to do"
        first = f"{self.name}, a domain in {self.home}: {counted(len(self.types), 'type')}, {todo}"
        problems = [f"  problem: {text}" for text in self.problems]
        return "\n".join([first, *problems, *(f"  {step.why}: {step.command}" for step in self.steps)])

    def __repr__(self) -> str:
        """Say it in one line."""
        return f"<{str(self).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook: types with who may use them, what ends, and what to do."""
        rows = [("type", item.type, _type_text(item)) for item in self.types]
        rows += [("ends", item.certificate, f"{item.holder}, {item.ends:%Y-%m-%d %H:%M} UTC") for item in self.renewals]
        rows += [("to do", step.why, step.command) for step in self.steps]
        rows += [("problem", text, "") for text in self.problems]
        return html_table(f"{self.name}, a domain in {self.home}", ("", "what", ""), rows)

    def to_json(self) -> dict[str, object]:
        """Write it for machines."""
        written = _plain(asdict(self))
        assert isinstance(written, dict)  # noqa: S101 - of a dataclass
        return written


def _type_text(item: TypeStatus) -> str:
    if not item.verified:
        return "does not verify"
    broker = "" if item.publish.held else f"; the broker may not publish: {item.publish.code}"
    writers, readers = (", ".join(names) or "nobody here" for names in (item.publishers, item.readers))
    return f"publish: {writers}; subscribe: {readers}{broker}"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
