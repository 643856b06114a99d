"""Whether the files of a home are in order: private keys closed to others, certificates and statements readable."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from maia.encoding import counted
from maia.errors import MaiaError
from maia.home.folder import Folder
from maia.principals import is_sealed

_MAX_FILES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """One thing that was looked at: what it is, how it stands, and what to do about it."""

    name: str
    status: Literal["ok", "warning", "problem"]
    detail: str
    hint: str = ""

    def to_json(self) -> dict[str, str]:
        """Give it for machines."""
        data = {"name": self.name, "status": self.status, "detail": self.detail}
        return data | ({"hint": self.hint} if self.hint else {})


def check_files(home: Path) -> list[HealthFinding]:
    """Look at the files of a home, or of a working folder that is none yet."""
    paths = sorted((home / "keys").glob("*.key"))[:_MAX_FILES]
    if not (home / "keys").is_dir():
        hint = "`maia key new NAME` makes one"
        return [HealthFinding(name="home", status="warning", detail=f"no keys in {home}", hint=hint)]
    found = [finding for path in paths for finding in _key_file(path)] + list(_evidence(home))
    if not any(item.status == "problem" for item in found):
        detail = f"{counted(len(paths), 'private key')}, closed to others"
        found.append(HealthFinding(name="home", status="ok", detail=detail))
    return found


def _key_file(path: Path) -> Iterator[HealthFinding]:
    status = path.stat()
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        mode = stat.filemode(status.st_mode)
        yield HealthFinding(
            name=path.name, status="problem", detail=f"others may touch it: {mode}", hint=f"chmod 600 {path}"
        )
    elif not is_sealed(path.read_bytes()):
        yield HealthFinding(name=path.name, status="warning", detail="not sealed by a passphrase")
    if not path.with_suffix(".pub").is_file():
        yield HealthFinding(name=path.name, status="warning", detail="its public key is missing")


def _evidence(home: Path) -> Iterator[HealthFinding]:
    place = Folder(home)
    refused = len(place.pool().refused)
    if refused:
        what = "1 file is no certificate" if refused == 1 else f"{refused:,} files are no certificates"
        yield HealthFinding(name="certificates", status="warning", detail=what, hint="`maia verify` names them")
    try:
        place.book()
    except MaiaError as error:
        hint = "bring back a whole copy of the file"
        yield HealthFinding(name="statements", status="problem", detail=str(error), hint=hint)
