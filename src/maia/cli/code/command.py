"""`maia code put|list|exchange|get`: the code repository of a home."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read.bundles import unpacked
from maia.cli.read.files import write_target
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.read.overlay import CredentialFile, CredentialOut, Presenting
from maia.cli.show.output import answer
from maia.encoding import counted

app = new_app("Keep code by its digest, and hand it out for credentials.", "maia code put greyscale.wat --as developer")


@app.command(epilog=examples("maia code put greyscale.wat --as developer", "maia code put mine.py --as dev --json"))
@unpacked
def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A handler that ends in .wasm, .wat or .py.")],
    *,
    as_: Annotated[str, principal_option("--as", help="Who puts it there: it holds the right put.")],
    place: Presenting,
) -> None:
    """Put code into the repository, where its digest is its name.

    Whoever does holds the right put on the repository, `repository:DOMAIN/code`.
    """
    from maia.domain import put_code

    found = put_code(place.opened, place.client(as_), file, at=place.instant)
    answer({"code": found.name, "octets": found.octets}, found.name, json=place.json)


@app.command("list", epilog=examples("maia code list"))
@unpacked
def list_(*, place: Presenting) -> None:
    """List the code of the repository; anyone may."""
    from maia.domain import list_code

    found = list_code(place.opened)
    pieces = [{"code": item.name, "suffix": item.suffix, "octets": item.octets} for item in found]
    lines = [f"{item.name}  {item.suffix}  {item.octets:,} octets" for item in found]
    answer({"pieces": pieces}, *lines, counted(len(found), "piece"), json=place.json)


@app.command(epilog=examples("maia code exchange greyscale repo.xml --as app --out greyscale.xml"))
@unpacked
def exchange(
    code: Annotated[str, typer.Argument(metavar="CODE", help="sha256:…, or a name of the directory.")],
    file: CredentialFile,
    *,
    as_: Annotated[str, principal_option("--as", help="Who owns the credential, and proves its key.")],
    out: CredentialOut = None,
    place: Presenting,
) -> None:
    """Exchange a credential of the repository for one of a single piece of code; the old one is void.

    The security manager's policy has to give that piece to whoever asks: `policy/credentials.toml`.
    """
    from maia.domain import exchange_for_code

    credential, client = place.credential(file), place.client(as_)
    made = exchange_for_code(place.opened, client, credential, code, place.signer_of, at=place.instant)
    place.hand(made, out)


@app.command(epilog=examples("maia code get greyscale.xml --as app --out greyscale.wat"))
@unpacked
def get(
    file: CredentialFile,
    *,
    as_: Annotated[str, principal_option("--as", help="Who owns the credential, and proves its key.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the code goes; `-` is stdout.")],
    place: Presenting,
) -> None:
    """Fetch the code that a credential names."""
    from maia.domain import fetch_code

    found, data = fetch_code(place.opened, place.client(as_), place.credential(file), at=place.instant)
    write_target(out, data)
    if str(out) != "-":
        answer({"code": found.name, "octets": found.octets, "suffix": found.suffix}, found.name, json=place.json)
