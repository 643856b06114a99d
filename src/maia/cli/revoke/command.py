"""`maia revoke`: take back a certificate by the list that it names, or a role or member of the domain."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.answers import confirm
from maia.cli.read.bundles import Signing, unpacked
from maia.cli.read.options import certificate_argument, examples, new_app
from maia.cli.show.output import note, printable, write_json, write_line
from maia.cli.show.statements import describe_statement, statement_to_json, told_words
from maia.encoding import counted
from maia.errors import UsageError

app = new_app()


@app.command(
    epilog=examples(
        "maia revoke 3fa1c9 --dry-run",
        "maia revoke 3fa1c9 --yes --out met.crl",
        "maia revoke --principal smith --preview",
        "maia revoke --role \"npTracker('AE05 XYZ')\" --principal smith --yes",
        "maia revoke --lift --principal smith",
    )
)
@unpacked
def revoke(
    certificate: Annotated[
        str | None, certificate_argument("The certificate: a file, or the beginning of its id.")
    ] = None,
    *,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="A role of the domain's members, with its parameters.")
    ] = None,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="NAME", help="A member; alone, it ceases to be one.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Say what would end, in order, and revoke nothing.")
    ] = False,
    lift: Annotated[
        bool, typer.Option("--lift", help="Let a member's right be issued again that was revoked by its certificate.")
    ] = False,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    signing: Signing,
) -> None:
    """Revoke a certificate by the list that it obeys, or a role or a membership by the domain's service.

    It takes force at once where the list is heard, which is everywhere that this home's log is followed; printed is who
    loses what, and by when at the latest where nobody hears of it. A certificate without an on-line test cannot be
    revoked: nobody would look. What a domain's service issued is revoked there, with everything that stands on it:
    roles first, then capabilities, the signed list, subscriptions and key groups. A right that was revoked by its
    certificate is not issued anew to the same member before --lift says so.
    """
    from maia.cli.show.revocations import hand_revocation_lines, loss_to_json
    from maia.domain import draft_revocation, in_register, sign_revocation

    folder, dry_run = signing.folder, dry_run or preview
    if lift:
        _lift(signing, certificate, principal)
        return
    if role is not None or principal is not None or (certificate is not None and in_register(folder, certificate)):
        _revoke_in_domain(signing, certificate, role, principal, preview=dry_run, yes=yes)
        return
    if certificate is None:
        raise UsageError("name a certificate, --role or --principal", code="NOTHING_NAMED")
    draft = draft_revocation(folder, folder.certificate(certificate), at=signing.instant)
    body, told, identity = draft.body, None, draft.certificate.certificate_id.hex()
    for line in hand_revocation_lines(draft, folder, at=signing.instant):
        note(line)
    if not dry_run:
        if not yes:
            confirm(f"Revoke {identity[:16]}?", otherwise="not revoked")
        made = sign_revocation(folder, draft, signing.signer(draft.signer), at=signing.instant)
        body, told = made.body, made.told
        signing.write(made.statement.raw)
        note(told_words(made.told))
    if signing.json:
        write_json({
            "certificate": identity, "exposure": str(draft.exposure), "statement": statement_to_json(body),
            "signed": not dry_run, "told": told, **loss_to_json(draft, folder, at=signing.instant),
        })  # fmt: skip
    elif not signing.silent:
        write_line(("would sign: " if dry_run else "") + describe_statement(body, folder))


def _lift(signing: Signing, certificate: str | None, principal: str | None) -> None:
    """Let a right be issued again."""
    from maia.cli.read.services import open_domain

    if certificate is None and principal is None:
        raise UsageError("name a certificate or --principal", code="NOTHING_NAMED")
    _, service = open_domain(signing.home, signing.passphrase_file)
    raw = None if certificate is None else signing.folder.certificate(certificate).raw
    count = service.lift(at=signing.instant, certificate=raw, principal=principal)
    if signing.json:
        write_json({"lifted": count})
    else:
        write_line(f"{counted(count, 'right')} may be issued again")


def _revoke_in_domain(
    signing: Signing, certificate: str | None, role: str | None, principal: str | None, *, preview: bool, yes: bool
) -> None:
    """Show what a revocation ends, ask, and do it."""
    from maia.cli.read.services import open_domain
    from maia.cli.show.revocations import revocation_lines, revocation_to_json

    _, service = open_domain(signing.home, signing.passphrase_file)
    ids = [] if certificate is None else [signing.folder.certificate(certificate).certificate_id]
    done = service.preview_revocation(at=signing.instant, certificates=ids, role=role, principal=principal)
    if not preview:
        if not yes:
            for line in revocation_lines(done, at=signing.instant):
                note(line)
            confirm("Revoke all this?", otherwise="not revoked")
        done = service.revoke(at=signing.instant, certificates=ids, role=role, principal=principal)
    if signing.json:
        write_json({**revocation_to_json(done, at=signing.instant), "revoked": not preview, "withdrawn": not preview})
        return
    for line in revocation_lines(done, at=signing.instant):
        write_line(printable(line))
    note("nothing was revoked" if preview else "revoked" if done.told else "revoked; not everybody has heard yet")
