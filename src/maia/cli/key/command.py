"""`maia key new|show|import`: the keys of a home."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.bundles import unpacked
from maia.cli.read.files import read_source
from maia.cli.read.options import examples, new_app
from maia.cli.read.passphrases import passphrase_source
from maia.cli.show.output import answer, current_state, note, write_json
from maia.cli.show.tables import draw_table
from maia.errors import KeyFormatError, UsageError
from maia.home import Folder, write_key, write_public_key
from maia.principals import KeySigner, PublicKey, import_private_key, import_public_key

app = new_app("Make, show and import keys.", "maia key new smith", "maia key show")


@dataclass(frozen=True, kw_only=True)
class _Keeping:
    """Where a key is kept, and how it is sealed there."""

    home: options.Home = Path()
    no_passphrase: Annotated[
        bool, typer.Option("--no-passphrase", help="Keep the private key unsealed; anyone who reads the file has it.")
    ] = False
    passphrase_file: options.PassphraseFile = None
    json: options.Json = False

    def keep(self, name: str, signer: KeySigner) -> None:
        """Keep a private key and its public one."""
        place = Folder(self.home)
        path = place.key_path(name)
        if path.exists() or place.public_path(name).exists():
            raise UsageError(f"there is a key `{name}` already", code="KEY_EXISTS")
        if self.no_passphrase and (self.passphrase_file, current_state().passphrase_fd) != (None, None):
            raise UsageError("give --no-passphrase or where the passphrase is, not both", code="PASSPHRASE_OPTIONS")
        ask = passphrase_source(self.passphrase_file, what=f"`{name}`", twice=True)
        write_key(path, signer, passphrase=None if self.no_passphrase else ask())
        write_public_key(place.public_path(name), signer.public_key)
        if self.no_passphrase:
            note(f"the private key of `{name}` is not sealed; whoever reads the file has it")
        self.tell(name, signer.public_key)

    def tell(self, name: str, key: PublicKey) -> None:
        """Say which key was kept."""
        data: dict[str, object] = {"name": name, "fingerprint": key.fingerprint, "key": key.raw.hex()}
        answer(data, f"{name} {key.fingerprint}", json=self.json)


@app.command(epilog=examples("maia key new smith", "maia key new camera-7 --no-passphrase"))
@unpacked
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="File name of the key: letters, digits, `.`, `-`, `_`.")],
    *,
    keeping: _Keeping,
) -> None:
    """Make a fresh Ed25519 key pair.

    The private key goes to keys/NAME.key (mode 0600, sealed with a passphrase), the public one to keys/NAME.pub.
    """
    keeping.keep(name, KeySigner.generate())


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
    place = Folder(home)
    rows = []
    for key in [place.key(name)] if name is not None else list(place.keys.values()):
        label = place.names.get(key.key_id)
        private = label is not None and place.key_path(label).is_file()
        rows.append({
            "name": label, "fingerprint": key.fingerprint, "key": key.raw.hex(), "hash": key.key_id.hex(),
            "private": private,
        })  # fmt: skip
    if json:
        write_json({"keys": rows})
    elif not rows:
        note("no keys here; `maia key new NAME` makes one")
    else:
        shown = [
            (str(row["name"] or "-"), str(row["fingerprint"]), "yes" if row["private"] else "no", str(row["key"]))
            for row in rows
        ]
        draw_table(("name", "fingerprint", "private", "key"), shown)


@app.command("import", epilog=examples("maia key import pito pito.pub", "maia key import jones d75a98…511a"))
@unpacked
def import_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="File name to keep the key under.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A file (PEM, OpenSSH, S-expression, Maia's own), 64 hexadecimal digits, or `-`."
        ),
    ],
    *,
    private: Annotated[bool, typer.Option("--private", help="The file holds a private key.")] = False,
    keeping: _Keeping,
) -> None:
    """Bring in a key from outside, after the full test of its point.

    Small-order and non-canonical points are refused. The passphrase seals a private key here; one that protects the
    file itself is asked for separately.
    """
    place, data = Folder(keeping.home), read_source(source, literal=True)
    if private:
        keeping.keep(name, _open_private(data, source))
        return
    key = import_public_key(data)
    target = place.public_path(name)
    if target.exists() and place.keys.get(name) != key:
        raise UsageError(f"`{name}` names another key already", code="KEY_EXISTS")
    write_public_key(target, key)
    keeping.tell(name, key)


def _open_private(data: bytes, source: str) -> KeySigner:
    try:
        return import_private_key(data)
    except KeyFormatError as error:
        if error.code != "KEY_PASSPHRASE":
            raise
    return import_private_key(data, passphrase_source(None, what=f"the file `{source}`")())
