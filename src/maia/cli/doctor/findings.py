"""What `maia doctor` looks at: Python, packages, Java, and the files, rights, keys and lists of a home."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from maia.cli.show.words import counted

_PACKAGES = (
    *("alembic", "cel-expr-python", "cryptography", "fastapi", "http-message-signatures", "http-sf", "httpcore2"),
    *("httpx2", "lark", "numpy", "pandas", "platformdirs", "protobuf", "pyarrow", "pydantic", "pynacl", "pyspark"),
    *("rich", "sqlalchemy", "starlette", "typer", "uvicorn"),
)
_OLDEST = (3, 11)
_MAX_FILES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warning", "problem"]
    detail: str
    hint: str = ""

    def to_json(self) -> dict[str, str]:
        """Give it for machines."""
        data = {"name": self.name, "status": self.status, "detail": self.detail}
        return data | ({"hint": self.hint} if self.hint else {})


def look(home: Path) -> list[Finding]:
    """Look at the installation and at a home."""
    return [_python(), *_packages(), _java(), _peer(), *_home(home), *_domain(home)]


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < _OLDEST:
        return Finding(name="Python", status="problem", detail=version, hint="Maia needs Python 3.11 or newer")
    return Finding(name="Python", status="ok", detail=version)


def _packages() -> list[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in _PACKAGES:
        try:
            found.append(Finding(name=name, status="ok", detail=version(name)))
        except PackageNotFoundError:
            found.append(Finding(name=name, status="problem", detail="missing", hint=f"install the package `{name}`"))
    return found


def _java() -> Finding:
    """Look for Java where Spark jobs will; nothing else needs it."""
    from maia.errors import UnavailableError
    from maia.spark import find_java

    configured = os.environ.get("JAVA_HOME")
    if configured and not (Path(configured) / "bin" / "java").is_file():
        detail = f"JAVA_HOME holds no java: {configured}"
        return Finding(name="Java", status="warning", detail=detail, hint="mend or unset JAVA_HOME")
    try:
        java = find_java()
    except UnavailableError as error:
        detail = "not found; only Spark jobs need it"
        return Finding(name="Java", status="warning", detail=detail, hint=error.message)
    place = "" if java.home is None else f": {java.home}"
    return Finding(name="Java", status="ok", detail=f"from {java.origin}{place}")


def _peer() -> Finding:
    found = shutil.which("sexp-conv")
    if found is None:
        return Finding(
            name="sexp-conv", status="warning", detail="not found; only tests compare with it",
            hint="install the package nettle-bin",
        )  # fmt: skip
    return Finding(name="sexp-conv", status="ok", detail=found)


def _home(home: Path) -> list[Finding]:
    folder = home / "keys"
    if not folder.is_dir():
        hint = "`maia key new NAME` makes one"
        return [Finding(name="home", status="warning", detail=f"no keys in {home}", hint=hint)]
    found = []
    for path in sorted(folder.glob("*.key"))[:_MAX_FILES]:
        found += _key_file(path)
    found += _evidence(home)
    if not any(item.status == "problem" for item in found):
        count = sum(1 for _ in folder.glob("*.key"))
        found.append(Finding(name="home", status="ok", detail=f"{counted(count, 'private key')}, closed to others"))
    return found


def _key_file(path: Path) -> list[Finding]:
    from maia.principals import is_sealed

    status = path.stat()
    found = []
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        mode = stat.filemode(status.st_mode)
        found.append(
            Finding(name=path.name, status="problem", detail=f"others may touch it: {mode}", hint=f"chmod 600 {path}")
        )
    elif not is_sealed(path.read_bytes()):
        found.append(Finding(name=path.name, status="warning", detail="not sealed by a passphrase"))
    if not path.with_suffix(".pub").is_file():
        found.append(Finding(name=path.name, status="warning", detail="its public key is missing"))
    return found


def _evidence(home: Path) -> list[Finding]:
    from maia.errors import MaiaError
    from maia.home import Folder

    place = Folder(home)
    found = []
    refused = place.pool().refused
    if refused:
        found.append(
            Finding(
                name="certificates",
                status="warning",
                detail=counted(len(refused), "file is no certificate", "files are no certificates"),
                hint="`maia verify` names them",
            )
        )
    try:
        place.book()
    except MaiaError as error:
        found.append(
            Finding(name="statements", status="problem", detail=str(error), hint="bring back a whole copy of the file")
        )
    return found


def _domain(home: Path) -> list[Finding]:
    """Tell what a domain lacks, as `maia status` does: rights of its broker, keys, lists, renewals, deliveries."""
    from maia.errors import MaiaError

    if not (home / "maia.toml").is_file():
        return []
    import maia
    from maia.domain import domain_status

    try:
        status = domain_status(maia.open(home))
    except MaiaError as error:
        return [Finding(name="domain", status="problem", detail=str(error))]
    found = [Finding(name="domain", status="problem", detail=text) for text in status.problems]
    for step in status.steps:
        where = f" (in {step.where})" if step.where else ""
        found.append(Finding(name="domain", status="warning", detail=step.why, hint=f"{step.command}{where}"))
    if not found:
        types = counted(len(status.types), "type")
        found.append(Finding(name="domain", status="ok", detail=f"{status.name}: {types}, nothing is missing"))
    return found
