"""The access control service in process, over a domain's home: the embedded default.

policy/*.rules          the policy, as people write it
policy/domain.toml      how the domain issues
policy/providers.toml   who answers for environment facts
policy/*.agreement      agreements with other domains
store.db                what the service keeps, unless `maia.toml` names another database
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection

from maia.access_control import AccessControl, Environment, Settings, Telling, Withdrawn
from maia.authority import CertificatePool, StatementBook, parse_statement, verify_statement
from maia.database import migrate, open_database
from maia.domain.certificates import push_certificates
from maia.domain.key_groups import open_key_manager
from maia.domain.snapshot import file_state
from maia.errors import EncodingError, KeyFormatError, MaiaError, NotFoundError, UnavailableError, VerificationError
from maia.events import EventType
from maia.home import Home, verify_with_registry
from maia.key_manager import KeyManager
from maia.log import NoticeKind, NoticeLog
from maia.policy import Atom, SignedAgreement, TypeCatalogue, parse_agreement, verify_agreement
from maia.principals import (
    Authenticated,
    Certificate,
    KeyId,
    Signer,
    parse_certificate,
    prove_by_nonce,
    verify_certificate,
)

SETTINGS_FILE = "domain.toml"
POLICY_FOLDER = "policy"
_MAX_SETTINGS = 1 << 16
_MAX_AGREEMENT = 4 << 20
_MAX_AGREEMENTS = 1_000
AGREEMENT_SUFFIX = ".agreement"
_TYPES_LAST = timedelta(seconds=60)
_RETRIES = 5
_MAX_CHAIN = 64
_NONCE = 32
_State = tuple[tuple[str, int, int, int], ...]


class HomeSurroundings:
    """Types, certificates and statements of a home, read again when its files have changed."""

    def __init__(self, home: Home) -> None:
        """Serve a home."""
        self._home = home
        self._types: tuple[_State, datetime, TypeCatalogue] | None = None
        self._certificates = home.certificates

    def types(self, *, at: datetime) -> TypeCatalogue:
        """Give the types that verify now."""
        state = file_state(self._home.path / "types", depth=2) + file_state(self._home.path / "statements")
        known = self._types
        if known is None or known[0] != state or abs(at - known[1]) > _TYPES_LAST:
            networks = () if self._home.network is None else (self._home.network,)
            known = self._types = (state, at, TypeCatalogue(self._verified(at), networks=networks))
        return known[2]

    def _verified(self, at: datetime) -> Iterator[EventType]:
        registry, verifier = self._home.types, self._home.verifier()
        for name in registry.names():
            for unverified in registry.find(name):
                try:
                    yield verify_with_registry(
                        registry, unverified, verifier=verifier, at=at, network=self._home.network
                    ).event_type
                except VerificationError:
                    continue  # nobody can be given a right on what does not verify

    def evidence(self) -> CertificatePool:
        """Give the certificates of the home; only files that are new or changed are read."""
        return self._certificates.current_pool()

    def statements(self) -> StatementBook:
        """Give the statements that the home accepted."""
        return self._home.statements.load()

    def keep(self, certificate: Certificate) -> None:
        """Keep a certificate in the home."""
        self._home.certificates.add(certificate)


class HomeEnvironment:
    """What the providers of a home say now; one that fails says nothing."""

    def __init__(self, home: Home) -> None:
        """Serve a home."""
        self._home = home

    def facts(self, *, at: datetime) -> Iterable[Atom]:
        """List the facts of all providers that can list them."""
        environment = self._home.surroundings().environment
        found: set[Atom] = set()
        for provider in environment.providers():
            try:
                found |= environment.listed(provider, at=at) or frozenset()
            except MaiaError:
                continue  # counted by the environment; a provider that fails means no
        return frozenset(found)


class HomeTelling:
    """Tells the home itself and its log; others follow the log. More listeners may be added."""

    def __init__(self, home: Home, *, listeners: Iterable[Callable[[Withdrawn], object]] = ()) -> None:
        """Serve a home.

        Args:
            home: The home, with its log.
            listeners: Are called with each withdrawal, in order: subscriptions before key groups.
        """
        self._home = home
        self._notices = NoticeLog(home.log_path)
        self._listeners = tuple(listeners)

    def statement(self, signer: KeyId, raw: bytes) -> None:
        """Accept a list in the home, and publish it in the log."""
        statement = verify_statement(parse_statement(raw))
        for _ in range(_RETRIES):
            book = self._home.statements.load()
            try:
                book.accept(statement)
                self._home.statements.save(book)
                break
            except VerificationError:
                break  # told before: a newer one is known here
            except UnavailableError as error:
                if error.code != "STATEMENTS_NEWER_ON_DISK":
                    raise
        self._notices.append(NoticeKind.STATEMENT, signer, raw)

    def certificate(self, domain: KeyId, raw: bytes) -> None:
        """Publish a right of the domain to its brokers, in the log, with the certificates that lead to it."""
        push_certificates(self._notices, domain, self._chain(verify_certificate(parse_certificate(raw))))

    def _chain(self, last: Certificate) -> list[Certificate]:
        """Put what the home holds of the chain in front of a certificate, owner first."""
        chain = [last]
        known, wanted = {last.certificate_id}, {last.body.issuer_id}
        pool = self._home.pool()
        while wanted and len(chain) < _MAX_CHAIN:  # bounded: each certificate enters once
            above = [
                item
                for item in pool
                if getattr(item.body.subject, "key_id", None) in wanted and item.certificate_id not in known
            ][: _MAX_CHAIN - len(chain)]
            wanted = {item.body.issuer_id for item in above}
            for item in above:
                known.add(item.certificate_id)
                with suppress(VerificationError):  # what is forged leads nowhere
                    chain.insert(0, verify_certificate(item))
        return chain

    def withdrawn(self, notice: Withdrawn) -> None:
        """Tell the listeners."""
        for listener in self._listeners:
            listener(notice)


class HomeKeyGroups:
    """Puts brokers out of the key groups that a home manages in process when what admitted them is withdrawn."""

    def __init__(self, home: Home) -> None:
        """Serve a home; its key manager is opened when something is withdrawn."""
        self._home = home
        self._manager: KeyManager | None = None

    def __call__(self, notice: Withdrawn) -> None:
        """Admit nobody on these certificates any more, and refresh the keys of whoever goes."""
        if self._home.config.key_manager is not None:
            return  # it follows the domain's lists in the log by itself
        if self._manager is None:
            try:
                self._manager = open_key_manager(self._home)[0]
            except (NotFoundError, KeyFormatError):
                return  # a home without a key that works unattended manages no groups
        if self._manager.status():
            self._manager.revoke(notice.certificates, at=notice.at)


class HomeAgreements:
    """The agreements of a home, read again when its policy folder has changed; only what verifies counts."""

    def __init__(self, home: Home, domain: KeyId) -> None:
        """Serve a home whose domain has this key."""
        self._home = home
        self._domain = domain
        self._known: tuple[_State, tuple[SignedAgreement, ...]] | None = None

    def all(self) -> tuple[SignedAgreement, ...]:
        """List the agreements that can be read, signed or not."""
        folder = self._home.path / POLICY_FOLDER
        state = file_state(folder)
        if self._known is None or self._known[0] != state:
            found: list[SignedAgreement] = []
            for path in sorted(folder.glob(f"*{AGREEMENT_SUFFIX}"))[:_MAX_AGREEMENTS]:
                try:
                    found.append(read_agreement(path))
                except MaiaError:
                    continue  # a file that is no agreement gives nothing
            self._known = (state, tuple(found))
        return self._known[1]

    def named_roles(self, *, at: datetime) -> frozenset[str]:
        """Give the roles of this domain that agreements in force speak of."""
        roles: set[str] = set()
        for signed in self.all():
            if signed.agreement.receiver.key_id == self._domain:
                try:
                    verify_agreement(signed, at=at, statements=self._home.statements.load())
                except MaiaError:
                    continue
                roles |= signed.agreement.roles
        return frozenset(roles)


def read_agreement(path: Path) -> SignedAgreement:
    """Read the file of an agreement.

    Raises:
        NotFoundError: There is none.
        EncodingError: It is no agreement.
    """
    try:
        with path.open("rb") as file:
            return parse_agreement(file.read(_MAX_AGREEMENT).decode("utf-8"))
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no `{path}`", code="NO_FILE") from error
    except (OSError, UnicodeDecodeError) as error:
        raise EncodingError(f"`{path}` is no agreement", code="AGREEMENT_SHAPE") from error


def read_settings(home: Home) -> Settings:
    """Read how a domain issues; the defaults when its home does not say.

    Raises:
        MalformedError: The file is not what it must be.
    """
    path = home.path / POLICY_FOLDER / SETTINGS_FILE
    if not path.is_file():
        return Settings()
    with path.open("rb") as file:
        return Settings.from_toml(file.read(_MAX_SETTINGS))


def open_access_control(
    home: Home,
    *,
    settings: Settings | None = None,
    signer: Signer | None = None,
    telling: Telling | None = None,
    environment: Environment | None = None,
    transaction: Callable[[], AbstractContextManager[Connection]] | None = None,
) -> AccessControl:
    """Open the service of a home in this process.

    Args:
        home: The domain's home; its `domain` key speaks for it.
        settings: How it issues, in place of ``policy/domain.toml``.
        signer: The domain's key, in place of the file in the home.
        telling: Who must hear, in place of the home and its log.
        environment: What is true outside, in place of the home's providers.
        transaction: How writing transactions begin, for a service that has a leader.

    Raises:
        NotFoundError: The home has no key for its domain: ``NO_DOMAIN_KEY``.
    """
    if signer is None:
        try:
            signer = home.signer(home.config.domain)
        except NotFoundError as error:
            raise NotFoundError(
                f"the home has no key `{home.config.domain}` to speak for the domain", code="NO_DOMAIN_KEY"
            ) from error
    engine = open_database(home.database_url)
    migrate(engine)
    return AccessControl(
        signer=signer,
        engine=engine,
        surroundings=HomeSurroundings(home),
        settings=read_settings(home) if settings is None else settings,
        telling=HomeTelling(home, listeners=[HomeKeyGroups(home)]) if telling is None else telling,
        environment=HomeEnvironment(home) if environment is None else environment,
        named_roles=HomeAgreements(home, signer.public_key.key_id).named_roles,
        transaction=transaction,
    )


def prove_key(service: AccessControl, signer: Signer, *, nonce: bytes, at: datetime) -> Authenticated:
    """Run the protocol of proving a key with a service in this process.

    Args:
        service: The verifier.
        signer: Whose key.
        nonce: At least 16 fresh random octets of the signer's own.
        at: Now.
    """
    challenge = service.challenge(at=at)
    proof = prove_by_nonce(signer, audience=service.key.key_id, challenge=challenge, own_nonce=nonce)
    return service.authenticate(proof, challenge, at=at)
