"""What `maia doctor` looks at: Python, packages, Java, and the files, rights, keys and lists of a home."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from maia.encoding import counted
from maia.home import HealthFinding, check_files

if TYPE_CHECKING:
    from maia.domain import Domain

_PACKAGES = (
    *("alembic", "anyio", "cel-expr-python", "cryptography", "fastapi", "http-message-signatures", "http-sf"),
    *("httpcore2", "httpx2", "jinja2", "lark", "markupsafe", "numpy", "obstore", "pandas", "platformdirs", "protobuf"),
    *(
        "pyarrow",
        "pydantic",
        "pynacl",
        "pyspark",
        "rich",
        "sqlalchemy",
        "starlette",
        "typer",
        "uvicorn",
        "wasmtime",
        "websockets",
    ),
)
_OLDEST = (3, 11)


def look(home: Path, *, digests: bool = False) -> list[HealthFinding]:
    """Look at the installation and at a home."""
    return [
        _python(),
        *_packages(),
        _java(),
        _peer(),
        *check_files(home),
        *_store(home),
        *_domain(home, digests=digests),
    ]


def _python() -> HealthFinding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < _OLDEST:
        return HealthFinding(name="Python", status="problem", detail=version, hint="Maia needs Python 3.11 or newer")
    return HealthFinding(name="Python", status="ok", detail=version)


def _packages() -> list[HealthFinding]:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in _PACKAGES:
        try:
            found.append(HealthFinding(name=name, status="ok", detail=version(name)))
        except PackageNotFoundError:
            found.append(
                HealthFinding(name=name, status="problem", detail="missing", hint=f"install the package `{name}`")
            )
    return found


def _java() -> HealthFinding:
    """Look for Java where Spark jobs will; nothing else needs it."""
    from maia.errors import UnavailableError
    from maia.spark import find_java

    configured = os.environ.get("JAVA_HOME")
    if configured and not (Path(configured) / "bin" / "java").is_file():
        detail = f"JAVA_HOME holds no java: {configured}"
        return HealthFinding(name="Java", status="warning", detail=detail, hint="mend or unset JAVA_HOME")
    try:
        java = find_java()
    except UnavailableError as error:
        detail = "not found; only Spark jobs need it"
        return HealthFinding(name="Java", status="warning", detail=detail, hint=error.message)
    place = "" if java.home is None else f": {java.home}"
    return HealthFinding(name="Java", status="ok", detail=f"from {java.origin}{place}")


def _peer() -> HealthFinding:
    found = shutil.which("sexp-conv")
    if found is None:
        return HealthFinding(
            name="sexp-conv", status="warning", detail="not found; only tests compare with it",
            hint="install the package nettle-bin",
        )  # fmt: skip
    return HealthFinding(name="sexp-conv", status="ok", detail=found)


def _store(home: Path) -> list[HealthFinding]:
    """Try whether a store that is no directory does what the log needs: it answers, keeps conditions, has our time."""
    from maia.errors import MaiaError

    if not (home / "maia.toml").is_file():
        return []
    from maia.home import Home

    try:
        opened = Home.open(home)
    except MaiaError:
        return []  # told by whoever looks at the domain
    if "://" not in opened.log_place:
        return []
    from maia.home import now
    from maia.log import check_store

    place = opened.log_place
    try:
        seen = check_store(opened.log_store, clock=now)
    except MaiaError as error:
        hint = "see that the bucket is there, and the endpoint and the credentials in the environment"
        if place.startswith("kafka://"):
            hint = "see that a node listens there, `KAFKA_SECURITY_PROTOCOL` and the credentials in the environment"
        return [HealthFinding(name="store", status="problem", detail=f"{place}: {error.message}", hint=hint)]
    hint = "keep the log in a store with conditional puts; until then two processes may write the same number"
    found = [
        HealthFinding(name="store", status="problem", detail=f"{place} {failure}", hint=hint)
        for failure in seen.failures
    ]
    seconds = seen.ahead.total_seconds()
    if abs(seconds) > opened.config.skew:
        detail = f"{place}: its clock and ours are {abs(seconds):.0f} s apart"
        found.append(HealthFinding(name="store", status="warning", detail=detail, hint="set this machine's clock"))
    return found or [HealthFinding(name="store", status="ok", detail=f"{place}: answers, and keeps conditions")]


def _domain(home: Path, *, digests: bool) -> list[HealthFinding]:
    """Tell what a domain lacks, as `maia status` does: rights of its broker, keys, lists, renewals, deliveries."""
    from maia.errors import MaiaError

    if not (home / "maia.toml").is_file():
        return []
    import maia
    from maia.domain import domain_status, find_losses

    try:
        domain = maia.open(home)
        status = domain_status(domain)
    except MaiaError as error:
        return [HealthFinding(name="domain", status="problem", detail=str(error))]
    found = [HealthFinding(name="domain", status="problem", detail=text) for text in status.problems]
    for step in status.steps:
        where = f" (in {step.where})" if step.where else ""
        found.append(HealthFinding(name="domain", status="warning", detail=step.why, hint=f"{step.command}{where}"))
    try:
        found += find_losses(domain.home)
    except MaiaError as error:
        found.append(HealthFinding(name="database", status="problem", detail=str(error)))
    found += _segments(domain, digests=digests)
    if not found:
        types = counted(len(status.types), "type")
        found.append(HealthFinding(name="domain", status="ok", detail=f"{status.name}: {types}, nothing is missing"))
    return found


def _segments(domain: Domain, *, digests: bool) -> list[HealthFinding]:
    """Look whether the log still has the events that this domain published."""
    from maia.errors import MaiaError
    from maia.log import lost_segments

    broker = domain.home.key(domain.home.config.broker)
    hint = "bring it back from a copy of the log; readers wait for it"
    try:
        return [
            HealthFinding(name="log", status="problem", detail=f"`{path}`: {code}", hint=hint)
            for path, code in dict.fromkeys(lost_segments(domain.log, broker.key_id, digests=digests))
        ]
    except MaiaError as error:
        return [HealthFinding(name="log", status="problem", detail=str(error))]
