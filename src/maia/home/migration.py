"""Bringing a home of an earlier format to this one: one command, which may be stopped and run again at any point.

Rules kept here:

- every step writes one file whole and in its place, and sees by the file itself whether it was done before: killed in
  between, the home is refused as before, and the next run goes on;
- the number in ``maia.toml`` is written last: it says that all the rest is done;
- nothing is opened that is sealed, nothing is signed, and no key changes. What cannot be read stops the migration with
  its name before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.errors import MalformedError, NotFoundError
from maia.home.accepted import accept_meaning, accepted_meaning
from maia.home.config import CONFIG_FILE, MAX_CONFIG, parse_toml
from maia.home.files import PRIVATE_FILE, PUBLIC_FILE, locked, read_file, write_file
from maia.home.folder import Folder
from maia.home.formats import HOME_FORMAT, LOG_BEFORE, has_head, newer_format, with_head, without_head
from maia.kernel import read_mark, write_mark

_MAX_FILE = 64 << 20
_SEALED = ("keyring", "groups")
_FORMAT_LINE = re.compile(rb"^format[ \t]*=[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What a migration did, or would do.

    Attributes:
        before: The home's format before.
        after: Its format after.
        steps: What was written, a line each; none when the home was of this format.
    """

    before: int
    after: int
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    what: str
    do: Callable[[], object]


def migrate_home(path: Path, *, at: datetime, dry_run: bool = False) -> Migration:
    """Bring a home to this Maia's format; one that is there already is left alone.

    Args:
        path: The home.
        at: Now; definitions that verify now, or did before they expired, are noted as accepted.
        dry_run: Tell what would be written, and write nothing.

    Raises:
        NotFoundError: There is no home: ``NO_HOME``.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
        MaiaError: A file cannot be read; nothing was written then.
    """
    config = path / CONFIG_FILE
    if not config.is_file():
        raise NotFoundError(f"`{path}` is no home: it has no `{CONFIG_FILE}`", code="NO_HOME")
    with locked(config):
        data = read_file(config, limit=MAX_CONFIG)
        found = parse_toml(data).get("format", 1)
        if type(found) is not int or found < 1:
            raise MalformedError(f"`{config}`: `format` is {found!r}, not a number of a format", code="HOMECONFIG_FILE")
        before = found
        if before > HOME_FORMAT:
            raise newer_format(str(config), found=before, known=HOME_FORMAT)
        if before == HOME_FORMAT:
            return Migration(before=before, after=HOME_FORMAT, steps=())
        steps = [*_stamps(path), *_heads(path), *_accepted(path, at), *_log(path, data)]
        # INVARIANT: a key at the top of the file belongs to no table, whatever stands below.
        numbered = b"format = %d\n" % HOME_FORMAT + _FORMAT_LINE.sub(b"", data, count=1)
        steps.append(_Step(f"{CONFIG_FILE}: format {HOME_FORMAT}", lambda: _write(config, numbered, PUBLIC_FILE)))
        if not dry_run:
            for step in steps:
                step.do()
    return Migration(before=before, after=HOME_FORMAT, steps=tuple(step.what for step in steps))


def _stamps(home: Path) -> Iterator[_Step]:
    """Give the mark of the highest stamp its checksum; the first homes kept the number alone."""
    path = home / "stamps"
    if not path.exists():
        return
    data = read_file(path, limit=64)
    if data.strip().isdigit():
        mark = write_mark(int(data))
        yield _Step("stamps: a checksum", lambda: _write(path, mark, PUBLIC_FILE))
    else:
        read_mark(data)


def _heads(home: Path) -> Iterator[_Step]:
    """Give what is sealed a first line that says what it is."""
    for kind in _SEALED:
        path = home / kind
        if not path.exists():
            continue
        data = read_file(path, limit=_MAX_FILE)
        if has_head(kind, data):
            without_head(kind, data, path)
        else:
            yield _Step(f"{kind}: its format", lambda p=path, k=kind, d=data: _write(p, with_head(k, d), PRIVATE_FILE))  # type: ignore[misc]


def _accepted(home: Path, at: datetime) -> Iterator[_Step]:
    """Note what each version of a type means, where the definitions that verify agree."""
    folder = home / "types"
    registry = Folder(home).types
    for name in registry.names():
        if accepted_meaning(folder, name) is not None:
            continue
        found = registry.genuine(name.owner, name.name, at=at)
        meanings = {item.definition.meaning for item in found if item.definition.name == name}
        if len(meanings) == 1:
            meaning = meanings.pop()
            yield _Step(
                f"types: {name.name}@{name.version.text} as it was accepted",
                lambda n=name, m=meaning: accept_meaning(folder, n, m),  # type: ignore[misc]
            )


def _log(home: Path, config: bytes) -> Iterator[_Step]:
    """Note that the log has commits of the format before lanes, which `maia log migrate` takes over."""
    note, log = home / LOG_BEFORE, home / str(parse_toml(config).get("log", "log"))
    if (log / "_commits").is_dir() and not note.exists():
        yield _Step("log: to be migrated", lambda: _write(note, b"", PUBLIC_FILE))


def _write(path: Path, data: bytes, mode: int) -> None:
    write_file(path, data, mode=mode)
