"""`maia grant`: issue a capability, and refuse what the issuer cannot give."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli.grant.issuing import Issuing
from maia.cli.read.bundles import RightOptions, unpacked
from maia.cli.read.options import examples, new_app

app = new_app()


@app.command(
    epilog=examples(
        "maia grant --from pito --to met --network 'pito/UK Police Network' --action connect --delegate",
        "maia grant --from met --to smith --type 'pito/uk.gov.pito.Numberplate@*' --action subscribe \\",
        "    --attribute numberplate='AE05 XYZ' --attribute timestamp --until 2026-12-31T00:00:00Z",
        "maia grant --from met --to 'met: Met Brokers' --type '*' --blanket",
        "maia grant --from ccs --to cctv --type 'pito/uk.gov.pito.Numberplate@*' --action publish \\",
        "    --condition 'now.hour(\"Europe/London\") < 17' --condition 'rate(10, \"1m\")'",
        "maia grant --from shop --to acme --type shop/shop.Product --action publish \\",
        "    --bound \"strict-lower (message = 'new_product', price < 100)\"",
    )
)
@unpacked
def grant(
    *,
    asked: RightOptions,
    on_violation: Annotated[
        str | None,
        typer.Option(
            "--on-violation", metavar="HOW", help="A publication that breaks a demand: force, drop or reject."
        ),
    ] = None,
    enforced: Annotated[
        bool,
        typer.Option(
            "--enforced",
            help="The receiving domain is trusted to enforce the demands on the row; its brokers get whole columns.",
        ),
    ] = False,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            "--bound", metavar="KIND (…)", help="What it publishes or subscribes to must keep to: upper (price < 100)."
        ),
    ] = None,
    renew: Annotated[
        str | None, typer.Option("--renew", metavar="URI", help="Where the subject asks for a fresh certificate.")
    ] = None,
    blanket: Annotated[
        bool, typer.Option("--blanket", help="Issue it though the issuer holds less; what counts is what both have.")
    ] = False,
    issuing: Issuing,
) -> None:
    """Issue a capability: a signed right that its subject carries.

    The issuer has to hold the right, and to be allowed to pass it on, by the certificates of this home; the owner of a
    type or network needs nothing. --blanket issues a wider one, which is worth as much as the issuer has at the time.

    The right obeys the issuer's own lists, so that `maia revoke` can take it back, unless --test names others or
    --irrevocable says otherwise; where the issuer has no list in force one is signed. Printed is how long it counts at
    worst after it is revoked.

    Nothing in the network can hold a domain to a demand on the row. A right with one that may be passed on is issued
    when somebody at the terminal says so, or --yes does.
    """
    folder = issuing.folder
    right = asked.right(folder, on_violation=on_violation, enforced=enforced, bounds=bound)
    issuing.issue(right, renew=renew, roots=asked.roots(folder), blanket=blanket)
