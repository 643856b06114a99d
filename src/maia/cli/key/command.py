"""`maia key new|show|import`: the keys of a home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import draw, note, write_json, write_line

if TYPE_CHECKING:
    from maia.principals import KeySigner

app = new_app("Make, show and import keys.", "maia key new smith", "maia key show")
_NoPassphrase = Annotated[
    bool, typer.Option("--no-passphrase", help="Keep the private key unsealed; anyone who reads the file has it.")
]


@app.command(epilog=examples("maia key new smith", "maia key new camera-7 --no-passphrase"))
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="File name of the key: letters, digits, `.`, `-`, `_`.")],
    *,
    home: options.Home = Path(),
    no_passphrase: _NoPassphrase = False,
    passphrase_file: options.PassphraseFile = None,
    json: options.Json = False,
) -> None:
    """Make a fresh Ed25519 key pair.

    The private key goes to keys/NAME.key (mode 0600, sealed with a passphrase), the public one to keys/NAME.pub.
    """
    from maia.principals import KeySigner

    _keep(home, name, KeySigner.generate(), no_passphrase=no_passphrase, passphrase_file=passphrase_file, json=json)


@app.command(epilog=examples("maia key show", "maia key show smith --json"))
def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="A key by name, fingerprint or hexadecimal digits; all when left out."),
    ] = None,
    *,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show public keys: name, fingerprint and hexadecimal digits."""
    from rich.table import Table

    from maia.home import Folder

    place = Folder(home)
    keys = [place.key(name)] if name is not None else list(place.keys.values())
    rows = []
    for key in keys:
        label = place.names.get(key.key_id)
        private = label is not None and place.key_path(label).is_file()
        rows.append({
            "name": label, "fingerprint": key.fingerprint, "key": key.raw.hex(), "hash": key.key_id.hex(),
            "private": private,
        })  # fmt: skip
    if json:
        write_json({"keys": rows})
        return
    if not rows:
        note("no keys here; `maia key new NAME` makes one")
        return
    table = Table("name", "fingerprint", "private", "key", box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            str(row["name"] or "-"), str(row["fingerprint"]), "yes" if row["private"] else "no", str(row["key"])
        )
    draw(table)


@app.command("import", epilog=examples("maia key import pito pito.pub", "maia key import jones d75a98…511a"))
def import_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="File name to keep the key under.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A file (PEM, OpenSSH, S-expression, Maia's own), 64 hexadecimal digits, or `-`."
        ),
    ],
    *,
    home: options.Home = Path(),
    private: Annotated[bool, typer.Option("--private", help="The file holds a private key.")] = False,
    no_passphrase: _NoPassphrase = False,
    passphrase_file: options.PassphraseFile = None,
    json: options.Json = False,
) -> None:
    """Bring in a key from outside, after the full test of its point.

    Small-order and non-canonical points are refused. The passphrase seals a private key here; one that protects the
    file itself is asked for separately.
    """
    from maia.cli.read.files import read_source
    from maia.errors import UsageError
    from maia.home import Folder, write_public_key
    from maia.principals import import_public_key

    place = Folder(home)
    data = read_source(source, literal=True)
    if private:
        _keep(
            home,
            name,
            _open_private(data, source),
            no_passphrase=no_passphrase,
            passphrase_file=passphrase_file,
            json=json,
        )
        return
    key = import_public_key(data)
    target = place.public_path(name)
    if target.exists() and place.keys.get(name) != key:
        raise UsageError(f"`{name}` names another key already", code="KEY_EXISTS")
    write_public_key(target, key)
    _tell(name, key.fingerprint, key.raw.hex(), json=json)


def _open_private(data: bytes, source: str) -> KeySigner:
    from maia.cli.read.passphrases import passphrase_source
    from maia.errors import KeyFormatError
    from maia.principals import import_private_key

    try:
        return import_private_key(data)
    except KeyFormatError as error:
        if error.code != "KEY_PASSPHRASE":
            raise
    return import_private_key(data, passphrase_source(None, what=f"the file `{source}`")())


def _keep(
    home: Path, name: str, signer: KeySigner, *, no_passphrase: bool, passphrase_file: Path | None, json: bool
) -> None:
    from maia.cli.read.passphrases import passphrase_source
    from maia.errors import UsageError
    from maia.home import Folder, write_key, write_public_key

    place = Folder(home)
    path = place.key_path(name)
    if path.exists() or place.public_path(name).exists():
        raise UsageError(f"there is a key `{name}` already", code="KEY_EXISTS")
    if no_passphrase and passphrase_file is not None:
        raise UsageError("give --no-passphrase or --passphrase-file, not both", code="PASSPHRASE_OPTIONS")
    passphrase = None if no_passphrase else passphrase_source(passphrase_file, what=f"`{name}`", twice=True)()
    write_key(path, signer, passphrase=passphrase)
    write_public_key(place.public_path(name), signer.public_key)
    if passphrase is None:
        note(f"the private key of `{name}` is not sealed; whoever reads the file has it")
    _tell(name, signer.public_key.fingerprint, signer.public_key.raw.hex(), json=json)


def _tell(name: str, fingerprint: str, key: str, *, json: bool) -> None:
    if json:
        write_json({"name": name, "fingerprint": fingerprint, "key": key})
    else:
        write_line(f"{name} {fingerprint}")
