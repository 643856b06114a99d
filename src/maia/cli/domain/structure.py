"""`maia domain show|exchange`: what belongs to a domain, and who speaks for an owner of several keys."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, Signing, unpacked
from maia.cli.read.options import examples, principal_option
from maia.cli.show.output import answer

app = typer.Typer()
"""These commands, which `maia domain` has beside its own."""


@app.command(epilog=examples("maia domain show", "maia domain show ccs --json"))
@unpacked
def show(
    who: Annotated[
        str | None, typer.Argument(metavar="DOMAIN", help="A domain's key; that of this home when left out.")
    ] = None,
    *,
    place: CommandPlace,
) -> None:
    """Show what belongs to a domain: its brokers and clients, or its sub-domains and what belongs to them.

    It is read from the names `brokers`, `clients` and `domains` that are in force. A domain that has sub-domains beside
    brokers or clients is refused whole (`DOMAIN_KIND`): it has no brokers that count, and its brokers serve nobody.
    """
    from maia.domain import domain_structure

    folder = place.folder
    own = "domain" if folder.config is None else folder.config.domain
    found = domain_structure(folder, folder.key(who or own), at=place.instant)
    answer(found.to_json(), *found.lines(), json=place.json)


@app.command(
    epilog=examples(
        "maia domain exchange ccs kent --from met",
        "maia domain exchange ccs kent --from pito --owner '2 of (met, ccs, pito)' --out pito.exchange",
    )
)
@unpacked
def exchange(
    out_: Annotated[str, typer.Argument(metavar="OLD", help="The member that goes.")],
    in_: Annotated[str, typer.Argument(metavar="NEW", help="The key that takes its place.")],
    *,
    issuer: Annotated[str, principal_option("--from", help="A member that says so; its private key signs.")],
    owner: Annotated[
        str | None, principal_option("--owner", help="`2 of (a, b, c)`; the owner of the home's network when left out.")
    ] = None,
    signing: Signing,
) -> None:
    """Exchange a member of an owner of several keys; it counts when enough members of now have signed the same.

    The owner keeps its name, so types, networks and rights stay what they are. What the members of now gave together
    stays; what a member that goes has signed counts no longer. Every home that should know of it takes each member's
    file with `maia cert add FILE`.
    """
    from maia.domain import network_owner, sign_exchange
    from maia.home import words

    folder = signing.folder
    meant = network_owner(folder, owner)
    made = sign_exchange(folder, meant, signing.signer(folder.key(issuer)), out=folder.key(out_), in_=folder.key(in_))
    signing.write(made.raw)
    speaker = folder.book().successions.speaker(meant)
    members = words.show_subject(speaker, folder)
    if not signing.silent:
        answer(
            {"id": made.certificate_id.hex(), "owner": words.show_subject(meant, folder), "members": members,
             "counts": speaker == made.body.subject},
            f"the members are {members}", json=signing.json,
        )  # fmt: skip
