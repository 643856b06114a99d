"""`maia policy check|format|preview|apply|explain`: the rules of a domain, kept as text in `policy/*.rules`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

if TYPE_CHECKING:
    from maia.access_control import PolicyChange

app = new_app("Check, format, preview and apply a domain's policy.", "maia policy check", "maia policy preview")
_Files = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE", help="Policy files; those of the home when left out.")
]


@app.command(epilog=examples("maia policy check", "maia policy check policy/met.rules --json"))
def check(
    files: _Files = None,
    *,
    home: options.Home = Path(),
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Say what is wrong with policy files, with file, line and column; exits 1 when there is an error.

    Inside a home, rights are compared with the event types that it knows.
    """
    from maia.cli.acs import policy_sources, read_rules
    from maia.cli.read.instants import decision_instant
    from maia.cli.show.exits import ExitCode
    from maia.cli.show.output import note, printable, write_json, write_line
    from maia.policy import PolicySource, Severity, check_privileges, combine_sources, parse_source
    from maia.policy import check as find

    sources = (
        policy_sources(home)
        if not files
        else tuple(PolicySource(name=path.name, text=read_rules(path)) for path in files)
    )
    combine_sources(sources)
    catalogue = None
    if (home / "maia.toml").is_file():
        from maia.domain import HomeSurroundings
        from maia.home import Home

        catalogue = HomeSurroundings(Home.open(home)).types(at=decision_instant(at))
    found = []
    for source in sources:
        policy = parse_source(source)
        findings = [*find(policy)]
        if catalogue is not None:
            findings += check_privileges(policy, catalogue, text=source.text)
        found += [(source.name, finding) for finding in sorted(findings, key=lambda item: (item.line, item.column))]
    errors = sum(finding.severity is Severity.ERROR for _, finding in found)
    code = ExitCode.FAILED if errors else ExitCode.DONE
    if json:
        rows = [
            {"file": name, "line": item.line, "column": item.column, "severity": item.severity.value,
             "finding": item.code, "message": item.message}
            for name, item in found
        ]  # fmt: skip
        write_json({"findings": rows}, code=code)
    else:
        for name, finding in found:
            write_line(printable(f"{name}: {finding}"))
        note(f"{len(sources)} files, {errors} errors, {len(found) - errors} warnings")
    if errors:
        raise typer.Exit(code)


@app.command("format", epilog=examples("maia policy format", "maia policy format --check"))
def format_(
    files: _Files = None,
    *,
    check_only: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when something would.")] = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Write policy files in the one canonical spelling, keeping comments; what cannot be read is not touched."""
    from maia.cli.acs import POLICY, read_rules
    from maia.cli.show.exits import ExitCode
    from maia.cli.show.output import note, printable, write_json, write_line
    from maia.errors import NotFoundError
    from maia.policy import PolicySource, format_text, parse_source

    paths = list(files or sorted((home / POLICY).glob("*.rules")))
    if not paths:
        raise NotFoundError(f"there is no policy: write `{home / POLICY}/NAME.rules`", code="NO_POLICY")
    changed = []
    for path in paths:
        text = read_rules(path)
        parse_source(PolicySource(name=path.name, text=text))
        formatted = format_text(text)
        if formatted != text:
            changed.append(path)
            if not check_only:
                _replace(path, formatted)
    code = ExitCode.FAILED if check_only and changed else ExitCode.DONE
    if json:
        write_json({"changed": [str(path) for path in changed], "files": len(paths)}, code=code)
    else:
        for path in changed:
            write_line(printable(str(path)))
        note(f"{len(changed)} of {len(paths)} files {'would change' if check_only else 'changed'}")
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


@app.command(epilog=examples("maia policy preview"))
def preview(
    *,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Say what the policy files would change for whom, and change nothing."""
    _submit(home, passphrase_file, at, json=json, applied=False)


@app.command(epilog=examples("maia policy apply"))
def apply(
    *,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Put the policy files in force; roles that they do not carry fall, with what stood on them."""
    _submit(home, passphrase_file, at, json=json, applied=True)


def _submit(home: Path, passphrase_file: Path | None, at: str | None, *, json: bool, applied: bool) -> None:
    """Hand the policy files to the service; what it refuses is named by file, as whoever wrote it knows it."""
    from maia.cli.acs import open_domain, policy_sources
    from maia.cli.read.instants import decision_instant
    from maia.policy import PolicySyntaxError, check, combine_sources, parse_source

    sources = policy_sources(home)
    text = combine_sources(sources)
    _, service = open_domain(home, passphrase_file)
    try:
        submit = service.apply if applied else service.preview
        change = submit(text, at=decision_instant(at))
    except PolicySyntaxError as error:
        for source in sources:
            for item in check(parse_source(source)):
                if item.code == error.code and error.message.endswith(item.message):
                    raise PolicySyntaxError(
                        f"`{source.name}`, line {item.line}, column {item.column}: {item.message}",
                        code=item.code, line=item.line, column=item.column,
                    ) from error  # fmt: skip
        raise
    _show(change, json=json, applied=applied)


@app.command(epilog=examples("maia policy explain \"npTracker('AE05 XYZ')\" --as smith"))
def explain(
    role: Annotated[str, typer.Argument(metavar="ROLE", help="The role with its parameters.")],
    *,
    as_: Annotated[str, principal_option("--as", help="The member that has it.")],
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Show why a member has a role: the rule, and what met it; exits 3 when the role is not active."""
    from maia.cli.acs import open_domain
    from maia.cli.read.instants import decision_instant
    from maia.cli.show.output import printable, write_json, write_line
    from maia.errors import DeniedError

    _, service = open_domain(home, passphrase_file)
    proof = service.explain(role, principal=as_, at=decision_instant(at))
    if proof is None:
        raise DeniedError(f"`{as_}` does not have `{role}` active", code="ROLE_INACTIVE")
    lines = list(proof.lines())
    if json:
        write_json({"member": as_, "role": role, "proof": lines})
        return
    for line in lines:
        write_line(printable(line))


def _show(change: PolicyChange, *, json: bool, applied: bool) -> None:
    from maia.cli.acs import ended_to_json
    from maia.cli.show.output import note, printable, write_json, write_line

    if json:
        rows = [
            {"member": item.principal, "lost_roles": list(item.lost_roles),
             "gained_privileges": list(item.gained_privileges), "lost_privileges": list(item.lost_privileges),
             "ended": [ended_to_json(ended) for ended in item.ended]}
            for item in change.differences
        ]  # fmt: skip
        write_json({"number": change.number, "changes": rows, "warnings": [str(item) for item in change.findings]})
        return
    for item in change.differences:
        for sign, words in (("- role", item.lost_roles), ("+", item.gained_privileges), ("-", item.lost_privileges)):
            for word in words:
                write_line(printable(f"{item.principal}  {sign} {word}"))
        for ended in item.ended:
            write_line(printable(f"{item.principal}  - certificate {ended.certificate_id.hex()[:16]}"))
    for finding in change.findings:
        note(str(finding))
    done = f"policy number {change.number} is in force" if applied else "nothing was changed"
    note(f"{len(change.differences)} members are concerned; {done}")


def _replace(path: Path, text: str) -> None:
    """Put a text in the place of a file in one step."""
    import os

    part = path.with_name(f".{path.name}.part")
    part.write_text(text, "utf-8")
    os.replace(part, path)  # noqa: PTH105 - in one step
