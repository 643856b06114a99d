"""The links of a home as files.

    links/NAME.toml             where the log is served, by whom, and which types are copied
    links/NAME/marks/…          what that log showed of each lane last, as the lanes lie in a log (0700)
    links/NAME/contrary/…       signed objects that contradict each other: the evidence of a fork or a rollback
    links/NAME/last.json        how the last round ended

The cursor of a link is in none of them: it is the end of each lane in the home's own log. Without its marks a link goes
on all the same, and knows no more what was served before.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from maia.domain.parked import Parked, keep_parked, read_parked
from maia.errors import MaiaError, MalformedError, NotFoundError, UsageError
from maia.home import PRIVATE_FILE, Home, list_files, make_folder, read_file, read_public_key, write_file
from maia.log import DirectoryStore, all_lanes
from maia.principals import KeyId

_FOLDER = "links"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_TYPE = re.compile(r"[0-9a-f]{64}")
_MAX_FILE = 1 << 20
_TEXTS = ("address", "key", "ca")
_LISTS = ("types", "filters")
MOST_CONTRARY = 256
"""How many contradictions of a link are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where another log is served, and what is copied of it.

    Attributes:
        name: What this home calls it.
        address: ``https://host[:port]`` of a service or of a web server, or a store: a directory, ``s3://…``.
        key: The neighbour's key that the service must prove, by its name in this home; nothing where no service runs.
        types: Ids in hex, of the types whose events are copied; all when there are none. Notices are copied always.
        filters: Which events of that one type are wanted: those that match one of them; all when there are none.
        ca: A file of certificate authorities to trust for TLS, in place of the system's.
    """

    name: str
    address: str
    key: str = ""
    types: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    ca: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no link."""
        if not _NAME.fullmatch(self.name):
            raise UsageError("a link's name has small letters, digits and `-`", code="LINK_NAME")
        if not self.address or any(not letter.isprintable() for letter in self.address + self.key + self.ca):
            raise UsageError("a link has an address in one line", code="LINK_ADDRESS")
        if any(not _TYPE.fullmatch(item) for item in self.types):
            raise UsageError("types of a link are ids of 64 hexadecimal digits", code="LINK_TYPES")
        if self.filters and not (self.types and self.key):
            raise UsageError("a filter is on one type, and needs a neighbour that serves its log", code="LINK_FILTER")
        if self.key and not self.is_web:
            raise UsageError("a store proves no key: leave it out", code="LINK_ADDRESS")

    @property
    def is_web(self) -> bool:
        """Whether it is reached by HTTP."""
        return self.address.startswith(("http://", "https://"))

    @property
    def reader(self) -> str:
        """What it is called among those who wait for lanes."""
        return f"link {self.name}"

    def to_toml(self) -> str:
        """Write its file."""
        lines = [f"{key} = {json.dumps(getattr(self, key))}" for key in _TEXTS if getattr(self, key)]
        if self.types:
            lines.append(f"types = {json.dumps(list(self.types))}")
        if self.filters:
            lines.append(f"filters = {json.dumps(list(self.filters))}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStatus:
    """How a link stands.

    Attributes:
        link: Which one.
        lanes: How many lanes were seen over it.
        last: How its last round ended; nothing before the first.
        parked: Lanes that it cannot copy on, and why.
        contrary: The files of signed objects that contradict each other, each folder one contradiction.
    """

    link: Link
    lanes: int
    last: dict[str, Any] = field(default_factory=dict)
    parked: tuple[Parked, ...] = ()
    contrary: tuple[str, ...] = ()


def read_links(home: Home) -> tuple[Link, ...]:
    """Read the links of a home, by name.

    Raises:
        MalformedError: A file is no link: ``LINK_FILE``.
    """
    return tuple(_read(path) for path in sorted(list_files(home.path / _FOLDER, suffix=".toml")))


def find_link(home: Home, name: str) -> Link:
    """Find a link by its name.

    Raises:
        NotFoundError: There is none: ``NO_LINK``.
    """
    path = home.path / _FOLDER / f"{name}.toml"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise NotFoundError(f"there is no link `{name}`; `maia link status` lists them", code="NO_LINK")
    return _read(path)


def add_link(home: Home, link: Link) -> None:
    """Keep a link.

    Raises:
        UsageError: There is one of this name: ``LINK_EXISTS``.
    """
    make_folder(home.path / _FOLDER, mode=0o755)
    path = home.path / _FOLDER / f"{link.name}.toml"
    if not write_file(path, link.to_toml().encode(), mode=PRIVATE_FILE, replace=False):
        raise UsageError(f"there is a link `{link.name}`; remove it first", code="LINK_EXISTS")


def remove_link(home: Home, name: str, *, at: datetime) -> None:
    """Forget a link and what was seen over it; what it copied stays, and so does evidence against its neighbour.

    Raises:
        NotFoundError: There is none: ``NO_LINK``.
    """
    link = find_link(home, name)
    keep_parked(home, link.reader, (), at=at)
    (home.path / _FOLDER / f"{name}.toml").unlink()
    shutil.rmtree(home.path / _FOLDER / name / "marks", ignore_errors=True)


def link_status(home: Home, link: Link) -> LinkStatus:
    """Tell how a link stands."""
    last: dict[str, Any] = {}
    with suppress(MaiaError, ValueError):
        last = json.loads(read_file(state_path(home, link) / "last.json", limit=_MAX_FILE))
    parked = tuple(item for item in read_parked(home.path) if item.reader == link.reader)
    store = link_store(home, link)
    contrary = store.list_folders("contrary", "", limit=MOST_CONTRARY)
    folder = state_path(home, link) / "contrary"
    return LinkStatus(
        link=link, lanes=sum(1 for _ in all_lanes(marks_store(home, link))), last=last, parked=parked,
        contrary=tuple(str(folder / name) for name in contrary),
    )  # fmt: skip


def own_keys(home: Home) -> frozenset[KeyId]:
    """Name the keys whose lanes this home writes: those that it has the private half of."""
    names = [path.stem for path in list_files(home.path / "keys", suffix=".key")]
    return frozenset(read_public_key(home.public_path(name)).key_id for name in names)


def state_path(home: Home, link: Link) -> Path:
    """Tell where a link keeps what it saw."""
    return home.path / _FOLDER / link.name


def link_store(home: Home, link: Link) -> DirectoryStore:
    """Open what a link keeps."""
    return DirectoryStore(state_path(home, link), private=True)


def marks_store(home: Home, link: Link) -> DirectoryStore:
    """Open the marks of a link, which lie as lanes do."""
    return DirectoryStore(state_path(home, link) / "marks", private=True)


def _read(path: Path) -> Link:
    try:
        value = tomllib.loads(read_file(path, limit=_MAX_FILE).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, f"it is not TOML: {error}") from error
    types, filters = value.pop("types", []), value.pop("filters", [])
    if not set(value) <= set(_TEXTS) or not all(isinstance(text, str) for text in value.values()):
        raise _wrong(
            path, f"it has {', '.join(f'`{name}`' for name in _TEXTS)} , `types` and `filters`, and nothing else"
        )
    if not all(map(_is_texts, (types, filters))) or "address" not in value:
        raise _wrong(path, "it has an `address`, and perhaps lists of `types` and of `filters`")
    try:
        return Link(name=path.stem, types=tuple(types), filters=tuple(filters), **value)
    except UsageError as error:
        raise _wrong(path, error.message) from error


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _wrong(path: Path, why: str) -> MalformedError:
    return MalformedError(f"`{path.name}`: {why}", code="LINK_FILE")
