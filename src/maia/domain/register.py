"""What the register of a domain's access control service knows, without the service."""

from __future__ import annotations

from pathlib import Path

from maia.errors import MaiaError
from maia.home import Folder, Home


def has_register(folder: Folder) -> bool:
    """Tell whether a folder is the home of a domain whose service has a database by now."""
    if not (folder.path / "maia.toml").is_file():
        return False
    url = Home.open(folder.path).database_url
    return "://" in url or Path(url).is_file()


def in_register(folder: Folder, text: str) -> bool:
    """Tell whether a certificate was issued by the service of this home's domain, which then revokes it."""
    from maia import database  # noqa: PLC0415 - most homes have no service

    if not has_register(folder):
        return False
    home = Home.open(folder.path)
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
