"""`maia policy`: the rules of a domain, its labels and its XML policies; checked, asked about, previewed, applied."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.policy import answers, bounds, denials, labels, testing, xml_policies
from maia.cli.policy.emergency import EXAMPLES as EMERGENCY_EXAMPLES
from maia.cli.policy.emergency import emergency
from maia.cli.read import options
from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.read.services import Served, note_unmet
from maia.cli.show.checked import tell_findings, tell_formatted
from maia.cli.show.output import answer, note, printable, write_json, write_line
from maia.encoding import counted
from maia.errors import DeniedError

if TYPE_CHECKING:
    from maia.access_control import PolicyChange

app = new_app("Check, format, preview and apply a domain's policy.", "maia policy check", "maia policy preview")
app.command("emergency", epilog=examples(*EMERGENCY_EXAMPLES))(emergency)
app.add_typer(bounds.app)
app.add_typer(answers.app)
app.add_typer(denials.app)
app.add_typer(labels.app)
app.add_typer(testing.app)
app.add_typer(xml_policies.app, name="xml")
_Files = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE", help="Policy files; those of the home when left out.")
]


@app.command(epilog=examples("maia policy check", "maia policy check policy/met.rules --json"))
@unpacked
def check(files: _Files = None, *, place: CommandPlace) -> int:
    """Say what is wrong with policy files, with file, line and column; exits 1 when there is an error.

    Inside a home, rights are compared with the event types that it knows.
    """
    from maia.domain import check_policy, policy_sources
    from maia.home import Home

    sources = policy_sources(place.home, files or ())
    opened = Home.open(place.home) if (place.home / "maia.toml").is_file() else None
    found = check_policy(sources, opened, at=place.instant)
    return tell_findings(found, files=len(sources), json=place.json)


@app.command("format", epilog=examples("maia policy format", "maia policy format --check"))
def format_(
    files: _Files = None,
    *,
    check_only: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when something would.")] = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Write policy files in the one canonical spelling, keeping comments; what cannot be read is not touched."""
    from maia.domain import format_file, policy_paths

    paths = files or policy_paths(home)
    changed = [path for path in paths if format_file(path, write=not check_only)]
    return tell_formatted(changed, files=len(paths), check_only=check_only, json=json)


@app.command(epilog=examples("maia policy roles", "maia policy roles --json"))
@unpacked
def roles(files: _Files = None, *, place: CommandPlace) -> None:
    """List the roles that can be had here, with the file that defines each; those of a parent's set are marked."""
    from maia.domain import defined_roles, policy_sources

    found = defined_roles(policy_sources(place.home, files or ()))
    answer(
        {"roles": [{"role": item.name, "file": item.file, "inherited": item.inherited} for item in found]},
        *(printable(f"{item.name}  {item.file}{' (inherited)' if item.inherited else ''}") for item in found),
        json=place.json,
    )


@app.command(epilog=examples("maia policy preview"))
@unpacked
def preview(*, served: Served) -> None:
    """Say what the policy files would change for whom, and change nothing."""
    _submit(served, applied=False)


@app.command(epilog=examples("maia policy apply"))
@unpacked
def apply(*, served: Served) -> None:
    """Put the policy files in force; roles that they do not carry fall, with what stood on them."""
    _submit(served, applied=True)


@app.command(epilog=examples("maia policy explain \"npTracker('AE05 XYZ')\" --as smith"))
@unpacked
def explain(
    role: Annotated[str, typer.Argument(metavar="ROLE", help="The role with its parameters.")],
    *,
    as_: Annotated[str, principal_option("--as", help="The member that has it.")],
    served: Served,
) -> None:
    """Show why a member has a role: the rule, and what met it; then what is denied to the member, and by which rule.

    When the role is not active it exits with 3, and says which premise each rule for it lacks, with file and line.
    """
    from maia.domain import denial_lines, proof_lines

    proof = served.service.explain(role, principal=as_, at=served.instant)
    if proof is None:
        note_unmet(served, role, as_)
        raise DeniedError(f"`{as_}` does not have `{role}` active", code="ROLE_INACTIVE")
    policy = served.service.policy(at=served.instant)
    lines = proof_lines(proof, served.home, in_force=policy)
    held = served.service.held(as_, at=served.instant)
    denied = served.service.denials(as_, at=served.instant)
    told = denial_lines(denied, served.home, in_force=policy)
    if served.json:
        rights = [{"privilege": item.privilege, "left": None if item.whole else item.words,
                   "denied_by": [one.rule for one in item.denied_by]} for item in held]  # fmt: skip
        write_json({"member": as_, "role": role, "proof": lines, "privileges": rights, "denied": told})
        return
    for line in lines:
        write_line(printable(line))
    for item in held if denied else ():
        write_line(printable(f"nothing left of {item.privilege}" if item.whole else f"has {item.words}"))
    for line in told:
        write_line(printable(line))


def _submit(served: Served, *, applied: bool) -> None:
    """Hand the policy files to the service; what it refuses is named by file, as whoever wrote it knows it."""
    from maia.domain import policy_sources, submit_policy

    sources = policy_sources(served.home)
    change, findings = submit_policy(served.service, sources, at=served.instant, applied=applied)
    lines = [f"{name}: {finding}" for name, finding in findings]
    _show(change, lines, json=served.json, applied=applied, at=served.instant)


def _show(change: PolicyChange, findings: list[str], *, json: bool, applied: bool, at: datetime) -> None:
    from maia.cli.show.revocations import ended_to_json

    if json:
        rows = [
            {"member": item.principal, "lost_roles": list(item.lost_roles),
             "gained_privileges": list(item.gained_privileges), "lost_privileges": list(item.lost_privileges),
             "ended": [ended_to_json(ended, at=at) for ended in item.ended]}
            for item in change.differences
        ]  # fmt: skip
        write_json({"number": change.number, "changes": rows, "warnings": findings})
        return
    for item in change.differences:
        for sign, words in (("- role", item.lost_roles), ("+", item.gained_privileges), ("-", item.lost_privileges)):
            for word in words:
                write_line(printable(f"{item.principal}  {sign} {word}"))
        for ended in item.ended:
            write_line(printable(f"{item.principal}  - certificate {ended.certificate_id.hex()[:16]}"))
    for finding in findings:
        note(finding)
    done = f"policy number {change.number} is in force" if applied else "nothing was changed"
    note(f"concerns {counted(len(change.differences), 'member')}; {done}")
