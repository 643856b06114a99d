"""`maia grant`: issue a capability, and refuse what the issuer cannot give."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

if TYPE_CHECKING:
    from datetime import datetime

    from maia.cli.read.rights import Right
    from maia.home import Folder
    from maia.principals import PublicKey

app = new_app()


@app.command(
    epilog=examples(
        "maia grant --from pito --to met --network 'pito/UK Police Network' --action connect --delegate",
        "maia grant --from met --to smith --type 'pito/uk.gov.pito.Numberplate@*' --action subscribe \\",
        "    --attribute 3265='AE05 XYZ' --attribute 9058 --until 2026-12-31T00:00:00Z",
        "maia grant --from met --to 'met: Met Brokers' --type '*' --blanket",
        "maia grant --from ccs --to cctv --type 'pito/uk.gov.pito.Numberplate@*' --action publish \\",
        "    --condition 'now.hour(\"Europe/London\") < 17' --condition 'rate(10, \"1m\")'",
    )
)
def grant(
    *,
    issuer: Annotated[str, principal_option("--from", help="Who gives; its private key signs.")],
    subject: Annotated[str, principal_option("--to", help="Who receives: a key, a name or a threshold.")],
    type_: options.Type = None,
    network: options.Network = None,
    tag: options.RawTag = None,
    action: options.Actions = None,
    attribute: options.Attributes = None,
    on_violation: Annotated[
        str | None,
        typer.Option(
            "--on-violation", metavar="HOW", help="A publication that breaks a demand: force, drop or reject."
        ),
    ] = None,
    delegate: Annotated[bool, typer.Option("--delegate", help="The subject may pass the right on.")] = False,
    not_before: options.NotBefore = None,
    until: options.Until = None,
    test: options.Tests = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(
            "--condition", metavar="TEXT", help="Must hold whenever the right is used: an expression, or a rate."
        ),
    ] = None,
    renew: Annotated[
        str | None, typer.Option("--renew", metavar="URI", help="Where the subject asks for a fresh certificate.")
    ] = None,
    blanket: Annotated[
        bool, typer.Option("--blanket", help="Issue it though the issuer holds less; what counts is what both have.")
    ] = False,
    root: options.Roots = None,
    out: options.Out = None,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    at: options.At = None,
    json: options.Json = False,
) -> None:
    """Issue a capability: a signed right that its subject carries.

    The issuer has to hold the right, and to be allowed to pass it on, by the certificates of this home; the owner of a
    type or network needs nothing. --blanket issues a wider one, which is worth as much as the issuer has at the time.
    """
    from maia.authority import lint_right, parse_tag
    from maia.cli.giving import check_conditions
    from maia.cli.read.instants import decision_instant
    from maia.cli.read.principals import parse_principal_text
    from maia.cli.read.rights import parse_right
    from maia.cli.read.signers import issue_and_keep, issuer_key, open_signer, parse_period, parse_tests
    from maia.cli.show.output import note
    from maia.home import Folder
    from maia.principals import Authorisation

    place, instant = Folder(home), decision_instant(at)
    key = issuer_key(issuer, place)
    right = parse_right(
        place, type_=type_, network=network, tag=tag, actions=action, attributes=attribute, on_violation=on_violation
    )
    if not blanket:
        ends = _check_giving(place, key, right, root, instant)
        if ends is not None:
            note(f"the issuer's own right ends at {ends.isoformat()}; what it gives ends then at the latest")
    body = Authorisation(
        issuer=key,
        subject=parse_principal_text(subject, place),
        delegate=delegate,
        tag=right.tag.to_sexp(),
        period=parse_period(not_before, until, at=instant),
        tests=parse_tests(test, place),
        conditions=check_conditions(condition or (), place.path),
        renew=renew,
    )
    findings = lint_right(body, parse_tag(body.tag))
    more: dict[str, object] = {"blanket": blanket, "warnings": [finding.code for finding in findings]}
    issue_and_keep(body, open_signer(key, place, passphrase_file), place, out=out, json=json, more=more)
    for finding in findings:
        note(f"warning: [{finding.code}] {finding.message}")


def _check_giving(
    place: Folder, issuer: PublicKey, right: Right, roots: list[str] | None, at: datetime
) -> datetime | None:
    """Refuse a right that the issuer cannot pass on now; else say when its own right ends."""
    from maia.authority import Root, is_nothing
    from maia.cli.giving import can_give
    from maia.cli.read.principals import parse_principal_text
    from maia.cli.show.rights import describe_tag
    from maia.errors import DeniedError, UsageError

    configured = [Root(subject=parse_principal_text(text, place)) for text in roots or ()]
    if right.owner is None and not configured:
        raise UsageError(f"nothing says who owns: {right.text}", code="NO_OWNER")
    giving = can_give(
        right.tag, issuer=issuer, owner=right.owner, roots=configured, pool=place.pool(), book=place.book(), at=at
    )
    if giving.possible:
        return giving.until
    who = place.show(issuer.key_id)
    missing = "; ".join(describe_tag(part.to_sexp(), place) for part in giving.missing)
    if not is_nothing(giving.held):
        rest = f"it may give: {describe_tag(giving.held.to_sexp(), place)}"
    elif not is_nothing(giving.kept):
        rest = f"it may use but not pass on: {describe_tag(giving.kept.to_sexp(), place)}"
    else:
        rest = "it holds nothing of it"
    raise DeniedError(f"`{who}` cannot give: {missing}; {rest}", code="ISSUER_LACKS_RIGHT")
