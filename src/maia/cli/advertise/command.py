"""`maia advertise`: say what a client will publish, list what was said, and take it back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.output import answer, note, write_json
from maia.cli.show.tables import draw_table

app = new_app("Say what a client will publish, list what was said, and take it back.")
_Type = Annotated[
    str, typer.Option("--type", metavar="NAME", help="The event type or topic: NAME or OWNER/NAME@VERSION.")
]
_Client = Annotated[str, principal_option("--as", help="Who publishes: a key of this home, by name.")]


@app.command(
    epilog=examples(
        "maia advertise add --type clinic.Result --as lab",
        "maia advertise add --type shop.Product --as acme --where \"message = 'new_product' and price < 53\"",
    )
)
def add(
    *,
    type_: _Type,
    client: _Client,
    where: Annotated[
        str | None, typer.Option("--where", metavar="FILTER", help="What will be published; other rows are refused.")
    ] = None,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Say that a client will publish a type: its key and right are proven, the broker remembers it and audits it.

    Exit code 3 when the client, or the domain's broker, may not publish it; nothing is remembered then.
    """
    from maia.authority import Action
    from maia.cli.read.clients import denial, named_type, open_client
    from maia.domain import TypeOrTopic

    domain, publisher = open_client(home, client, passphrase_file)
    shown = named_type(domain, TypeOrTopic(type=type_))
    with denial(domain, client=client, action=Action.PUBLISH, type_text=shown):
        publisher.advertise(shown, where=where)
    line = f"{client} advertises {shown}{f' where {where}' if where else ''}"
    answer({"as": client, "type": shown, "where": where}, line, json=json)


@app.command("list", epilog=examples("maia advertise list", "maia advertise list --json"))
def list_(*, home: options.Home = Path(), json: options.Json = False) -> None:
    """List what the clients of this home have advertised, and what they took back."""
    import maia

    domain = maia.open(home)
    kept = domain.advertisements()
    if json:
        write_json({"advertisements": [item.to_json() for item in kept], "advertise": domain.config.advertise})
    elif not kept:
        note("nobody has advertised here: the first publication does, or `maia advertise add`")
    else:
        rows = [
            (item.client, item.type, item.kept.filter or "", "withdrawn" if item.kept.withdrawn else "stands")
            for item in kept
        ]
        draw_table(("client", "type", "where", "state"), rows)


@app.command(epilog=examples("maia advertise remove --type clinic.Result --as lab"))
def remove(
    *,
    type_: _Type,
    client: _Client,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Take back what a client advertised, in all versions unless one is named: publishing it is refused from now on."""
    from maia.cli.read.clients import open_client

    _, publisher = open_client(home, client, passphrase_file)
    publisher.unadvertise(type_)
    answer({"as": client, "type": type_}, f"{client} advertises {type_} no longer", json=json)
