"""`maia revoke`: withdraw a certificate by the list that it names, or a role or member of the domain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import certificate_argument, examples, new_app

if TYPE_CHECKING:
    from maia.home import Folder
    from maia.principals import PublicKey, UnverifiedCertificate

app = new_app()


@app.command(
    epilog=examples(
        "maia revoke 3fa1c9 --dry-run",
        "maia revoke 3fa1c9 --yes --until +1d --out met.crl",
        "maia revoke --principal smith --preview",
        "maia revoke --role \"npTracker('AE05 XYZ')\" --principal smith --yes",
    )
)
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
        bool, typer.Option("--preview", help="Say what would end, in order, and withdraw nothing.")
    ] = False,
    ends: Annotated[
        str | None,
        typer.Option("--until", metavar="INSTANT", help="End of the new timed list; as long as the last by default."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and sign nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    out: options.Out = None,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Add a certificate to the CRL that it demands, signed by the key that it names.

    Prints the worst case until no verifier accepts the certificate any more. A certificate without an on-line test
    cannot be withdrawn: nobody would look. What a domain's service issued is withdrawn there, with everything that
    stands on it: roles first, then capabilities, the signed list, subscriptions and key groups.
    """
    from maia.authority import check_revocable, exposure_window, issue_statement
    from maia.cli.lists import next_list, track_of
    from maia.cli.read.files import write_target
    from maia.cli.read.instants import decision_instant, optional_instant, show_instant
    from maia.cli.read.signers import open_signer
    from maia.cli.revoking import in_register, revoke_in_domain
    from maia.cli.show.exits import ExitCode
    from maia.cli.show.output import note, write_json, write_line
    from maia.cli.show.statements import describe_statement, statement_to_json
    from maia.errors import UsageError
    from maia.home import Folder
    from maia.principals import TestKind

    place, instant = Folder(home), decision_instant(at)
    if role is not None or principal is not None or (certificate is not None and in_register(place, certificate)):
        revoke_in_domain(
            place, certificate, role, principal, at=instant, preview=preview or dry_run, yes=yes,
            passphrase_file=passphrase_file, json=json,
        )  # fmt: skip
        return
    if certificate is None:
        raise UsageError("name a certificate, --role or --principal", code="NOTHING_NAMED")
    dry_run = dry_run or preview
    target = place.certificate(certificate)
    check_revocable(target)
    key = _crl_signer(place, target)
    book = place.book()
    track = track_of(book, key.key_id, TestKind.CRL)
    known = frozenset() if track.newest is None else track.newest.certificates
    if target.certificate_id in known:
        raise UsageError(f"`{target.certificate_id.hex()[:16]}` is on the last list already", code="REVOKED_BEFORE")
    body = next_list(
        track, kind=TestKind.CRL, signer=key, certificates=known | {target.certificate_id}, at=instant,
        ends=optional_instant(ends, at=instant),
    )  # fmt: skip
    exposure = exposure_window(target, at=instant, statements=book)
    effect = "at once, where the new list is known" if body.starts is None else f"from {show_instant(body.starts)}"
    note(f"withdraws {target.certificate_id.hex()[:16]} {effect}; worst case {exposure}")
    if not dry_run and not yes:
        _confirm(target.certificate_id.hex()[:16])
    data: dict[str, object] = {
        "certificate": target.certificate_id.hex(), "exposure": str(exposure), "statement": statement_to_json(body),
        "signed": not dry_run,
    }  # fmt: skip
    if not dry_run:
        statement = issue_statement(body, open_signer(key, place, passphrase_file))
        book.accept(statement)
        place.statements.save(book)
        if out is not None:
            write_target(out, statement.raw)
    if json:
        write_json(data, code=ExitCode.DONE)
    elif str(out) != "-":
        write_line(("would sign: " if dry_run else "") + describe_statement(body, place))


def _crl_signer(place: Folder, certificate: UnverifiedCertificate) -> PublicKey:
    """Find the key whose CRL the certificate obeys, and refuse where there is none."""
    from maia.errors import UsageError
    from maia.principals import PublicKey, TestKind

    tests = {test.kind: test for test in certificate.body.tests}
    if TestKind.CRL in tests:
        signer = tests[TestKind.CRL].signer
        if isinstance(signer, PublicKey):
            return signer
        name = place.names.get(signer.key_id)
        return place.key(name if name is not None else signer.fingerprint)
    if TestKind.REVALIDATION in tests:
        raise UsageError(
            "the certificate obeys a revalidation: leave it out of the next `maia statement revalidation`",
            code="NOT_BY_CRL",
        )
    if TestKind.ONE_TIME in tests:
        raise UsageError(
            "the certificate obeys one-time answers: stop confirming it with `maia statement one-time`",
            code="NOT_BY_CRL",
        )
    raise UsageError("the certificate demands no statement, so no list can withdraw it", code="IRREVOCABLE")


def _confirm(identity: str) -> None:
    import sys

    from maia.errors import UsageError

    print(f"Withdraw {identity}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline(64).strip().lower() not in ("y", "yes"):
        raise UsageError("not withdrawn: nobody confirmed it", code="CONFIRMATION_MISSING")
