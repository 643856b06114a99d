"""`maia grant`: issue a capability, and refuse what the issuer cannot give."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.answers import confirm
from maia.cli.read.bundles import RightOptions, Signing, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import note
from maia.errors import UsageError

if TYPE_CHECKING:
    from maia.domain.grants import Granted

app = new_app()


@app.command(
    epilog=examples(
        "maia grant --from pito --to met --network 'pito/UK Police Network' --action connect --delegate",
        "maia grant --from met --to smith --type 'pito/uk.gov.pito.Numberplate@*' --action subscribe \\",
        "    --attribute numberplate='AE05 XYZ' --attribute timestamp --until 2026-12-31T00:00:00Z",
        "maia grant --from met --to 'met: Met Brokers' --type '*' --blanket",
        "maia grant --from ccs --to cctv --type 'pito/uk.gov.pito.Numberplate@*' --action publish \\",
        "    --condition 'now.hour(\"Europe/London\") < 17' --condition 'rate(10, \"1m\")'",
    )
)
@unpacked
def grant(
    *,
    issuer: Annotated[str, principal_option("--from", help="Who gives; its private key signs.")],
    subject: Annotated[str, principal_option("--to", help="Who receives: a key, a name or a threshold.")],
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
    delegate: Annotated[bool, typer.Option("--delegate", help="The subject may pass the right on.")] = False,
    not_before: options.NotBefore = None,
    until: options.Until = None,
    test: options.Tests = None,
    irrevocable: Annotated[
        bool, typer.Option("--irrevocable", help="It obeys no list: nothing but its end ends it.")
    ] = False,
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
    signing: Signing,
) -> None:
    """Issue a capability: a signed right that its subject carries.

    The issuer has to hold the right, and to be allowed to pass it on, by the certificates of this home; the owner of a
    type or network needs nothing. --blanket issues a wider one, which is worth as much as the issuer has at the time.

    The right obeys the issuer's own lists, so that `maia revoke` can take it back, unless --test names others or
    --irrevocable says otherwise; where the issuer has no list in force one is signed. Printed is how long it counts at
    worst after it is revoked.
    """
    from maia.cli.read.signers import parse_period
    from maia.cli.show.issued import tell_issued
    from maia.cli.show.statements import describe_statement, told_words
    from maia.domain import draft_grant, sign_grant
    from maia.home import words

    folder, instant = signing.folder, signing.instant
    key, right = folder.key(issuer), asked.right(folder, on_violation=on_violation, enforced=enforced)
    if irrevocable and test:
        raise UsageError("what obeys a test is not irrevocable", code="IRREVOCABLE_TEST")
    tests = words.parse_tests(test, folder) if test or irrevocable else None
    draft = draft_grant(
        folder, key, right, to=words.parse_principal_text(subject, folder), at=instant, delegate=delegate,
        period=parse_period(not_before, until, at=instant), tests=tests,
        conditions=condition or (), renew=renew, roots=asked.roots(folder), blanket=blanket,
    )  # fmt: skip
    if draft.ends is not None:
        note(f"the issuer's own right ends at {draft.ends.isoformat()}; what it gives ends then at the latest")
    if draft.findings and sys.stdin.isatty():
        for finding in draft.findings:
            note(f"[{finding.code}] {finding.message}")
        confirm("issue it all the same?", otherwise="nothing was issued")
    done = sign_grant(folder, draft, signing.signer(key), at=instant)
    warnings = [finding.code for finding in draft.findings]
    more: dict[str, object] = {"blanket": blanket, "warnings": warnings, "exposure": str(done.exposure)}
    tell_issued(done.certificate, done.file, signing, more=more)
    note(f"gives {right.text}")
    note(_worst_case(done))
    if done.made is not None:
        note(f"signed for it: {describe_statement(done.made.body, folder)}; {told_words(done.made.told)}")
    for finding in draft.findings:
        note(f"warning: [{finding.code}] {finding.message}")


def _worst_case(done: Granted) -> str:
    """Say how long a certificate counts after it is revoked, where it can be."""
    from maia.encoding import duration

    window = done.exposure.window
    if window is None and not done.certificate.body.tests:
        return f"it cannot be revoked: it has {done.exposure.bounded_by}"
    worst = "for ever" if window is None else f"for {duration(window)}"
    return f"if it is revoked now, it counts at worst {worst} ({done.exposure.bounded_by})"
