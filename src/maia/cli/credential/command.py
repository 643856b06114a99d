"""`maia credential issue|show|check|transfer|request`: the overlay's credentials, a view on certificates."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli.grant.issuing import Issuing
from maia.cli.read.bundles import unpacked
from maia.cli.read.options import certificate_argument, examples, new_app, principal_option
from maia.cli.read.overlay import CredentialFile, CredentialOut, Presenting
from maia.cli.show.output import answer
from maia.errors import UsageError

app = new_app(
    "Issue, check and hand over credentials of channels, handles, code, types and repositories.",
    "maia credential issue --object channel:met/met.CameraA --right route --from met --to smith",
)
NamedObject = Annotated[
    str,
    typer.Option(
        "--object",
        metavar="KIND:OWNER/NAME[@VERSION]",
        help="channel, source, sink, type, conversion, code, repository or directory, and which.",
    ),
]


@app.command(
    epilog=examples(
        "maia credential issue --object channel:met/met.CameraA --right route --right transfer --from met --to smith",
        "maia credential issue --object sink:met/met.CameraA --right subscribe --from met --to 'met: trust-high' \\",
        "    --delegate",
    )
)
@unpacked
def issue(
    *,
    named: NamedObject,
    right: Annotated[
        list[str],
        typer.Option("--right", metavar="RIGHT", help="One of the kind, or transfer; repeatable."),
    ],
    issuing: Issuing,
) -> None:
    """Issue a credential: a capability on one object, to a person, a role or a trust level.

    A role is a name in somebody's namespace, and a trust level the name `trust-low`, `trust-medium` or `trust-high` in
    the namespace of whoever vouches, to which `maia name add` adds hosts. With --delegate, hosts of that level may sign
    credentials for the object. --right transfer lets the owner hand the credential to another. Otherwise as `maia
    grant`.
    """
    from maia.home import words

    issuing.issue(words.parse_object_right(named, right, issuing.folder))


@app.command(epilog=examples("maia credential show 3fa1c9 --out smith.xml", "maia credential show 3fa1c9 --json"))
@unpacked
def show(
    certificate: Annotated[str, certificate_argument("The certificate: a file, or the beginning of its id.")],
    *,
    out: CredentialOut = None,
    place: Presenting,
) -> None:
    """Show a certificate as a credential, in JSON or XML; both can be read again."""
    from maia.principals import verify_certificate

    place.hand(verify_certificate(place.folder.certificate(certificate)), out)


@app.command(epilog=examples("maia credential check smith.xml --of smith", "maia credential check smith.json --json"))
@unpacked
def check(
    file: CredentialFile,
    *,
    of: Annotated[
        str | None, principal_option("--of", help="Whose use of it is asked about; its own client when left out.")
    ] = None,
    place: Presenting,
) -> None:
    """Read a credential, and say which of its rights count now; exits 3 where one does not.

    Digest and signature are checked first. Then the verifier decides about each right, along a chain from the owner of
    the object, by the certificates and lists of this home.
    """
    from maia.authority import ClientKind, OverlayCredential
    from maia.domain import check_credential

    credential = place.credential(file)
    view = OverlayCredential.of(credential.body)
    if of is None and view.client.kind is not ClientKind.PERSON:
        raise UsageError("the credential is for a role or a trust level: name somebody with --of", code="USAGE")
    key = view.client.key if of is None else place.folder.key(of)
    rights = sorted(view.rights | (view.general - {"delegate"}))
    for word in rights:
        check_credential(place.folder, credential, key, word, at=place.instant)
    data: dict[str, object] = {"id": credential.certificate_id.hex(), "rights": rights}
    answer(data, f"counts now: {', '.join(rights)}", json=place.json)


@app.command(epilog=examples("maia credential transfer smith.xml --as smith --to jones --out jones.xml"))
@unpacked
def transfer(
    file: CredentialFile,
    *,
    as_: Annotated[str, principal_option("--as", help="Who owns it, and proves its key.")],
    to: Annotated[str, principal_option("--to", help="Who owns it from now on.")],
    out: CredentialOut = None,
    place: Presenting,
) -> None:
    """Hand a credential to another owner: the new one names the new owner, and the old one is void.

    It needs the right transfer. The issuer's key signs, and so is in this home.
    """
    from maia.domain import transfer_credential

    credential, owner = place.credential(file), place.client(as_)
    made = transfer_credential(place.folder, credential, owner, place.folder.key(to), place.signer_of, at=place.instant)
    place.hand(made, out)


@app.command(epilog=examples("maia credential request --object sink:met/met.CameraA --as smith --out smith.xml"))
@unpacked
def request(
    *,
    named: NamedObject,
    as_: Annotated[str, principal_option("--as", help="Who asks, and answers the challenge with its key.")],
    out: CredentialOut = None,
    place: Presenting,
) -> None:
    """Ask the security manager of this home for a credential.

    Whoever asks proves its key. `policy/credentials.toml` says which rights it is given, and for how many seconds; who
    asks chooses neither.
    """
    from maia.domain import give_credential
    from maia.home import words

    client = place.client(as_)
    found = give_credential(
        place.opened, client, words.parse_object(named, place.folder), place.signer, at=place.instant
    )
    place.hand(found.certificate, out)
