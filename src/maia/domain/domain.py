"""`Domain`: a home, opened; the one object that lives while a process works for a domain.

It owns the verifier with its caches, the parsed and verified types, the place in the log's notices, the domain's own
key manager and the log, and looks again only at what changed. Every door calls it; none of them decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from maia.domain.client import Client
from maia.domain.explanation import CellExplanation, explain_cell
from maia.domain.following import Follower
from maia.domain.given import AskPassphrase, asks, several
from maia.domain.grants import Granted, RevocationDraft, draft_grant, revoke_certificate, sign_grant
from maia.domain.operations import refusals, unproven
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.plans import MAX_EVENTS, Planner
from maia.domain.possession import ProvenClient, is_locked, prove_by_agent, prove_client, unlock_client
from maia.domain.publication import own_lanes
from maia.domain.snapshot import Snapshot, Snapshots
from maia.domain.status import DomainStatus, domain_status
from maia.domain.stretches import admits_by, wire_types
from maia.domain.topics import TypeOrTopic
from maia.domain.types import find_type
from maia.encoding import html_table
from maia.errors import UsageError
from maia.events import EventType, TypeName
from maia.home import Folder, Home, HomeConfig, KeyAgent, now, passphrase_asker, words
from maia.kernel import DeliverPlan, PublishPlan
from maia.log import Admits, Commit, LogDirectory, OwnLanes
from maia.principals import KeySigner, OnlineTest, Period, Principal, PublicKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from maia.domain.engine import Engine
    from maia.domain.peers import InvitedPeer, PeerState


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
        self.log = LogDirectory(home.log_path, judge=self._admits)
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

    def event_type(self, name: str, version: str | None = None, *, at: datetime | None = None) -> EventType:
        """Return a version of a type that verifies now.

        Raises:
            MaiaError: There is none, or it does not verify.
        """
        moment = self.clock() if at is None else at
        found = self.find_type(name, version)
        return self.known(at=moment).sessions.event_type(found.type_id, found.version.text, at=moment)

    # -- plans

    def publish_plan(
        self,
        name: str,
        *,
        client: ProvenClient,
        version: str | None = None,
        publication: str,
        max_events: int = MAX_EVENTS,
        advertise: str | None = None,
        at: datetime | None = None,
    ) -> PublishPlan:
        """Advertise for a client, whose key was proven, and compile what its rows will go through.

        Raises:
            MaiaError: The type is unknown, the client or the broker has no right, or what the client announces is out
                of the bounds of its right.
        """
        moment = self.follow(at=at)
        known = self.known(at=moment)
        found = find_type(self.home, name, version, among=known.names)
        with refusals(self.home, client, found, at=moment):
            return self._planner.publish(
                known, found, client.key, publication=publication, at=moment, max_events=max_events, advertise=advertise
            )

    def deliver_plan(
        self,
        name: str | TypeName,
        *,
        client: ProvenClient,
        where: str = "",
        version: str | None = None,
        commits: Sequence[Commit],
        at: datetime | None = None,
        followed: bool = False,
        history: bool = True,
        tell: bool = True,
    ) -> DeliverPlan:
        """Subscribe for a client, whose key was proven, and compile what it will see; ``tell`` the audit of a refusal.

        Whoever ``followed`` the log just now, to find the commits, gives the instant that `follow` returned.

        Raises:
            MaiaError: The type is unknown, the client has no right, or the filter is refused.
        """
        moment = at if followed and at is not None else self.follow(at=at)
        known = self.known(at=moment)
        found = name if isinstance(name, TypeName) else find_type(self.home, name, version, among=known.names)
        with refusals(self.home, client, found, at=moment, tell=tell):
            who = {"holder": client.name, "identity": client.name}
            made = self._planner.subscription(known, found, client.key, **who, where=where, at=moment, proven=True)
            return self._planner.deliver(known, (made,), commits, at=moment, history=history)

    @property
    def planner(self) -> Planner:
        """Compiles plans from a snapshot."""
        return self._planner

    # -- what a user does

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
            lambda: self.engine, proven, locked=is_locked(self.home, name),
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

    def explain(
        self, name: str, *, principal: str, attribute: str, version: str | None = None, at: datetime | None = None
    ) -> CellExplanation:
        """Explain why a client sees an attribute or not, with the chains behind it.

        Raises:
            MaiaError: The type, the attribute or the client is unknown here; the message has the nearest name.
        """
        folder, moment = Folder(self.path), self.clock() if at is None else at
        found = self.find_type(name, version)
        return explain_cell(
            self.known(at=moment), found, folder.key(principal), principal=principal, attribute=attribute,
            folder=folder, at=moment,
        )  # fmt: skip

    def grant(
        self,
        to: str,
        type: str | None = None,  # noqa: A002 - as everywhere
        *,
        topic: str | None = None,
        sub_topics: bool = False,
        by: str | None = None,
        actions: str | Sequence[str] = "subscribe",
        attributes: str | Sequence[str] | None = None,
        bounds: str | Sequence[str] = (),
        conditions: str | Sequence[str] = (),
        delegate: bool = False,
        not_before: datetime | None = None,
        until: datetime | None = None,
        tests: str | OnlineTest | Sequence[str | OnlineTest] | None = None,
        irrevocable: bool = False,
        passphrase: AskPassphrase | None = None,
    ) -> Granted:
        """Give a right on a type or a topic, signed with a key of this home, and keep its certificate.

        Where several texts may stand, one alone may stand for itself: ``actions="publish"``, ``attributes="ward"``.

        Args:
            to: Who receives it: the name of a key here, a fingerprint, or a local name such as ``met: brokers``.
            type: The type: ``owner/name@version``, or ``owner/name@*`` for every version.
            topic: In its place, a topic; a right to subscribe is on all below it as well.
            sub_topics: With a topic: whether a right to publish is on all below it as well.
            by: Whose key signs; the type's owner when its key is here, else the key that speaks for the domain.
            actions: ``publish``, ``subscribe``, ``manage``.
            attributes: Which attributes, by name, each with a demand on the row where there is one
                (``numberplate='AE05 XYZ'``); all when there are none.
            bounds: Access-control filters that what is published or subscribed to must keep to, all of them:
                ``upper (message = 'new_product')``.
            conditions: What must hold whenever the right is used.
            delegate: Whether the receiver may pass it on.
            not_before: From when it is valid.
            until: Until when it is valid.
            tests: Statements that it demands, by which it can be revoked: ``crl:SIGNER``, as in ``maia grant --test``;
                the lists of whoever signs by default.
            irrevocable: Whether it demands none, so that only its end ends it.
            passphrase: Asks for the passphrase of the signing key, when that is sealed.

        Raises:
            DeniedError: The issuer cannot give it: ``ISSUER_LACKS_RIGHT``.
            MaiaError: Something is unknown or useless; the message says what.
        """
        folder, at = self.home.folder, self.clock()
        events, does, cells = TypeOrTopic(type=type, topic=topic), several(actions), several(attributes)
        if events.topic is None:
            right = words.parse_right(folder, type_=type, actions=does, attributes=cells, bounds=several(bounds))
        else:
            right = words.parse_topic_right(
                folder, events.topic, actions=does, attributes=cells, sub_topics=sub_topics
            )  # fmt: skip
        issuer = folder.key(self._issuer(folder, right.owner) if by is None else by)
        draft = draft_grant(
            folder, issuer, right, to=words.parse_principal_text(to, folder), at=at, delegate=delegate,
            period=Period(not_before, until), conditions=several(conditions) or (),
            tests=() if irrevocable else None if tests is None else words.parse_tests(tests, folder),
        )  # fmt: skip
        return sign_grant(
            folder, draft, folder.signer(issuer, lambda name: asks(passphrase) or passphrase_asker(name)), at=at
        )

    def revoke(self, certificate: str | Granted, *, passphrase: AskPassphrase | None = None) -> RevocationDraft:
        """Revoke a certificate by a list of the key that it obeys, at once, and tell the log.

        What the domain's service issued is revoked there, with everything that stands on it.

        Args:
            certificate: What `grant` returned, the beginning of the certificate's id, or its file.
            passphrase: Asks for the passphrase of the list's key, when that is sealed.

        Returns:
            What was signed, whether the log heard of it, and how long verifiers that did not may go on accepting it.

        Raises:
            UsageError: No list can revoke it, or one did.
        """
        folder = self.home.folder
        text = certificate.certificate.certificate_id.hex() if isinstance(certificate, Granted) else certificate
        return revoke_certificate(
            folder, text, lambda key: folder.signer(key, lambda name: asks(passphrase) or passphrase_asker(name)),
            at=self.clock(),
        )  # fmt: skip

    def invite_peer(
        self,
        peer: str,
        *,
        give: str | Sequence[str],
        until: datetime | None = None,
        key: str | None = None,
        history: datetime | None = None,
        log: str | None = None,
        passphrase: AskPassphrase | None = None,
    ) -> InvitedPeer:
        """Invite another organisation: one signed file that works once. ``save(path)`` writes it.

        Args:
            peer: What people call the other organisation.
            give: What its roles may do: ``researcher |- subscribe Result(ward, test)``.
            until: Until when it may answer; a week by default.
            key: The other's key, when only that may answer.
            history: Since when events are opened to it; from its admission on by default.
            log: Where the other finds the log, when not where this home does.
            passphrase: Asks for the passphrase of the domain's key, when that is sealed.

        Raises:
            DeniedError: This domain cannot give it: ``ISSUER_LACKS_RIGHT``.
            MaiaError: A row is none, or nobody manages the keys of a type; the message says what.
        """
        from maia.domain.peers import invite_peer  # noqa: PLC0415 - needs a database

        return invite_peer(
            self.home, self._speaker(passphrase), self._own, peer, give=several(give) or (), at=self.clock(),
            until=until, peer_key=None if key is None else self.home.folder.key(key), history=history, log=log,
        )  # fmt: skip

    def connect(
        self,
        file: Path | str,
        *,
        readers: str | Sequence[str] = (),
        log: Path | None = None,
        passphrase: AskPassphrase | None = None,
    ) -> PeerState:
        """Connect with another organisation: answer its invitation, or admit whoever answered this domain's.

        Args:
            file: The invitation, or the answer. Calling this agrees to what it offers or asks for.
            readers: With an invitation: keys of this home that are given the agreed roles at once.
            log: With an invitation: where the shared log is for this home.
            passphrase: Asks for the passphrase of the domain's key, when that is sealed.

        Returns:
            What was done; its ``text`` is the answer to be sent back, after an invitation.

        Raises:
            MaiaError: The file is altered, over, used, or for somebody else; the code says which.
        """
        from maia.domain.peers import connect_peer  # noqa: PLC0415 - needs a database

        done = connect_peer(
            self.home, self._speaker(passphrase), self._own, Path(file), at=self.clock(),
            readers=several(readers) or (), log=log,
        )  # fmt: skip
        self.close()
        self._work_with(Home.open(self.path))
        return done

    def _speaker(self, passphrase: AskPassphrase | None) -> KeySigner:
        """Open the key that speaks for the domain."""
        folder = self.home.folder
        return folder.signer(folder.key(self.config.domain), lambda name: asks(passphrase) or passphrase_asker(name))

    def status(self, *, at: datetime | None = None) -> DomainStatus:
        """Tell what this domain is, which rights and keys it has and lacks, what ends when, and what to do next."""
        return domain_status(self, at=at)

    def _issuer(self, folder: Folder, owner: Principal | None) -> str:
        name = folder.names.get(owner.key_id) if isinstance(owner, PublicKey) else None
        return name if name is not None and folder.key_path(name).is_file() else self.home.config.domain

    def audit(self) -> DataFrame:
        """Give the audit as a table: who wanted, published, saw or was refused what, and what became of it."""
        return self.engine.audit()
