"""`maia login`: log in to a console with a key that stays here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import answer, note

app = new_app()


@app.command(
    epilog=examples(
        "maia login http://127.0.0.1:8475 --as officer",
        "maia login https://console.example --as officer --change --open",
        "maia login maia-login:console.example:look:AAABk… --as officer",
    )
)
def login(
    console: Annotated[
        str, typer.Argument(metavar="ADDRESS|CHALLENGE", help="The console's address, or the challenge that it shows.")
    ],
    *,
    principal: Annotated[
        str | None, principal_option("--as", help="Who logs in; the key that speaks for the domain when left out.")
    ] = None,
    server: Annotated[
        str | None, principal_option("--server", help="The console's key; the broker's of this home when left out.")
    ] = None,
    change: Annotated[bool, typer.Option("--change", help="Let the session change things; it is for looking.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the address in a browser.")] = False,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    json: options.Json = False,
) -> None:
    """Prove a key to a console: print an address that logs a browser in once, or the answer to a challenge.

    The private key stays here. What is signed names the console's host and its broker's key, so that it lets nobody in
    anywhere else. A challenge says itself whether the session may change things.
    """
    import webbrowser

    from maia.cli.read.signers import open_signer
    from maia.clients import console_address
    from maia.errors import UsageError
    from maia.home import Folder
    from maia.wire import LoginChallenge, answer_login

    folder = Folder(home)
    config = folder.config
    if config is None and None in (principal, server):
        raise UsageError("this folder is no home: name a key with --as, and the console's with --server", code="USAGE")
    key = folder.key(principal or (config.domain if config else ""))
    broker = folder.key(server or (config.broker if config else ""))
    signer = open_signer(key, folder, passphrase_file)
    if console.startswith("maia-login:"):
        asked = LoginChallenge.parse(console)
        if change and not asked.changes:
            raise UsageError("the challenge is for looking; choose changes where it is shown", code="USAGE")
        note(f"logs in to {asked.host}, {'for changes too' if asked.changes else 'for looking only'}")
        text = answer_login(asked, signer, console=broker.key_id)
        answer({"host": asked.host, "changes": asked.changes, "answer": text}, text, json=json)
        return
    address = console_address(console, signer, console=broker, changes=change)
    answer({"address": address, "changes": change}, address, json=json)
    if open_ and not webbrowser.open(address):
        note("no browser was found: open the address in one")
