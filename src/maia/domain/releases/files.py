"""The release rules of a home as files, ``policy/*.release``, with the types that they are about.

What is wrong with them is named by file, line and column; rules of several files count together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from maia.domain.agreement_files import POLICY_FOLDER
from maia.domain.policy_files import read_rules_file
from maia.domain.types import find_versions, show_type
from maia.errors import MaiaError, NotFoundError
from maia.events import TypeName, ValueType
from maia.home import Home, extended_definitions, whole_type
from maia.policy import PolicySyntaxError, release

SUFFIX = ".release"
PlacedFinding = tuple[str, release.ReleaseFinding]
"""A file, and what was found in it."""


@dataclass(frozen=True, slots=True)
class ReleaseText:
    """A file of release rules."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class KnownRule:
    """A rule whose type this home knows: under its whole name, with the versions that it is about."""

    rule: release.ReleaseRule
    types: tuple[TypeName, ...]


def release_paths(home: Path) -> tuple[Path, ...]:
    """List a home's files of release rules.

    Raises:
        NotFoundError: There is none: ``NO_RELEASE_RULES``.
    """
    found = tuple(sorted((home / POLICY_FOLDER).glob(f"*{SUFFIX}")))
    if not found:
        raise NotFoundError(
            f"there are no release rules: write `{home / POLICY_FOLDER}/NAME{SUFFIX}`", code="NO_RELEASE_RULES"
        )
    return found


def release_texts(home: Path, files: Sequence[Path] = ()) -> tuple[ReleaseText, ...]:
    """Read files of release rules: those that are named, else the home's own.

    Raises:
        NotFoundError: There is none.
    """
    return tuple(ReleaseText(path.name, read_rules_file(path)) for path in files or release_paths(home))


def read_releases(texts: Sequence[ReleaseText]) -> tuple[release.ReleaseRule, ...]:
    """Read the rules of files, placed as if the files were one text.

    Raises:
        PolicySyntaxError: One is none of rules; the message has file, line and column.
    """
    rules: list[release.ReleaseRule] = []
    for text, start in zip(texts, _starts(texts), strict=True):
        try:
            found = release.parse_releases(text.text)
        except PolicySyntaxError as error:
            raise PolicySyntaxError(
                f"`{text.name}`, {error.message}", code=error.code, line=error.line, column=error.column
            ) from error
        rules += [rule.moved(start) for rule in found]
    return tuple(rules)


def check_release_files(texts: Sequence[ReleaseText], home: Home | None) -> tuple[PlacedFinding, ...]:
    """Find what is wrong with files of release rules; with a home, they are compared with the types that it knows.

    Raises:
        PolicySyntaxError: One is none of rules; the message has file, line and column.
    """
    rules = read_releases(texts)
    if home is None:
        found = release.check_releases(rules)
    else:
        known = [_known(home, rule) for rule in rules]
        named = [rule if item is None else item.rule for rule, item in zip(rules, known, strict=True)]
        types = {item.rule.event_type: _attributes(home, item.types) for item in known if item is not None}
        parents = {item.rule.event_type: _parents(home, item.types) for item in known if item is not None}
        found = release.check_releases(named, types, parents)
    return tuple(_placed(texts, finding) for finding in found)


def known_rules(home: Home) -> tuple[KnownRule, ...]:
    """Give the rules of a home that are about types it knows; none when it has no rules.

    Raises:
        PolicySyntaxError: A file is none of rules, or has an error; nothing is released by the others either.
    """
    try:
        texts = release_texts(home.path)
    except NotFoundError:
        return ()
    for name, finding in check_release_files(texts, home):
        if finding.is_error:
            message = f"`{name}`, line {finding.line}, column {finding.column}: {finding.message}"
            raise PolicySyntaxError(message, code=finding.code, line=finding.line, column=finding.column)
    return tuple(item for rule in read_releases(texts) if (item := _known(home, rule)) is not None)


def format_release_file(path: Path, *, write: bool) -> bool:
    """Write a file of release rules in the one canonical spelling, in one step; tell whether that changes it.

    Raises:
        PolicySyntaxError: It is none; it is not touched.
    """
    text = read_rules_file(path)
    read_releases([ReleaseText(path.name, text)])
    formatted = release.format_releases(text)
    if write and formatted != text:
        part = path.with_name(f".{path.name}.part")
        part.write_text(formatted, "utf-8")
        os.replace(part, path)  # noqa: PTH105 - in one step
    return formatted != text


def _known(home: Home, rule: release.ReleaseRule) -> KnownRule | None:
    try:
        types = find_versions(home, rule.event_type)
    except NotFoundError:
        return None
    if len({item.owner_id for item in types}) > 1:
        types = tuple(item for item in types if _is_own(home, item))  # whoever leaves the owner out means the home
    names = {_called(home, item) for item in types}
    if len(names) != 1:
        return None  # nobody knows which owner's is meant
    return KnownRule(replace(rule, event_type=names.pop()), types)


def _is_own(home: Home, name: TypeName) -> bool:
    """Tell whether the private key of a type's owner is here."""
    owner = home.folder.names.get(name.owner_id)
    return owner is not None and home.folder.key_path(owner).is_file()


def _called(home: Home, name: TypeName) -> str:
    return show_type(home, name).rpartition("@")[0]


def _parents(home: Home, types: Sequence[TypeName]) -> set[str]:
    """Name all that some versions of a type extend."""
    found: set[str] = set()
    for name in types:
        with suppress(MaiaError):  # what does not verify extends nothing
            found |= {_called(home, item.name) for item in extended_definitions(home.folder, home.read_type(name))}
    return found


def _attributes(home: Home, types: Sequence[TypeName]) -> dict[str, ValueType]:
    """Give the attributes of some versions of a type; what they inherit is theirs."""
    found: dict[str, ValueType] = {}
    for name in types:
        try:
            whole = whole_type(home.folder, home.read_type(name))
        except MaiaError:
            continue  # what does not verify has no attributes
        found |= {item.name: item.type for item in whole.attributes}
    return found


def _starts(texts: Sequence[ReleaseText]) -> list[int]:
    """Tell how many lines stand before each file."""
    starts, lines = [], 0
    for text in texts:
        starts.append(lines)
        lines += text.text.count("\n") + 1
    return starts


def _placed(texts: Sequence[ReleaseText], finding: release.ReleaseFinding) -> PlacedFinding:
    for text, start in reversed(list(zip(texts, _starts(texts), strict=True))):
        if finding.line > start:
            return text.name, replace(finding, line=finding.line - start)
    return "", finding
