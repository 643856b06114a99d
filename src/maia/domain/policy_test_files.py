"""Policy tests as files: TOML that says who can and who cannot, which roles ever can, and on which facts.

    [[test]]                      # by certificates: asks what `maia who-can` asks
    type = "path_report"
    attribute = "name"            # or several: ["name", "ward"]
    where = "ward = 'A'"          # or row = { ward = "A" }; action = "publish"; at = "+90d"
    can = ["ali"]
    cannot = ["chen"]
    only = ["hospital: staff"]    # and nobody else

    [[roles]]                     # by the rules alone: asks what `maia policy who-can` asks
    type = "path_report"
    attribute = "name"
    can = ["treating"]
    cannot = ["porter"]

    [[suppose]]                   # on stated facts: asks what `maia policy suppose` asks
    role = "treating(patterson)"
    as = "brown"
    appoint = ["consultant(brown)"]
    holds = false

Rules kept here: a word that is not known is refused, not passed over; a test that asserts nothing is refused, and so is
a file without tests, since either would pass for ever; everything has a limit, and what is wrong is named by file and
line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from maia.domain.agreement_files import POLICY_FOLDER
from maia.encoding import did_you_mean
from maia.errors import MaiaError, MalformedError, NotFoundError
from maia.home import read_file

TESTS_FOLDER = "tests"
_MAX_FILE = 1 << 20
_MAX_TESTS = 10_000
_MAX_LIST = 1000
_HEADER = re.compile(r"\s*\[\[\s*(test|roles|suppose)\s*\]\]\s*(#.*)?")
_TEXT, _LIST, _ANY = "a text", "a list of texts", ""
_COMMON = {"name": _TEXT}
_CELL = _COMMON | {"type": _TEXT, "attribute": _LIST, "action": _TEXT, "can": _LIST, "cannot": _LIST}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "test": _CELL | {"where": _TEXT, "row": _ANY, "at": _ANY, "only": _LIST},
    "roles": _CELL,
    "suppose": _COMMON | {"role": _TEXT, "as": _TEXT, "appoint": _LIST, "observe": _LIST, "assume": _LIST,
                          "holds": _ANY},
}  # fmt: skip
_NEEDED = {"test": ("type", "attribute"), "roles": ("type", "attribute"), "suppose": ("role", "as", "holds")}
_ASSERTS = {"test": ("can", "cannot", "only"), "roles": ("can", "cannot"), "suppose": ("holds",)}
ReadInstant = Callable[[str], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """One table of a file of policy tests.

    Attributes:
        kind: ``test``, ``roles`` or ``suppose``.
        file: The file that it stands in.
        line: The line of its header.
        name: What it is called; empty when it has no name.
        texts: Its single words, such as the type.
        lists: Its lists of words; a single word counts as a list of one.
        row: The row that it is about, by attribute.
        at: The moment that it is about.
        holds: Of a supposition, whether it holds.
    """

    kind: str
    file: str
    line: int
    name: str = ""
    texts: Mapping[str, str] = field(default_factory=dict, hash=False)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    row: Mapping[str, object] | None = field(default=None, hash=False)
    at: datetime | None = None
    holds: bool = True


def paths_of_tests(home: Path, files: Sequence[Path] = ()) -> tuple[Path, ...]:
    """List the files of policy tests: those that are named, else the home's own.

    Raises:
        NotFoundError: There is none: ``NO_POLICY_TESTS``.
    """
    folder = home / POLICY_FOLDER / TESTS_FOLDER
    found = tuple(files) or tuple(sorted(folder.glob("*.toml")))
    if not found:
        raise NotFoundError(f"there are no policy tests: write `{folder}/NAME.toml`", code="NO_POLICY_TESTS")
    return found


def read_tests(path: Path, *, instant: ReadInstant) -> tuple[PolicyTest, ...]:
    """Read a file of policy tests.

    Args:
        path: The file.
        instant: Reads a moment that is written as text.

    Raises:
        NotFoundError: There is none.
        MalformedError: It is no such file: ``POLICY_TESTS``; the message has file and line.
    """
    data = read_file(path, limit=_MAX_FILE)
    return parse_tests(data, path.name, instant=instant)


def parse_tests(data: bytes, file: str, *, instant: ReadInstant) -> tuple[PolicyTest, ...]:
    r"""Read policy tests.

    >>> from datetime import UTC, datetime
    >>> [found] = parse_tests(b'[[test]]\ntype = "T"\nattribute = "a"\ncan = "ali"', "a.toml", instant=lambda _: None)
    >>> found.line, found.texts["type"], found.lists["can"]
    (1, 'T', ('ali',))

    Raises:
        MalformedError: As `read_tests`.
    """
    try:
        text = data.decode("utf-8")
        tables = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise _wrong(file, 1, "it is not UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        said = re.search(r"at line (\d+)", str(error))
        raise _wrong(file, int(said[1]) if said else 1, f"it is no TOML: {error}") from error
    for kind, found in tables.items():
        if kind not in _WORDS or not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise _wrong(file, 1, f"`{kind}` is none of [[test]], [[roles]] and [[suppose]]")
    headers = [(found[1], number) for number, line in enumerate(text.split("\n"), 1)
               if (found := _HEADER.fullmatch(line.removesuffix("\r")))]  # fmt: skip
    lines = {kind: [number for word, number in headers if word == kind] for kind in _WORDS}
    if any(len(lines[kind]) != len(tables.get(kind, ())) for kind in _WORDS):
        raise _wrong(file, 1, "write each test as a table of its own, with its header on a line of its own")
    if not headers:
        raise _wrong(file, 1, "there is no test in it")
    if len(headers) > _MAX_TESTS:
        raise _wrong(file, headers[_MAX_TESTS][1], f"there are more than {_MAX_TESTS} tests in it")
    made = [
        _test(kind, table, file, line, instant)
        for kind in _WORDS
        for table, line in zip(tables.get(kind, ()), lines[kind], strict=True)
    ]
    return tuple(sorted(made, key=lambda one: one.line))


def _test(kind: str, table: Mapping[str, object], file: str, line: int, instant: ReadInstant) -> PolicyTest:
    known = _WORDS[kind]
    for word in table:
        if word not in known:
            raise _wrong(file, line, f"[[{kind}]] has no `{word}`{did_you_mean(word, known)}")
    for word in _NEEDED[kind]:
        if word not in table:
            raise _wrong(file, line, f"[[{kind}]] needs `{word}`")
    texts = {word: _text(file, line, word, table[word]) for word in table if known[word] == _TEXT}
    lists = {word: _list(file, line, word, table[word]) for word in table if known[word] == _LIST}
    # SECURITY: a test that asserts nothing would pass whatever the policy is.
    if not any(word in table and (known[word] != _LIST or lists[word] or word == "only") for word in _ASSERTS[kind]):
        raise _wrong(file, line, f"[[{kind}]] asserts nothing: it needs {' or '.join(_ASSERTS[kind])}")
    both = sorted(set(lists.get("can", ())) & set(lists.get("cannot", ())))
    if both:
        raise _wrong(file, line, f"`{both[0]}` cannot both be able and not be able")
    row, holds = table.get("row"), table.get("holds", True)
    if row is not None and not isinstance(row, dict):
        raise _wrong(file, line, "`row` is a table of values by attribute")
    if not isinstance(holds, bool):
        raise _wrong(file, line, "`holds` is true or false")
    return PolicyTest(
        kind=kind, file=file, line=line, name=texts.pop("name", ""), texts=texts, lists=lists,
        row=None if row is None else {word: _value(value) for word, value in row.items()},
        at=None if "at" not in table else _instant(file, line, table["at"], instant), holds=holds,
    )  # fmt: skip


def _text(file: str, line: int, word: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(file, line, f"`{word}` is a text")
    return value


def _list(file: str, line: int, word: str, value: object) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise _wrong(file, line, f"`{word}` is a text or a list of texts")
    if len(found) > _MAX_LIST:
        raise _wrong(file, line, f"`{word}` has more than {_MAX_LIST} entries")
    return tuple(dict.fromkeys(found))


def _instant(file: str, line: int, value: object, instant: ReadInstant) -> datetime:
    try:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC)
        if isinstance(value, date) and not isinstance(value, datetime):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, str):
            return instant(value)
    except MaiaError as error:
        raise _wrong(file, line, error.message) from error
    raise _wrong(file, line, "`at` is an instant with a time zone, a date, or a text such as `+90d`")


def _value(value: object) -> object:
    """Give a value of TOML as JSON would have it, which rows are read from."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value


def _wrong(file: str, line: int, what: str) -> MalformedError:
    return MalformedError(f"{file}:{line}: {what}", code="POLICY_TESTS")
