"""What the register of a domain's access control service knows, for whoever is not the service."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from maia.errors import MaiaError
from maia.home import Folder, Home
from maia.principals import PublicKey


def has_register(folder: Folder) -> bool:
    """Tell whether a folder is the home of a domain whose service has a database by now."""
    if not (folder.path / "maia.toml").is_file():
        return False
    url = Home.of(folder).database_url
    return "://" in url or Path(url).is_file()


def in_register(folder: Folder, text: str) -> bool:
    """Tell whether a certificate was issued by the service of this home's domain, which then revokes it."""
    from maia import database  # noqa: PLC0415 - most homes have no service

    if not has_register(folder):
        return False
    home = Home.of(folder)
    try:
        key, identity = folder.key(home.config.domain), folder.certificate(text).certificate_id
    except MaiaError:
        return False
    engine = database.open_database(home.database_url)
    try:
        database.migrate(engine)
        with database.reading(engine) as connection:
            return database.AccessControlRecords(connection, key.key_id).certificates.find(identity) is not None
    finally:
        engine.dispose()


def active_roles(home: Home, key: PublicKey, *, at: datetime) -> frozenset[str]:
    """Name the roles that a key has active now; none where it is no present member's, or nobody keeps a register.

    Roles whose time is over, or whose ground is gone, end before they are listed.

    Raises:
        MaiaError: There is a register that cannot be asked; nobody knows the roles then.
    """
    from maia.domain.access_control import domain_signer, open_register  # noqa: PLC0415 - most homes have no service

    if not has_register(home.folder):
        return frozenset()
    with open_register(home, domain_signer(home)) as service:
        names = [item.name for item in service.members(at=at) if item.key == key and item.gone is None]
        return frozenset(role.atom.name for name in names for role in service.roles(at=at, principal=name))


def names_by_key(home: Home, key: PublicKey, *, at: datetime) -> frozenset[str]:
    """Name a key as policies may call it: every name that the home has for it, and the roles active for it.

    Raises:
        MaiaError: The register cannot be asked.
    """
    # SECURITY: by key: what is denied under one of its names, or to one of its roles, is denied under every other.
    return active_roles(home, key, at=at) | {name for name, known in home.folder.keys.items() if known == key}
