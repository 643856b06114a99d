"""`maia role activate|deactivate|list|appoint|observe|revoke`: roles of a domain's members, and what they stand on."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.bundles import unpacked
from maia.cli.read.instants import show_instant
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.read.services import Served, note_unmet
from maia.cli.show.output import note, printable, write_json, write_line
from maia.encoding import counted
from maia.errors import DeniedError

if TYPE_CHECKING:
    from maia.access_control import Revocation

app = new_app(
    "Activate and list roles; record what they stand on.", "maia role activate \"npTracker('AE05 XYZ')\" --as smith"
)
_Role = Annotated[str, typer.Argument(metavar="ROLE", help="The role with its parameters, such as `doctor(ali)`.")]
_Fact = Annotated[str, typer.Argument(metavar="FACT", help="The fact, such as `detective(smith)`.")]
_Member = Annotated[str, principal_option("--as", help="The member; its private key proves it.")]


@app.command(epilog=examples("maia role activate \"npTracker('AE05 XYZ')\" --as smith"))
@unpacked
def activate(
    role: _Role,
    *,
    as_: _Member,
    anonymous: Annotated[
        bool | None,
        typer.Option("--anonymous/--named", help="Whether the journal leaves out who it is; else as the domain says."),
    ] = None,
    served: Served,
) -> None:
    """Activate a role and fetch the capabilities it gives; they are kept in this home."""
    from maia.domain import keep_handed, proof_lines

    service, at = served.service, served.instant
    who = served.prove(as_)
    try:
        proof = service.activate(who, role, at=at, anonymous=anonymous)
    except DeniedError as error:
        if error.code == "ROLE_REFUSED":
            note_unmet(served, role, as_)
        raise
    handed = service.capabilities(who, at=at)
    keep_handed(served.opened, handed.evidence, handed.statements)
    lines = proof_lines(proof, served.home, in_force=service.policy(at=at))
    if served.json:
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
@unpacked
def deactivate(role: _Role, *, as_: _Member, served: Served) -> None:
    """Give a role up; what stood on it ends, also for others."""
    done = served.service.deactivate(served.prove(as_), role, at=served.instant)
    _tell(done, json=served.json, at=served.instant)


@app.command("list", epilog=examples("maia role list", "maia role list --as smith --json"))
@unpacked
def list_(
    *,
    as_: Annotated[str | None, principal_option("--as", help="One member; all when left out.")] = None,
    served: Served,
) -> None:
    """List the active roles and what they give now, without what is denied."""
    roles = served.service.roles(at=served.instant, principal=as_)
    privileges = [
        (holder, item.words)
        for holder in dict.fromkeys(role.holder for role in roles)
        for item in served.service.held(holder, at=served.instant)
        if not item.whole
    ]
    if served.json:
        write_json(
            {"roles": [{"member": role.holder, "role": str(role.atom)} for role in roles],
             "privileges": [{"member": holder, "privilege": what} for holder, what in privileges]}
        )  # fmt: skip
        return
    for role in roles:
        write_line(printable(str(role)))
    for holder, what in privileges:
        write_line(printable(f"{holder} |- {what}"))
    if not roles:
        note("nobody has a role active")


@app.command(epilog=examples("maia role appoint \"courtOrder(c1, 'AE05 XYZ')\" --until 2026-12-31"))
@unpacked
def appoint(fact: _Fact, *, until: options.Until = None, served: Served) -> None:
    """Record an appointment; capabilities that rest on it end with it."""
    _record(fact, until, served, observed=False)


@app.command(epilog=examples("maia role observe 'caseAssignment(smith, c1)'"))
@unpacked
def observe(fact: _Fact, *, until: options.Until = None, served: Served) -> None:
    """Record that an environment predicate is true, where no provider says so."""
    _record(fact, until, served, observed=True)


@app.command(epilog=examples("maia role revoke 'caseAssignment(smith, c1)'"))
@unpacked
def revoke(fact: _Fact, *, served: Served) -> None:
    """Revoke an appointment or an observation; roles and capabilities that stood on it end."""
    _tell(served.service.retract(fact, at=served.instant), json=served.json, at=served.instant)


# What `revoke` was called before; it stays for a release.
app.command("retract", hidden=True, epilog=examples("maia role revoke 'caseAssignment(smith, c1)'"))(revoke)


def _record(fact: str, until: str | None, served: Served, *, observed: bool) -> None:
    ends, service = served.moment(until), served.service
    new = (service.observe if observed else service.appoint)(fact, at=served.instant, until=ends)
    if served.json:
        write_json({"fact": fact, "new": new, "until": show_instant(ends)})
    else:
        write_line(printable(f"{fact}{'' if ends is None else f' until {show_instant(ends)}'}"))


def _tell(revocation: Revocation, *, json: bool, at: datetime) -> None:
    from maia.cli.show.revocations import revocation_lines, revocation_to_json

    if json:
        write_json(revocation_to_json(revocation, at=at))
        return
    lines = revocation_lines(revocation, at=at)
    for line in lines:
        write_line(printable(line))
    note(f"{counted(len(lines), 'thing')} ended" if lines else "nothing ended by it")
