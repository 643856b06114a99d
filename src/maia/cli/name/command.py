"""`maia name add`: say in one's own namespace whom a name stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.bundles import Signing, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.errors import UsageError

app = new_app("Give principals local names.", "maia name add 'Met Brokers' --from met --to mb")


@app.command(
    epilog=examples(
        "maia name add 'Met Brokers' --from met --to mb --until +7d",
        "maia name add --from met --x509 smith.pem --anchors ca.pem",
    )
)
@unpacked
def add(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The name, in the issuer's namespace; of --x509 the common name."),
    ] = None,
    *,
    issuer: Annotated[str, principal_option("--from", help="Whose namespace; its private key signs.")],
    subject: Annotated[str | None, principal_option("--to", help="A key, or another name.")] = None,
    x509: Annotated[
        Path | None, typer.Option("--x509", metavar="FILE", help="Take the key from an X.509 certificate instead.")
    ] = None,
    anchors: Annotated[
        Path | None, typer.Option("--anchors", metavar="FILE", help="The X.509 authorities to trust for --x509.")
    ] = None,
    not_before: options.NotBefore = None,
    until: options.Until = None,
    test: options.Tests = None,
    signing: Signing,
) -> None:
    """Issue a name certificate: in the issuer's namespace, NAME means (also) this principal.

    Several certificates for one name make a group. A capability for the name then empowers all its members.
    `brokers`, `clients` and `domains` say what belongs to a domain; one that has sub-domains has no brokers or clients.
    """
    from maia.cli.read.files import read_source
    from maia.cli.read.signers import parse_period
    from maia.cli.show.issued import tell_issued
    from maia.domain import check_naming
    from maia.home import words
    from maia.principals import Naming, issue, name_certificate_from_x509

    folder = signing.folder
    if (subject is None) == (x509 is None):
        raise UsageError("give exactly one of --to and --x509", code="NAME_OPTIONS")
    if x509 is not None and (anchors is None or not_before or until or test):
        raise UsageError("--x509 needs --anchors, and takes its validity from the file", code="NAME_OPTIONS")
    if x509 is None and name is None:
        raise UsageError("say the name; only --x509 brings one along", code="NAME_OPTIONS")
    key = folder.key(issuer)
    if x509 is not None:
        certificate = name_certificate_from_x509(
            read_source(str(x509)), authority=read_source(str(anchors)), issuer=signing.signer(key), name=name,
            at=signing.instant,
        )  # fmt: skip
    else:
        body = Naming(
            issuer=key, name=name or "", subject=words.parse_principal_text(subject or "", folder),
            period=parse_period(not_before, until, at=signing.instant), tests=words.parse_tests(test, folder),
        )  # fmt: skip
        certificate = issue(body, signing.signer(key))
    assert isinstance(certificate.body, Naming)  # noqa: S101 - both make one
    # SECURITY: a key that comes from X.509 makes a domain no other kind of group than any key does.
    check_naming(folder, key, certificate.body.name, certificate.body.subject, at=signing.instant)
    tell_issued(certificate, folder.certificates.add(certificate), signing, more={})
