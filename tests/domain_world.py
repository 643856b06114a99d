"""A police force with an access control service: holdings in memory, a real database; for several tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from maia import database
from maia.access_control import AccessControl, Handed, Settings, Withdrawn
from maia.authority import Action, CertificatePool, Decision, StatementBook, Verifier, parse_statement, verify_statement
from maia.domain import prove_key
from maia.errors import UnavailableError
from maia.events import EventType, TypeName, attribute, parse_version
from maia.policy import Atom, TypeCatalogue, parse_fact
from maia.principals import Authenticated, Certificate, KeyId, Signer
from maia.testing import ATTRIBUTES, NETWORK_NAME, TYPE_NAME, TYPE_VERSION, NumberplateNetwork, numberplate_network

TRACKING = """
npTracker(plate) <- courtOrder(case, plate)*, detective(self)*, ?caseAssignment(self, case)*
npTracker(plate) |- subscribe Numberplate(location, timestamp, numberplate = plate)
"""
PLATE = "npTracker('AE05 XYZ')"
ORDER = "courtOrder(c1, 'AE05 XYZ')"
ASSIGNED = "caseAssignment(smith, c1)"
RIGHT = "subscribe Numberplate(location, timestamp, numberplate = 'AE05 XYZ')"
KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}


def numberplate(network: NumberplateNetwork) -> EventType:
    """PITO's type."""
    return EventType(
        name=TypeName(network.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
        attributes=tuple(attribute(name, int(uid), KINDS[name]) for name, uid in ATTRIBUTES.items()),
    )


@dataclass
class Holdings:
    """What a domain holds, in memory."""

    catalogue: TypeCatalogue
    certificates: list[Certificate] = field(default_factory=list)
    book: StatementBook = field(default_factory=StatementBook)

    def types(self, *, at: datetime) -> TypeCatalogue:
        return self.catalogue

    def evidence(self) -> CertificatePool:
        return CertificatePool(self.certificates)

    def statements(self) -> StatementBook:
        return self.book

    def keep(self, certificate: Certificate) -> None:
        self.certificates.append(certificate)


@dataclass
class Telling:
    """Remembers in order what it was told; says nothing while it is deaf."""

    heard: list[tuple[str, object]] = field(default_factory=list)
    deaf: bool = False

    def _hear(self, kind: str, what: object) -> None:
        if self.deaf:
            raise UnavailableError("nobody listens")
        self.heard.append((kind, what))

    def statement(self, signer: KeyId, raw: bytes) -> None:
        self._hear("statement", raw)

    def certificate(self, domain: KeyId, raw: bytes) -> None:
        self._hear("certificate", raw)

    def withdrawn(self, notice: Withdrawn) -> None:
        self._hear("withdrawn", notice)

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.heard]


@dataclass
class Outside:
    """What is true outside, as the test sets it."""

    true: set[str] = field(default_factory=set)
    fails: bool = False

    def facts(self, *, at: datetime) -> Iterable[Atom]:
        if self.fails:
            raise UnavailableError("the provider is down")
        return frozenset(parse_fact(text) for text in self.true)


@dataclass
class Force:
    """The Metropolitan Police: its service, and the keys of those who deal with it."""

    url: str
    settings: Settings = field(default_factory=Settings)
    connected: bool = False
    network: NumberplateNetwork = field(default_factory=numberplate_network)
    telling: Telling = field(default_factory=Telling)
    outside: Outside = field(default_factory=Outside)

    def __post_init__(self) -> None:
        networks = ((self.network.key("PITO"), NETWORK_NAME),) if self.connected else ()
        self.home = Holdings(TypeCatalogue([numberplate(self.network)], networks=networks))
        self.home.certificates += self.network.some("Cap1", "Cap12")
        self.engine = database.open_database(self.url)
        database.migrate(self.engine)
        self.service = self.open()
        self.now = self.network.now

    def open(self, **others: object) -> AccessControl:
        """Open the service anew, as after a restart."""
        made = {
            "signer": self.network.people["Met"], "engine": self.engine, "holdings": self.home,
            "settings": self.settings, "telling": self.telling, "outside": self.outside,
        }  # fmt: skip
        return AccessControl(**(made | others))  # type: ignore[arg-type]

    def prove(self, who: str | Signer, *, at: datetime | None = None) -> Authenticated:
        """Prove somebody's key to the service."""
        signer = self.network.people[who] if isinstance(who, str) else who
        return prove_key(self.service, signer, nonce=b"n" * 16, at=at or self.now)

    def join(self, name: str, who: str | Signer, *, at: datetime | None = None, **invitation: object) -> Handed:
        """Invite somebody and let it enrol."""
        moment = at or self.now
        code = self.service.invite(name, at=moment, **invitation)  # type: ignore[arg-type]
        return self.service.enrol(self.prove(who, at=moment), invitation=code, at=moment).handed

    def track(self, *, until: datetime | None = None) -> Authenticated:
        """Bring Smith to the point where he tracks the plate of case c1."""
        self.service.apply(TRACKING, at=self.now)
        self.join("smith", "Smith", appointments=["detective(smith)"])
        self.service.appoint(ORDER, at=self.now, until=until)
        self.service.observe(ASSIGNED, at=self.now)
        smith = self.prove("Smith")
        self.service.activate(smith, PLATE, at=self.now)
        return smith

    def book(self) -> StatementBook:
        """Everything that was published about validity, as a broker would have taken it in."""
        book = StatementBook()
        for kind, raw in self.telling.heard:
            if kind == "statement" and isinstance(raw, bytes):
                book.accept(verify_statement(parse_statement(raw)))
        return book

    def subscribe(self, handed: Handed, *, at: datetime | None = None, who: str = "Smith") -> Decision:
        """Ask a broker whether somebody may subscribe to numberplates with what it was handed."""
        return Verifier(statements=self.book()).decide(
            self.network.on_type(Action.SUBSCRIBE),
            principal=self.network.key(who),
            evidence=handed.evidence,
            at=at or self.now,
        )


SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
