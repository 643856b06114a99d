"""A real PostgreSQL for tests: started once a worker, on a socket in a folder of its own, gone with the worker.

The server refuses to run as root, so a root test run starts it as ``postgres`` or ``nobody``. It listens on no network
address. It dies with the process that started it, even if that is killed.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # the tests kill services, never this server's machine
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
}
PR_SET_PDEATHSIG = 1


def find_binaries() -> Path | None:
    """Find the folder that holds `initdb` and `postgres`, the newest if there are several."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    for place in PLACES:
        folders += sorted(Path("/").glob(place.removeprefix("/")), reverse=True)
    return next(
        (folder for folder in folders if (folder / "initdb").is_file() and (folder / "postgres").is_file()), None
    )


class PostgresServer:
    """A server that runs until `stop`."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self.user = self._unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="maia-pg-"))
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)

    @staticmethod
    def _unprivileged() -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name: entry for entry in pwd.getpwall()}
        return names.get("postgres") or names["nobody"]

    def start(self) -> None:
        """Make the cluster and wait until it answers."""
        data = self.folder / "data"
        identity = (
            {} if self.user is None else {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        )
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": str(self.folder)}
        initdb = [self.binaries / "initdb", "-D", data, "-U", "maia", "-A", "trust", "-E", "UTF8", "--no-sync"]
        made = subprocess.run(initdb, capture_output=True, text=True, env=environment, cwd=self.folder, **identity)  # noqa: PLW1510
        assert made.returncode == 0, made.stderr
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [self.binaries / "postgres", "-D", data, "-k", self.folder, *settings]
        with (self.folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=self.folder,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - two system calls, nothing of Python's
                **identity,
            )
        for _ in range(600):
            if self._answers():
                return
            assert self._process.poll() is None, (self.folder / "output").read_text()
            time.sleep(0.05)
        raise AssertionError((self.folder / "output").read_text())

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.address("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def address(self, database: str) -> str:
        """Give a database's address as PostgreSQL's own library reads it."""
        return f"postgresql://maia@/{database}?host={self.folder}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run one statement as the administrator."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def new_database(self) -> str:
        """Make an empty database and give its address."""
        name = f"maia{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.address(name).replace("postgresql:", "postgresql+psycopg:")

    def cut_connections(self, url: str) -> None:
        """End every session of a database, as a network or a server that fails would."""
        name = url.partition("@/")[2].partition("?")[0]
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")  # noqa: S608

    def stop(self) -> None:
        """End the server at once and remove its files."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, where it can be asked."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Give this worker's server; skip with a reason where there is none to start, and fail in CI."""
    binaries = find_binaries()
    if binaries is None:
        if os.environ.get("CI", "").lower() in {"1", "true", "yes"}:
            pytest.fail("PostgreSQL is missing and required here", pytrace=False)
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    server = PostgresServer(binaries)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> str:
    """Give the address of a fresh, empty PostgreSQL database."""
    return postgres_server.new_database()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the address of a fresh, empty database of each kind in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    url: str = request.getfixturevalue("postgres")
    return url
