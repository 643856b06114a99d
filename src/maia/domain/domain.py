"""`Domain`: a home, opened; the one object that lives while a process works for a domain.

It owns the verifier with its caches, the parsed and verified types, the place in the log's notices, the domain's own
key manager and the log, and looks again only at what changed. Every door calls it; none of them decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from maia.domain.client import Client
from maia.domain.explanation import CellExplanation, explain_cell
from maia.domain.following import Follower
from maia.domain.grants import Granted, RevocationDraft, draft_grant, draft_revocation, sign_grant, sign_revocation
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.plans import MAX_EVENTS, Planner
from maia.domain.register import in_register
from maia.domain.snapshot import Snapshot, Snapshots
from maia.domain.status import DomainStatus, domain_status
from maia.domain.types import find_type
from maia.errors import UsageError, VerificationError
from maia.events import EventType, TypeName
from maia.home import Folder, Home, HomeConfig, now, read_key, words
from maia.kernel import DeliverPlan, PublishPlan
from maia.log import Commit, LogDirectory, Repeats
from maia.principals import OnlineTest, Period, Principal, PublicKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from maia.domain.engine import Engine


def _no_passphrase() -> str:
    raise UsageError("the key is sealed: say how to ask for its passphrase", code="PASSPHRASE_MISSING")


MakeEngine = Callable[["Domain"], "Engine"]
AskPassphrase = Callable[[], str]


class Domain:
    """A domain's home, opened.

    Attributes:
        home: Its files.
        log: Its log.
        clock: Reads the time.
    """

    def __init__(self, home: Home, *, engine: MakeEngine | None = None, clock: Callable[[], datetime] = now) -> None:
        """Open a home; nothing is read yet.

        Args:
            home: The files.
            engine: Makes what moves rows, when frames are published or read.
            clock: Reads the time.
        """
        self.home = home
        self.clock = clock
        self.log = LogDirectory(home.log_path)
        self._make_engine = engine
        self._engine: Engine | None = None
        self._own = OwnKeyManager(home)
        self._follower = Follower(home, self._own)
        self._snapshots = Snapshots(home)
        self._planner = Planner(home, self.log, self._own)
        self._repeats: Repeats | None = None

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
    def repeats(self) -> Repeats:
        """Recognises the repetitions in the log."""
        if self._repeats is None:
            self._repeats = Repeats(self.log)
        return self._repeats

    def close(self) -> None:
        """Let go of what was opened; it opens again when it is needed."""
        self._own.close()

    def __enter__(self) -> Self:
        """Work for the domain until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what was opened."""
        self.close()

    def __repr__(self) -> str:
        """Name the domain and its home."""
        return f"<domain {self.name} at {self.path}>"

    # -- what is known

    def follow(self, *, at: datetime | None = None) -> datetime:
        """Bring the home up to date with the notices of its log; return the instant to plan with."""
        return self._follower.follow(at=self.clock() if at is None else at)

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
        client: str,
        version: str | None = None,
        publication: str,
        max_events: int = MAX_EVENTS,
        at: datetime | None = None,
    ) -> PublishPlan:
        """Advertise for a client and compile what its rows will go through.

        Raises:
            MaiaError: The type is unknown, or the client or the broker has no right.
        """
        moment = self.follow(at=at)
        known = self.known(at=moment)
        found = find_type(self.home, name, version, among=known.names)
        return self._planner.publish(
            known, found, self.home.key(client), publication=publication, at=moment, max_events=max_events
        )

    def deliver_plan(
        self,
        name: str,
        *,
        client: str,
        where: str = "",
        version: str | None = None,
        commits: Sequence[Commit],
        at: datetime | None = None,
        history: bool = True,
    ) -> DeliverPlan:
        """Subscribe for a client and compile what it will see of these commits, with the rights of now.

        Raises:
            MaiaError: The type is unknown, the client has no right, or the filter is refused.
        """
        moment = self.follow(at=at)
        known = self.known(at=moment)
        found = find_type(self.home, name, version, among=known.names)
        made = self._planner.subscription(
            known, found, self.home.key(client), identity=client, where=where, at=moment
        )  # fmt: skip
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
            passphrase: Asks for the passphrase of a key that is sealed; never the passphrase itself.

        Raises:
            NotFoundError: The home has no private key of this name: ``NO_FILE``.
            KeyFormatError: The key is sealed, and the passphrase is wrong or nobody was asked.
            VerificationError: ``NAME.key`` and ``NAME.pub`` are of two keys: ``KEY_PAIR``.
        """
        signer = read_key(self.home.key_path(name), passphrase=passphrase)
        key = self.home.key(name)
        if signer.public_key != key:
            raise VerificationError(f"`{name}.key` is not the private key of `{name}.pub`", code="KEY_PAIR")
        return Client(lambda: self.engine, name, key, checkpoints=self.path / "checkpoints")

    def explain(
        self,
        name: str,
        *,
        principal: str,
        attribute: str,
        version: str | None = None,
        at: datetime | None = None,
    ) -> CellExplanation:
        """Explain why a client sees an attribute or not, with the chains behind it."""
        moment = self.clock() if at is None else at
        found = self.find_type(name, version)
        return explain_cell(
            self.known(at=moment), found, self.home.key(principal), principal=principal, attribute=attribute, at=moment
        )

    def grant(
        self,
        to: str,
        type: str,  # noqa: A002 - as everywhere
        *,
        by: str | None = None,
        actions: Sequence[str] = ("subscribe",),
        attributes: Sequence[str] | None = None,
        conditions: Sequence[str] = (),
        delegate: bool = False,
        not_before: datetime | None = None,
        until: datetime | None = None,
        tests: tuple[OnlineTest, ...] | None = None,
        irrevocable: bool = False,
        passphrase: AskPassphrase | None = None,
    ) -> Granted:
        """Give a right on a type, signed with a key of this home, and keep its certificate.

        Args:
            to: Who receives it: the name of a key here, a fingerprint, or a local name such as ``met: brokers``.
            type: The type: ``owner/name@version``, or ``owner/name@*`` for every version.
            by: Whose key signs; the type's owner when its key is here, else the key that speaks for the domain.
            actions: ``publish``, ``subscribe``, ``manage``.
            attributes: Which attributes, by name, each with a demand on the row where there is one
                (``numberplate='AE05 XYZ'``); all when there are none.
            conditions: What must hold whenever the right is used.
            delegate: Whether the receiver may pass it on.
            not_before: From when it is valid.
            until: Until when it is valid.
            tests: Statements that it demands, by which it can be revoked; the lists of whoever signs by default.
            irrevocable: Whether it demands none, so that only its end ends it.
            passphrase: Asks for the passphrase of the signing key, when that is sealed.

        Raises:
            DeniedError: The issuer cannot give it: ``ISSUER_LACKS_RIGHT``.
            MaiaError: Something is unknown or useless; the message says what.
        """
        folder, at = Folder(self.path), self.clock()
        right = words.parse_right(folder, type_=type, actions=list(actions), attributes=attributes)
        issuer = folder.key(self._issuer(folder, right.owner) if by is None else by)
        draft = draft_grant(
            folder, issuer, right, to=words.parse_principal_text(to, folder), at=at, delegate=delegate,
            period=Period(not_before, until), tests=() if irrevocable else tests, conditions=conditions,
        )  # fmt: skip
        return sign_grant(folder, draft, folder.signer(issuer, lambda _: passphrase or _no_passphrase), at=at)

    def revoke(self, certificate: str, *, passphrase: AskPassphrase | None = None) -> RevocationDraft:
        """Revoke a certificate that was given by hand, by a list of the key that it obeys, and tell the log.

        Args:
            certificate: The beginning of its id, or its file.
            passphrase: Asks for the passphrase of the list's key, when that is sealed.

        Returns:
            What was signed, whether the log heard of it, and how long verifiers that did not may go on accepting it.

        Raises:
            UsageError: No list can revoke it, or one did, or the domain's service issued it: ``IN_REGISTER``.
        """
        folder = Folder(self.path)
        if in_register(folder, certificate):
            raise UsageError(
                f"the domain's service issued `{certificate}`; `maia revoke {certificate}` ends what stands on it too",
                code="IN_REGISTER",
            )
        draft, at = draft_revocation(folder, folder.certificate(certificate), at=self.clock()), self.clock()
        signer = folder.signer(draft.signer, lambda _: passphrase or _no_passphrase)
        made = sign_revocation(folder, draft, signer, at=at)
        return replace(draft, body=made.body, told=made.told)

    def status(self, *, at: datetime | None = None) -> DomainStatus:
        """Tell what this domain is, which rights and keys it has and lacks, what ends when, and what to do next."""
        return domain_status(self, at=at)

    def _issuer(self, folder: Folder, owner: Principal | None) -> str:
        name = folder.names.get(owner.key_id) if isinstance(owner, PublicKey) else None
        return name if name is not None and folder.key_path(name).is_file() else self.home.config.domain

    def audit(self) -> DataFrame:
        """Give the audit as a table: who published, saw or was refused what."""
        return self.engine.audit()
