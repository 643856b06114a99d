"""Make a golden home: a small home with a log, as some commit of Maia writes it, packed for the tests.

    git worktree add --detach ../then COMMIT
    python scripts/golden.py ../then/src COMMIT          writes tests/golden/COMMIT.tar.xz
    python scripts/golden.py ../then/src FORMAT --log    writes tests/golden/logs/FORMAT.tar.xz

A golden home is made once, by the code of its commit, and never again: tests open it with the code of today. Its keys
are made for it and unsealed; they are known to everybody and open nothing else. It holds a domain that owns a type,
publishes two events, has appointed a doctor, and manages its keys itself.

A golden log is a home whose log holds one event in a segment by row, and so many in another that they lie by column. It
is made without Spark.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
TYPE = "domain/clinic.Result@1"
LATER = ("policy", "role")
"""What the first commits could not do; a commit whose verbs are packages can."""
ROWS = '{"patient": "p1", "glucose": 5.5}\n{"patient": "p2", "glucose": 7.25}\n'
RULES = "doctor(self) <- employed(self)*\n"
COMMANDS = (
    ("key", "new", "domain", "--no-passphrase"),
    ("key", "new", "lab", "--no-passphrase"),
    ("key", "new", "doctor", "--no-passphrase"),
    ("type", "define", TYPE, "--attribute", "patient:string:1", "--attribute", "glucose:float:2"),
    ("name", "add", "brokers", "--from", "domain", "--to", "broker"),
    ("grant", "--from", "domain", "--to", "broker", "--type", TYPE, "--action", "publish", "--action", "subscribe"),
    ("grant", "--from", "domain", "--to", "lab", "--type", TYPE, "--action", "publish"),
    ("grant", "--from", "domain", "--to", "doctor", "--type", TYPE, "--action", "subscribe"),
    ("policy", "apply"),
    ("role", "appoint", "employed(doctor)"),
    ("publish", "rows.jsonl", "--type", "clinic.Result", "--as", "lab", "--publication", "first"),
)
PUBLISH = """
import sys
from datetime import UTC, datetime, timedelta
import maia
from maia.testing import publish_here
with maia.open(sys.argv[1]) as domain:
    at = datetime.now(UTC)
    for number, count in enumerate((1, 8000)):
        rows = [{"patient": f"p{row % 7}", "glucose": (row * 7919 % 1_000_003) / 8} for row in range(count)]
        publish_here(domain.home, "clinic.Result", rows, as_="lab", at=at + timedelta(milliseconds=10 * number))
"""


def main() -> None:
    """Make one golden home."""
    source, commit = Path(sys.argv[1]).resolve(), sys.argv[2]
    if "--log" in sys.argv:
        _make_log(source, commit)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (Path(folder) / "rows.jsonl").write_text(ROWS, "utf-8")
        _run(source, folder, "domain", "init", str(home), "--name", "clinic")
        (home / "policy").mkdir()
        (home / "policy" / "clinic.rules").write_text(RULES, "utf-8")
        for command in COMMANDS:
            if command[0] not in LATER or _can(source, command[0]):
                _run(source, folder, *command, home=home)
        with tarfile.open(GOLDEN / f"{commit}.tar.xz", "w:xz") as archive:
            archive.add(home, "home", filter=_plain)


def _make_log(source: Path, name: str) -> None:
    """Make one golden log."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        _run(source, folder, "domain", "init", str(home), "--name", "clinic")
        for command in COMMANDS:
            if command[0] not in (*LATER, "publish"):
                _run(source, folder, *command, home=home)
        environment = {**os.environ, "PYTHONPATH": str(source)}
        subprocess.run([sys.executable, "-c", PUBLISH, str(home)], env=environment, check=True)
        with tarfile.open(GOLDEN / "logs" / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(home, "home", filter=_plain)


def _can(source: Path, verb: str) -> bool:
    return any((source / "maia" / "cli" / name).exists() for name in (verb, f"{verb}.py"))


def _run(source: Path, folder: str, *words: str, home: Path | None = None) -> None:
    environment = {**os.environ, "PYTHONPATH": str(source), "MAIA_HOME": str(home or "")}
    subprocess.run([sys.executable, "-m", "maia.cli", *words], cwd=folder, env=environment, check=True)


def _plain(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out who made it, locks, and what is made anew."""
    name = Path(item.name).name
    item.uid = item.gid = 0
    item.uname = item.gname = ""
    return None if name.endswith((".lock", ".crc", ".part")) else item


if __name__ == "__main__":
    main()
