"""Bringing a database to the tables of this version of Maia; there is no way back but a copy.

Migrations are shipped inside the package and run in one writing transaction: two processes that start at once run them
one after the other, and a crash leaves the tables as they were.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Engine

from maia.database.engine import transaction
from maia.errors import UnavailableError

_SCRIPTS = Path(__file__).parent / "migrations"


def migrate(engine: Engine) -> None:
    """Make or change the tables to what this version needs; a database that is up to date is left alone.

    Raises:
        UnavailableError: The database did not do it, or was made by a newer version (`DATABASE_NEWER`).
    """
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    with transaction(engine) as connection:
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise UnavailableError("the database was made by another version of Maia", code="DATABASE_NEWER") from error
