"""Withdrawal through the service of the domain, for `maia revoke`."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

from maia.cli.acs import open_domain, revocation_lines, revocation_to_json
from maia.cli.show.output import note, printable, write_json, write_line
from maia.errors import MaiaError, UsageError
from maia.home import Folder


def in_register(place: Folder, text: str) -> bool:
    """Tell whether a certificate was issued by the service of this home's domain."""
    from maia import database
    from maia.home import Home

    if not (place.path / "maia.toml").is_file():
        return False
    home = Home.open(place.path)
    if "://" not in home.database_url and not Path(home.database_url).is_file():
        return False
    try:
        key = place.key(home.config.domain)
        identity = place.certificate(text).certificate_id
    except MaiaError:
        return False
    engine = database.open_database(home.database_url)
    try:
        database.migrate(engine)
        with database.reading(engine) as connection:
            return database.AccessControlRecords(connection, key.key_id).certificate(identity) is not None
    finally:
        engine.dispose()


def revoke_in_domain(
    place: Folder,
    certificate: str | None,
    role: str | None,
    principal: str | None,
    *,
    at: datetime,
    preview: bool,
    yes: bool,
    passphrase_file: Path | None,
    json: bool,
) -> None:
    """Show what a withdrawal ends, ask, and do it."""
    _, service = open_domain(place.path, passphrase_file)
    ids = [] if certificate is None else [place.certificate(certificate).certificate_id]
    foreseen = service.preview_revocation(at=at, certificates=ids, role=role, principal=principal)
    done = foreseen
    if not preview:
        if not yes:
            for line in revocation_lines(foreseen):
                note(line)
            _confirm()
        done = service.revoke(at=at, certificates=ids, role=role, principal=principal)
    if json:
        write_json({**revocation_to_json(done), "withdrawn": not preview})
        return
    for line in revocation_lines(done):
        write_line(printable(line))
    note("nothing was withdrawn" if preview else "withdrawn" if done.told else "withdrawn; not everybody has heard yet")


def _confirm() -> None:
    print("Withdraw all this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline(64).strip().lower() not in ("y", "yes"):
        raise UsageError("not withdrawn: nobody confirmed it", code="CONFIRMATION_MISSING")
