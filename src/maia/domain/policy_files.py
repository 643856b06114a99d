"""The policy of a home as files: ``policy/*.rules``, and those of parent domains in ``policy/inherited``.

What is wrong with them is named by file, line and column, as whoever wrote it knows them, also when the service that
found it saw all files as one text.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from maia.access_control import AccessControl, PolicyChange
from maia.domain.access_control import HomeHoldings
from maia.domain.agreement_files import POLICY_FOLDER
from maia.errors import MaiaError, MalformedError, NotFoundError
from maia.home import Home, read_file
from maia.policy import (
    DenialInForce,
    PolicyFinding,
    PolicyProof,
    PolicySource,
    PolicySyntaxError,
    RiskClass,
    Severity,
    UnmetRule,
    check,
    check_privileges,
    check_risks,
    combine_sources,
    format_text,
    locate_line,
    parse_policy,
    parse_risks,
    parse_source,
    read_rules,
)
from maia.reasoning import DenialView, view_denials

_INHERITED = "inherited"
_RISKS = "risks.toml"
_SUFFIX = ".rules"
_MAX_FILE = 4 << 20
Placed = tuple[str, PolicyFinding]
"""A file, and what was found in it."""


def policy_paths(home: Path) -> tuple[Path, ...]:
    """List a home's own policy files.

    Raises:
        NotFoundError: There is none: ``NO_POLICY``.
    """
    found = tuple(sorted((home / POLICY_FOLDER).glob(f"*{_SUFFIX}")))
    if not found:
        raise NotFoundError(f"there is no policy: write `{home / POLICY_FOLDER}/NAME{_SUFFIX}`", code="NO_POLICY")
    return found


def policy_sources(home: Path, files: Sequence[Path] = ()) -> tuple[PolicySource, ...]:
    """Read policy files: those that are named, else the home's own and its parents'.

    Raises:
        NotFoundError: There is none.
    """
    if files:
        return tuple(PolicySource(name=path.name, text=read_rules_file(path)) for path in files)
    parents = sorted((home / POLICY_FOLDER / _INHERITED).glob(f"*{_SUFFIX}"))
    found = [(path, False) for path in ([] if parents and not _has_own(home) else policy_paths(home))]
    found += [(path, True) for path in parents]
    return tuple(PolicySource(name=path.name, text=read_rules_file(path), inherited=parent) for path, parent in found)


@dataclass(frozen=True, slots=True)
class DefinedRole:
    """A role that some rule gives: its head, the file of the rule, and whether a parent domain defines it."""

    name: str
    file: str
    inherited: bool


def defined_roles(sources: Sequence[PolicySource]) -> tuple[DefinedRole, ...]:
    """List the roles of a policy, those of parents first; each once.

    Raises:
        PolicySyntaxError: A file is no policy, or adds ways to a role of a parent's set (``ROLE_TAKEN``).
    """
    combine_sources(sources)  # refuses what could not be applied
    found: dict[tuple[str, int], DefinedRole] = {}
    for source in sorted(sources, key=lambda item: not item.inherited):
        for rule in parse_source(source).activations:
            found.setdefault(rule.head.signature, DefinedRole(str(rule.head), source.name, source.inherited))
    return tuple(found.values())


def read_rules_file(path: Path) -> str:
    """Read a policy file.

    Raises:
        NotFoundError: There is none.
        PolicySyntaxError: It is no text.
    """
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE + 1).decode("utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no `{path}`", code="NO_FILE") from error
    except UnicodeDecodeError as error:
        raise PolicySyntaxError(f"`{path.name}` is not UTF-8", code="POLICY_SYNTAX") from error


def check_policy(sources: Sequence[PolicySource], home: Home | None, *, at: datetime) -> tuple[Placed, ...]:
    """Find what is wrong with policy files; with a home, their rights are compared with the types that it knows.

    There, what ``policy/risks.toml`` requires of rules that give certain attributes is looked for as well.

    All problems are found at once, line by line, also where a line cannot be read.

    Raises:
        PolicySyntaxError: Files that can be read do not go together.
    """
    catalogue = None if home is None else HomeHoldings(home).types(at=at)
    risks = () if home is None else read_risks(home.path)
    found: list[Placed] = []
    broken = False
    for source in sources:
        policy, wrong = read_rules(source.text)
        broken = broken or bool(wrong)
        findings = [*map(_unread, wrong), *check(policy)]
        if catalogue is not None:
            findings += check_privileges(policy, catalogue, text=source.text)
            findings += check_risks(policy, risks, catalogue)
        found += [(source.name, finding) for finding in sorted(findings, key=lambda item: (item.line, item.column))]
    if not broken:
        whole = parse_policy(combine_sources(sources))
        # a role of one file on which a denial of another one stands
        denials = [_placed(sources, finding) for finding in check(whole) if finding.code == "POLICY_DENIAL"]
        found += [placed for placed in denials if placed not in found]
        if catalogue is not None:
            found += [_placed(sources, _idle(view)) for view in view_denials(whole, catalogue) if view.idle]
    return tuple(found)


def _idle(view: DenialView) -> PolicyFinding:
    message = f"no rule gives anything of what is denied: {view.rule}"
    return PolicyFinding(severity=Severity.WARNING, code="IDLE_DENIAL", line=view.line, column=1, message=message)


def read_risks(home: Path) -> tuple[RiskClass, ...]:
    """Read the risk classes of a home; none when it has none.

    Raises:
        MalformedError: The file is none of them: ``POLICY_RISKS``.
    """
    try:
        data = read_file(home / POLICY_FOLDER / _RISKS, limit=_MAX_FILE)
    except NotFoundError:
        return ()
    try:
        return parse_risks(tomllib.loads(data.decode("utf-8")))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MalformedError(f"`{_RISKS}` is no TOML: {error}", code="POLICY_RISKS") from error


def _unread(error: PolicySyntaxError) -> PolicyFinding:
    """Tell what cannot be read as a finding among others."""
    message = error.message.removeprefix(f"line {error.line}, column {error.column}: ")
    return PolicyFinding(
        severity=Severity.ERROR, code=error.code, line=error.line or 1, column=error.column or 1, message=message
    )


def submit_policy(
    service: AccessControl, sources: Sequence[PolicySource], *, at: datetime, applied: bool
) -> tuple[PolicyChange, tuple[Placed, ...]]:
    """Hand policy files to the service of a domain: to be put in force, or to be told what that would change.

    Returns:
        What changes, and what is odd about the files.

    Raises:
        PolicySyntaxError: The service refuses them; the message has file, line and column.
    """
    text = combine_sources(sources)
    try:
        change = (service.apply if applied else service.preview)(text, at=at)
    except PolicySyntaxError as error:
        name, line = locate_line(sources, error.line)
        found = error.message.removeprefix(f"line {error.line}, column {error.column}: ")
        raise PolicySyntaxError(
            f"`{name}`, line {line}, column {error.column}: {found}",
            code=error.code, line=line, column=error.column,
        ) from error  # fmt: skip
    return change, tuple(_placed(sources, finding) for finding in change.findings)


def unmet_lines(unmet: Sequence[UnmetRule], home: Path, *, in_force: str) -> list[str]:
    """Say what each rule for a role lacks, after the file and the line of the rule, as compilers do.

    Args:
        unmet: The rules.
        home: Whose policy files.
        in_force: The policy that the service runs; the files are named where they are what is in force.
    """
    sources = _in_force(home, in_force)
    found = []
    for rule in unmet:
        name, line = locate_line(sources, rule.line) if sources else ("the policy in force", rule.line)
        found.append(f"{name}:{line}: {rule}")
    return found


def proof_lines(proof: PolicyProof, home: Path, *, in_force: str) -> list[str]:
    """Say why a role is active, with the file of each rule where the home's files are what is in force.

    Args:
        proof: Why.
        home: Whose policy files.
        in_force: The policy that the service runs.
    """
    sources = _in_force(home, in_force)

    def walk(found: PolicyProof, indent: int) -> Iterator[str]:
        by = f"   by line {found.line}: {found.rule}" if found.rule else ""
        if by and sources:
            name, line = locate_line(sources, found.line)
            by = f"   by line {line} of {name}: {found.rule}"
        yield f"{' ' * indent}{found.conclusion}{by}"
        for premise in found.premises:
            yield from walk(premise, indent + 2)

    return list(walk(proof, 0))


def denial_lines(denials: Sequence[DenialInForce], home: Path, *, in_force: str) -> list[str]:
    """Say what is denied to somebody, by which rule and which appointments.

    Args:
        denials: What the service says.
        home: Whose policy files.
        in_force: The policy that the service runs.
    """
    sources = _in_force(home, in_force)
    found = []
    for item in denials:
        name, line = locate_line(sources, item.line) if sources else ("the policy in force", item.line)
        facts = ", ".join(item.facts)
        found.append(f"denied {item.privilege}   by line {line} of {name}: {item.rule}   since {facts}")
    return found


def _in_force(home: Path, policy: str) -> tuple[PolicySource, ...]:
    """Read the home's policy files; none when they are not what is in force."""
    with suppress(MaiaError):
        sources = policy_sources(home)
        return tuple(sources) if combine_sources(sources) == policy else ()
    return ()


def format_file(path: Path, *, write: bool) -> bool:
    """Write a policy file in the one canonical spelling, in one step; tell whether that changes it.

    Raises:
        PolicySyntaxError: It is no policy; it is not touched.
    """
    text = read_rules_file(path)
    parse_source(PolicySource(name=path.name, text=text))
    formatted = format_text(text)
    if write and formatted != text:
        part = path.with_name(f".{path.name}.part")
        part.write_text(formatted, "utf-8")
        os.replace(part, path)  # noqa: PTH105 - in one step
    return formatted != text


def _placed(sources: Sequence[PolicySource], finding: PolicyFinding) -> Placed:
    name, line = locate_line(sources, finding.line)
    return name, replace(finding, line=line)


def _has_own(home: Path) -> bool:
    return any((home / POLICY_FOLDER).glob(f"*{_SUFFIX}"))
