"""`Domain`: a home, opened; the one object that lives while a process works for a domain.

It owns the verifier with its caches, the parsed and verified types, the place in the log's notices, the domain's own
key manager and the log, and looks again only at what changed. Every door calls it; none of them decides. What a user
does with it is written by subject in `maia.domain.facade`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from maia.domain import facade
from maia.domain.client import Client
from maia.domain.following import Follower
from maia.domain.given import AskPassphrase, asks
from maia.domain.operations import unproven
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.plans import Planner
from maia.domain.possession import ProvenClient, is_locked, prove_by_agent, prove_client, unlock_client
from maia.domain.publication import own_lanes
from maia.domain.snapshot import Snapshot, Snapshots
from maia.domain.status import DomainStatus, domain_status
from maia.domain.stretches import admits_by, wire_types
from maia.domain.structure import Structure, domain_structure
from maia.domain.types import find_type
from maia.encoding import html_table
from maia.errors import UsageError
from maia.events import EventType, TypeName
from maia.home import Home, HomeConfig, KeyAgent, now
from maia.log import Admits, LogDirectory, OwnLanes
from maia.principals import KeySigner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from maia.domain.engine import Engine


MakeEngine = Callable[["Domain"], "Engine"]


class Domain:
    """A domain's home, opened.

    Attributes:
        home: Its files.
        log: Its log.
        clock: Says what time it is: `datetime.now` in UTC, or a function of a test.
    """

    def __init__(self, home: Home, *, engine: MakeEngine | None = None, clock: Callable[[], datetime] = now) -> None:
        """Open a home; nothing is read yet.

        Args:
            home: The files.
            engine: Makes what moves rows, when frames are published or read.
            clock: Says what time it is; in UTC, with its zone.
        """
        self.clock = clock
        self._make_engine = engine
        self._proven: dict[str, ProvenClient] = {}
        self._agents: dict[str, KeyAgent] = {}
        self._work_with(home)

    def _work_with(self, home: Home) -> None:
        """Serve a home as it is now; nothing is read yet."""
        self.home = home
        self.log = LogDirectory(
            home.log_store, judge=self._admits, before_lanes=home.log_before_lanes, memory=home.seen_path
        )
        self._engine: Engine | None = None
        self._own = OwnKeyManager(home)
        self._follower = Follower(home, self._own, self.log)
        self._snapshots = Snapshots(home)
        self._planner = Planner(home, self.log, self._own, self._follower.fetcher)
        self._lanes: OwnLanes | None = None

    @classmethod
    def open(cls, path: Path | str, *, engine: MakeEngine | None = None) -> Domain:
        """Open the home at a path.

        Raises:
            NotFoundError: There is none.
        """
        return cls(Home.open(path), engine=engine)

    @property
    def path(self) -> Path:
        """Where the home is."""
        return self.home.path

    @property
    def config(self) -> HomeConfig:
        """What ``maia.toml`` says."""
        return self.home.config

    @property
    def name(self) -> str:
        """What people call the domain."""
        return self.home.config.name

    @property
    def engine(self) -> Engine:
        """What moves rows for this domain.

        Raises:
            UsageError: It was opened without one: ``NO_ENGINE``.
        """
        if self._engine is None:
            if self._make_engine is None:
                raise UsageError("this domain was opened without an engine; `maia.open` brings one", code="NO_ENGINE")
            self._engine = self._make_engine(self)
        return self._engine

    @property
    def own_key_manager(self) -> OwnKeyManager:
        """The key manager that the home runs itself, in process."""
        return self._own

    @property
    def lanes(self) -> OwnLanes:
        """The lanes of the log that this domain's broker writes."""
        if self._lanes is None:
            self._lanes = own_lanes(self.home, self.log)
        return self._lanes

    def close(self) -> None:
        """Let go of what was opened; it opens again when it is needed. Agents of sealed keys stop answering."""
        self._own.close()
        for agent in self._agents.values():
            agent.close()
        self._agents.clear()

    def reopen(self) -> None:
        """Serve the home as its files are now; nothing is read yet."""
        self.close()
        self._work_with(Home.open(self.path))

    def __enter__(self) -> Self:
        """Work for the domain until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what was opened."""
        self.close()

    def __repr__(self) -> str:
        """Name the domain and its home."""
        return f"<domain {self.name} at {self.path}>"

    def _repr_html_(self) -> str:
        """Show in a notebook what the domain is; `status` says how it stands."""
        config = self.config
        network = [("network", "/".join(config.network))] if config.network is not None else []
        types = ", ".join(sorted({name.name for name in self.home.types.names()})) or "none"
        rows = [("home", str(self.path)), ("broker", config.broker), *network, ("types", types)]
        return html_table(f"domain {self.name}", ("", ""), rows)

    # -- what is known

    def follow(self, *, at: datetime | None = None) -> datetime:
        """Bring the home up to date with the notices of its log; return the instant to plan with."""
        return self._follower.follow(at=self.clock() if at is None else at, also=self._planner.origins.signers)

    def _admits(self) -> Admits:
        """Tell whose lanes count now."""
        at = self.clock()
        known = self.known(at=at)
        return admits_by(self, known, wire_types(self, known))

    def known(self, *, at: datetime) -> Snapshot:
        """Give the home's evidence, its sessions and its verified types at an instant."""
        return self._snapshots.now(at=at)

    def find_type(self, name: str, version: str | None = None) -> TypeName:
        """Find a type by ``owner/name@version``, with what is clear left out.

        Raises:
            NotFoundError: There is none.
            UsageError: Several fit; the message lists them.
        """
        return find_type(self.home, name, version)

    def event_type(self, name: str | TypeName, version: str | None = None, *, at: datetime | None = None) -> EventType:
        """Return a version of a type that verifies now.

        Raises:
            MaiaError: There is none, or it does not verify.
        """
        moment = self.clock() if at is None else at
        found = name if isinstance(name, TypeName) else self.find_type(name, version)
        return self.known(at=moment).sessions.event_type(found.type_id, found.version.text, at=moment)

    # -- plans

    @property
    def planner(self) -> Planner:
        """Compiles plans from a snapshot."""
        return self._planner

    # -- what a user does, by subject

    advertise = facade.advertise
    unadvertise = facade.unadvertise
    advertisements = facade.advertisements
    learn = facade.learn
    publish_plan = facade.publish_plan
    deliver_plan = facade.deliver_plan
    decide = facade.decide
    explain = facade.explain
    who_can = facade.who_can
    rights = facade.rights
    why_not = facade.why_not
    what_if = facade.what_if
    ends = facade.ends
    compare = facade.compare
    type_from_schema = facade.type_from_schema
    grant = facade.grant
    revoke = facade.revoke
    preview_revocation = facade.preview_revocation
    delegations = facade.delegations
    oversight = facade.oversight
    invite_peer = facade.invite_peer
    connect = facade.connect
    release = facade.release
    define_release = facade.define_release
    preview_release = facade.preview_release
    released = facade.released
    releases = facade.releases
    abandon_release = facade.abandon_release

    replay = facade.replay

    channel = facade.channel

    def client(self, name: str, *, passphrase: AskPassphrase | None = None) -> Client:
        """Act as a client of this domain, whose private key is unlocked to prove that it is here.

        Args:
            name: What the client's key is called in the home.
            passphrase: Asks for the passphrase of a key that is sealed; never the passphrase itself. By default the
                descriptor that ``MAIA_PASSPHRASE_FD`` names is read, else the person at the terminal is asked.

        Raises:
            NotFoundError: The home has no private key of this name: ``NO_SUCH_KEY``.
            UsageError: It is a key of the domain's own services (``NOT_A_CLIENT``), nobody can be asked for the
                passphrase (``PASSPHRASE_MISSING``), or it was given in place of a function that asks for it
                (``PASSPHRASE_TEXT``).
            KeyFormatError: The passphrase is wrong.
            VerificationError: ``NAME.key`` and ``NAME.pub`` are of two keys: ``KEY_PAIR``.
        """
        ask = asks(passphrase)
        with unproven(self.home, name, at=self.clock()):
            signer = unlock_client(self.home, name, passphrase=ask)
            proven = self._proven[name] = prove_client(self.home, name, signer)
        return Client(
            self, proven, locked=is_locked(self.home, name),
            agent=lambda: self._agent(name, signer), checkpoints=self.path / "checkpoints",
        )  # fmt: skip

    def prove(self, name: str, *, agent: Path | None = None, passphrase: AskPassphrase | None = None) -> ProvenClient:
        """Prove a client once while this domain is open, for whoever plans for it: Spark, batch after batch.

        Args:
            name: What the client's key is called in the home.
            agent: Who proves it: the agent of the process that unlocked it. The home's own file by default.
            passphrase: As for `client`.

        Raises:
            MaiaError: As `client`; or no agent answers: ``NO_AGENT``.
        """
        proven = self._proven.get(name)
        if proven is None:
            with unproven(self.home, name, agent=agent, at=self.clock()):
                if agent is not None:
                    proven = prove_by_agent(self.home, name, agent)
                else:
                    proven = prove_client(self.home, name, unlock_client(self.home, name, passphrase=asks(passphrase)))
            self._proven[name] = proven
        return proven

    def _agent(self, name: str, signer: KeySigner) -> Path:
        agent = self._agents.get(name)
        if agent is None:
            audience = self.home.key(self.config.broker).key_id
            agent = self._agents[name] = KeyAgent(signer, audience=audience)
        return agent.path

    def status(self, *, at: datetime | None = None) -> DomainStatus:
        """Tell what this domain is, which rights and keys it has and lacks, what ends when, and what to do next."""
        return domain_status(self, at=at)

    def structure(self, name: str | None = None, *, at: datetime | None = None) -> Structure:
        """Tell what belongs to a domain: its brokers and clients, or its sub-domains; this one unless a key is named.

        Raises:
            ChainError: It has sub-domains beside brokers or clients: ``DOMAIN_KIND``.
        """
        folder = self.home.folder
        key = folder.key(self.config.domain if name is None else name)
        return domain_structure(folder, key, at=self.clock() if at is None else at)

    def audit(self) -> DataFrame:
        """Give the audit as a table: who wanted, published, saw or was refused what, and what became of it."""
        return self.engine.audit()
