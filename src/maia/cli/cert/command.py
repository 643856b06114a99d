"""`maia cert show|add|list|report|forget`: certificates as trees, those that others gave, the register; lost ones."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.instants import show_instant
from maia.cli.read.options import certificate_argument, examples, new_app, principal_option
from maia.cli.read.services import Served
from maia.cli.show.certificates import certificate_to_json, certificate_tree, is_genuine, state_text
from maia.cli.show.output import answer, draw, note, printable, write_json, write_line
from maia.encoding import format_advanced, parse_canonical

app = new_app("Show and take in certificates.", "maia cert show", "maia cert add met.cert")


@app.command(
    epilog=examples("maia cert show", "maia cert show 3fa1c9 --sexp", "maia cert show smith.cert --json"),
)
@unpacked
def show(
    certificates: Annotated[
        list[str] | None, certificate_argument("Files, or beginnings of ids; all of this home when left out.")
    ] = None,
    *,
    sexp: Annotated[bool, typer.Option("--sexp", help="Write the advanced S-expression, signature included.")] = False,
    place: CommandPlace,
) -> None:
    """Show what certificates say, whether their signatures verify, and how long they outlive a revocation."""
    folder, instant = place.folder, place.instant
    found = [folder.certificate(text) for text in certificates or ()] or list(folder.certificates.pool())
    if place.json:
        write_json({
            "certificates": [
                {
                    **certificate_to_json(item, folder),
                    "genuine": is_genuine(item),
                    "state": state_text(item.body.period, instant),
                }
                for item in found
            ]
        })  # fmt: skip
    elif sexp:
        for item in found:
            write_line(format_advanced(parse_canonical(item.raw)))
    elif not found:
        note("no certificates here; `maia grant` and `maia name add` make some")
    else:
        book = folder.book()
        for item in found:
            draw(certificate_tree(item, folder, at=instant, book=book))


@app.command(epilog=examples("maia cert add met.cert", "maia cert add met.cert --json"))
@unpacked
def add(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A signed certificate; `-` is stdin.")], *, served: Served
) -> None:
    """Take in a certificate that somebody gave, fresh or renewed, after checking its signature.

    One that gives the domain of this home a right is told to the domain's brokers, with the chain that leads to it.
    """
    from maia.authority import exchange_of
    from maia.cli.read.files import read_source
    from maia.home import keep_exchange
    from maia.principals import parse_certificate, verify_certificate

    folder = served.folder
    found = verify_certificate(parse_certificate(read_source(file)))
    if exchange_of(found) is not None:  # who speaks for an owner is not evidence that somebody presents
        path = keep_exchange(folder.path, found)
        answer({**certificate_to_json(found, folder), "file": str(path), "told": False}, str(path), json=served.json)
        return
    path = folder.certificates.add(found)
    key = None if folder.config is None else folder.keys.get(folder.config.domain)
    mine = key is not None and found.body.subject == key and folder.key_path(served.opened.config.domain).is_file()
    if mine:
        served.service.gain(found.raw, at=served.instant)
    if served.json:
        write_json({**certificate_to_json(found, folder), "file": str(path), "told": mine})
        return
    write_line(str(path))
    note("the brokers of this domain hear of it" if mine else f"kept certificate {found.certificate_id.hex()[:16]}")


@app.command("list", epilog=examples("maia cert list", "maia cert list --at 2026-06-01T00:00:00Z --json"))
@unpacked
def list_(*, served: Served) -> None:
    """List what the domain has issued that is in force: its register, with what delegates reported.

    The register is the policy in force: what members hold, what was given beside the policy, by agreement or by hand,
    and what those who may pass a right on told with `maia cert report`.
    """
    from maia.domain import issued_certificates

    found = issued_certificates(served.opened, served.service, at=served.instant)
    rows = [item.to_json() for item in found]
    lines = [
        f"{item.certificate.certificate_id.hex()[:16]}  {item.holder}  {item.what}"
        + (f"  until {show_instant(item.until)}" if item.until else "")
        + (f"  reported by {item.reporter}" if item.reporter else "")
        for item in found
    ]
    answer({"certificates": rows}, *map(printable, lines), json=served.json)


@app.command(epilog=examples("maia cert report passed.cert --as kent", "maia cert report 3fa1c9 --as kent"))
@unpacked
def report(
    certificate: Annotated[str, typer.Argument(metavar="FILE", help="What was passed on; a file, or an id.")],
    *,
    as_: Annotated[str, principal_option("--as", help="Who passed it on; its private key proves it.")],
    domain: Annotated[
        str | None,
        typer.Option("--domain", metavar="DIR", help="The home of the domain it is told to; this one when left out."),
    ] = None,
    served: Served,
) -> None:
    """Tell a domain that a right of its was passed on, so that its register shows it.

    Only whoever passed it on can tell, and only of a right that the domain gave it to pass on.
    """
    from pathlib import Path

    from maia.cli.read.signers import open_signer
    from maia.domain import prove_key

    found = served.folder.certificate(certificate)
    target = served if domain is None else Served(home=Path(domain), at=served.at)
    signer = open_signer(served.folder.key(as_), served.folder, served.passphrase_file)
    who = prove_key(target.service, signer, nonce=secrets.token_bytes(32), at=served.instant)
    target.service.report(who, found.raw, at=served.instant)
    identity = found.certificate_id.hex()
    answer({"certificate": identity, "reporter": as_}, f"told of {identity[:16]}", json=served.json)


@app.command(epilog=examples("maia cert forget 3fa1c9d2", "maia cert forget 3fa1c9d2 --yes --json"))
@unpacked
def forget(
    certificate: Annotated[
        str, typer.Argument(metavar="ID", help="The beginning of its id, as `maia status` shows it.")
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    place: CommandPlace,
) -> None:
    """Wait no longer for a certificate that was lost, on which a client's right stood.

    What it alone allowed is denied from then on, and streams that wait for it go on without it. The audit tells it.
    """
    from maia.cli.read.answers import confirm
    from maia.domain import let_go_of, missing_certificates
    from maia.errors import NotFoundError, UsageError
    from maia.home import Home

    home = Home.open(place.home)
    lost = missing_certificates(home, home.pool(), at=place.instant)
    found = [item for item in lost if item.identity.hex().startswith(certificate.lower())]
    if not found:
        raise NotFoundError(f"nobody here waits for a certificate `{certificate}`", code="NO_CERTIFICATE")
    if len(found) > 1:
        raise UsageError(f"`{certificate}` begins {len(found)} ids", code="AMBIGUOUS")
    identity, clients = found[0].identity.hex(), ", ".join(found[0].clients)
    if not yes:
        confirm(f"what {clients} may see by {identity[:16]} alone is lost; go on?", otherwise="nothing was changed")
    let_go_of(home, found[0], at=place.instant)
    if place.json:
        write_json({"certificate": identity, "clients": list(found[0].clients)})
    else:
        write_line(f"nobody waits for certificate {identity[:16]} any more")
