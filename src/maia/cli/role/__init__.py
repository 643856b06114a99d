"""`maia role activate|deactivate|list|appoint|observe|revoke`: roles of a domain's members, and what they stand on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

if TYPE_CHECKING:
    from maia.access_control import Revocation

app = new_app(
    "Activate and list roles; record what they stand on.", "maia role activate \"npTracker('AE05 XYZ')\" --as smith"
)
_Role = Annotated[str, typer.Argument(metavar="ROLE", help="The role with its parameters, such as `doctor(ali)`.")]
_Fact = Annotated[str, typer.Argument(metavar="FACT", help="The fact, such as `detective(smith)`.")]
_Member = Annotated[str, principal_option("--as", help="The member; its private key proves it.")]


@app.command(epilog=examples("maia role activate \"npTracker('AE05 XYZ')\" --as smith"))
def activate(
    role: _Role,
    *,
    as_: _Member,
    anonymous: Annotated[
        bool | None,
        typer.Option("--anonymous/--named", help="Whether the journal leaves out who it is; else as the domain says."),
    ] = None,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Activate a role and fetch the capabilities it gives; they are kept in this home."""
    from maia.cli.read.instants import decision_instant
    from maia.cli.read.services import open_domain, prove_member
    from maia.cli.show.output import note, printable, write_json, write_line
    from maia.cli.show.words import counted
    from maia.domain import keep_handed, proof_lines

    moment = decision_instant(at)
    opened, service = open_domain(home, passphrase_file)
    who = prove_member(service, home, as_, passphrase_file, at=moment)
    proof = service.activate(who, role, at=moment, anonymous=anonymous)
    handed = service.capabilities(who, at=moment)
    keep_handed(opened, handed.evidence, handed.statements)
    lines = proof_lines(proof, home, in_force=service.policy(at=moment))
    if json:
        write_json(
            {"role": lines[0], "proof": lines,
             "certificates": [item.certificate_id.hex() for item in handed.certificates],
             "refused": [{"privilege": what, "error": code} for what, code in handed.refused]}
        )  # fmt: skip
        return
    for line in lines:
        write_line(printable(line))
    note(f"kept {counted(len(handed.certificates), 'certificate')} in this home")
    for what, code in handed.refused:
        note(f"no right for `{what}`: {code}")


@app.command(epilog=examples("maia role deactivate 'doctor(ali)' --as ali"))
def deactivate(
    role: _Role,
    *,
    as_: _Member,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Give a role up; what stood on it ends, also for others."""
    from maia.cli.read.instants import decision_instant
    from maia.cli.read.services import open_domain, prove_member

    moment = decision_instant(at)
    _, service = open_domain(home, passphrase_file)
    _tell(service.deactivate(prove_member(service, home, as_, passphrase_file, at=moment), role, at=moment), json=json)


@app.command("list", epilog=examples("maia role list", "maia role list --as smith --json"))
def list_(
    *,
    as_: Annotated[str | None, principal_option("--as", help="One member; all when left out.")] = None,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """List the active roles and what they give now."""
    from maia.cli.read.instants import decision_instant
    from maia.cli.read.services import open_domain
    from maia.cli.show.output import note, printable, write_json, write_line

    moment = decision_instant(at)
    _, service = open_domain(home, passphrase_file)
    roles = service.roles(at=moment, principal=as_)
    privileges = service.privileges(at=moment, principal=as_)
    if json:
        write_json(
            {"roles": [{"member": role.holder, "role": str(role.atom)} for role in roles],
             "privileges": [{"member": holder, "privilege": str(what)} for holder, what in privileges]}
        )  # fmt: skip
        return
    for role in roles:
        write_line(printable(str(role)))
    for holder, what in privileges:
        write_line(printable(f"{holder} |- {what}"))
    if not roles:
        note("nobody has a role active")


@app.command(epilog=examples("maia role appoint \"courtOrder(c1, 'AE05 XYZ')\" --until 2026-12-31"))
def appoint(
    fact: _Fact,
    *,
    until: options.Until = None,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Record an appointment; capabilities that rest on it end with it."""
    _record(fact, until, home, passphrase_file, at, json=json, observed=False)


@app.command(epilog=examples("maia role observe 'caseAssignment(smith, c1)'"))
def observe(
    fact: _Fact,
    *,
    until: options.Until = None,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Record that an environment predicate is true, where no provider says so."""
    _record(fact, until, home, passphrase_file, at, json=json, observed=True)


@app.command(epilog=examples("maia role revoke 'caseAssignment(smith, c1)'"))
def revoke(
    fact: _Fact,
    *,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Revoke an appointment or an observation; roles and capabilities that stood on it end."""
    from maia.cli.read.instants import decision_instant
    from maia.cli.read.services import open_domain

    _, service = open_domain(home, passphrase_file)
    _tell(service.retract(fact, at=decision_instant(at)), json=json)


# What `revoke` was called before; it stays for a release.
app.command("retract", hidden=True)(revoke)


def _record(
    fact: str,
    until: str | None,
    home: Path,
    passphrase_file: Path | None,
    at: str | None,
    *,
    json: bool,
    observed: bool,
) -> None:
    from maia.cli.read.instants import decision_instant, optional_instant, show_instant
    from maia.cli.read.services import open_domain
    from maia.cli.show.output import printable, write_json, write_line

    moment = decision_instant(at)
    ends = optional_instant(until, at=moment)
    _, service = open_domain(home, passphrase_file)
    new = (service.observe if observed else service.appoint)(fact, at=moment, until=ends)
    if json:
        write_json({"fact": fact, "new": new, "until": show_instant(ends)})
    else:
        write_line(printable(f"{fact}{'' if ends is None else f' until {show_instant(ends)}'}"))


def _tell(revocation: Revocation, *, json: bool) -> None:
    from maia.cli.show.output import note, printable, write_json, write_line
    from maia.cli.show.revocations import revocation_lines, revocation_to_json
    from maia.cli.show.words import counted

    if json:
        write_json(revocation_to_json(revocation))
        return
    lines = revocation_lines(revocation)
    for line in lines:
        write_line(printable(line))
    note(f"{counted(len(lines), 'thing')} ended" if lines else "nothing ended by it")
