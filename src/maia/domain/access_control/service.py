"""The access control service in process, over a domain's home: the embedded default.

policy/*.rules          the policy, as people write it
policy/domain.toml      how the domain issues
policy/providers.toml   who answers for environment facts
policy/*.agreement      agreements with other domains
store.db                what the service keeps, unless `maia.toml` names another database
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from maia.access_control import AccessControl, Outside, Settings, Telling
from maia.database import OpenDatabase, Transactions, migrate, open_database
from maia.domain.access_control.agreements import HomeAgreements
from maia.domain.access_control.holdings import HomeHoldings, HomeProviders
from maia.domain.access_control.listeners import HomeKeyGroups, HomeTelling
from maia.domain.access_control.series import HomeSeries
from maia.domain.agreement_files import POLICY_FOLDER
from maia.errors import NotFoundError
from maia.home import Home
from maia.principals import Authenticated, Signer, prove_by_nonce

SETTINGS_FILE = "domain.toml"
_MAX_SETTINGS = 1 << 16


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


def domain_signer(home: Home) -> Signer:
    """Open the key that speaks for a home's domain.

    Raises:
        NotFoundError: The home has none: ``NO_DOMAIN_KEY``.
    """
    name = home.config.domain
    try:
        return home.signer(name)
    except NotFoundError as error:
        raise NotFoundError(f"the home has no key `{name}` to speak for the domain", code="NO_DOMAIN_KEY") from error


def open_access_control(
    home: Home,
    *,
    settings: Settings | None = None,
    signer: Signer | None = None,
    telling: Telling | None = None,
    outside: Outside | None = None,
    transaction: Transactions | None = None,
    engine: OpenDatabase | None = None,
) -> AccessControl:
    """Open the service of a home in this process.

    Args:
        home: The domain's home; its `domain` key speaks for it.
        settings: How it issues, in place of ``policy/domain.toml``.
        signer: The domain's key, in place of the file in the home.
        telling: Who must hear, in place of the home and its log.
        outside: What is true outside, in place of the home's providers.
        transaction: How writing transactions begin, for a service that has a leader.
        engine: The home's database, migrated, when the process has it open: a process opens a database once.

    Raises:
        NotFoundError: The home has no key for its domain: ``NO_DOMAIN_KEY``.
    """
    if signer is None:
        signer = domain_signer(home)
    if engine is None:
        engine = open_database(home.database_url)
        migrate(engine)
    return AccessControl(
        signer=signer,
        engine=engine,
        holdings=HomeHoldings(home),
        settings=read_settings(home) if settings is None else settings,
        telling=HomeTelling(home, signer, listeners=[HomeKeyGroups(home, engine)]) if telling is None else telling,
        outside=HomeProviders(home) if outside is None else outside,
        named_roles=HomeAgreements(home, signer.public_key.key_id).named_roles,
        own_series=HomeSeries(home, signer.public_key.key_id),
        transaction=transaction,
    )


@contextmanager
def open_register(home: Home, signer: Signer) -> Iterator[AccessControl]:
    """Open the service of a home, and close its database in the end."""
    engine = open_database(home.database_url)
    try:
        migrate(engine)
        yield open_access_control(home, signer=signer, engine=engine)
    finally:
        engine.dispose()


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
