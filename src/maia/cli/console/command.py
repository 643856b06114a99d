"""`maia console`: open the console of a home in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import answer, note

app = new_app()


@app.command(
    epilog=examples("maia console", "maia console --home met --as officer --change", "maia console --no-browser")
)
def console(
    principal: Annotated[
        str | None, principal_option("--as", help="Who logs in; the key that speaks for the domain when left out.")
    ] = None,
    *,
    change: Annotated[bool, typer.Option("--change", help="Let the session change things; it is for looking.")] = False,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port, on this machine.")] = 8475,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the address in a browser, or only print it.")
    ] = True,
    home: options.Home = Path(),
    passphrase_file: options.PassphraseFile = None,
    json: options.Json = False,
) -> None:
    """Serve the console of a home on this machine, log in with a key of it, and open a browser.

    The console shows who sees what and why, who gave it, what a revocation would end, what changes when, how the domain
    stands and what the audit tells. It listens on the loopback address alone, until it is stopped. The address that is
    printed logs in once, within two minutes.
    """
    import webbrowser

    from maia.cli.read.passphrases import passphrase_source
    from maia.cli.read.signers import open_signer
    from maia.home import Home
    from maia.services import console as service
    from maia.services import http

    opened = Home.open(home)
    signer = open_signer(opened.folder.key(principal or opened.config.domain), opened.folder, passphrase_file)
    listening = http.Listening(port=port)
    ask = None if passphrase_file is None else passphrase_source(passphrase_file, what="the list's key")
    made = service.make_console(opened, listening, passphrase=ask)
    path = service.invite(made, signer, host=f"127.0.0.1:{port}", changes=change)

    def started(_port: int) -> None:
        address = f"http://127.0.0.1:{port}{path}"
        note("the console serves on this machine only; Ctrl-C ends it")
        answer({"address": address, "changes": change}, address, json=json)
        if browser and not webbrowser.open(address):
            note("no browser was found: open the address in one")

    http.serve(made, listening, started=started)
    note("the console has stopped")
