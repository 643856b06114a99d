"""`maia domain init`: make the home of a domain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli import options
from maia.cli.options import examples, new_app

app = new_app("Make and keep the home of a domain.")


@app.command(
    epilog=examples("maia domain init clinic", "maia domain init met --network 'pito/UK Police Network' --name Met")
)
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the home is made; it may exist.")],
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What people call the domain; else the folder's name.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option("--network", metavar="OWNER/NAME", help="The network it belongs to; OWNER is a key's name."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Make a home: its settings in `maia.toml` and a key for its broker, which seals and signs what it publishes.

    The broker's key has no passphrase, since a broker works unattended; only its file's mode guards it.
    """
    from maia.cli.home import check_name
    from maia.cli.output import note, printable, write_json, write_line
    from maia.errors import UsageError
    from maia.stores import Home, HomeConfig

    called = folder.resolve().name if name is None else name
    owner, mark, rest = ("", "", "") if network is None else network.partition("/")
    if network is not None and not (mark and rest):
        raise UsageError(f"`{network}` does not say whose network it is; write OWNER/NAME", code="NETWORK_TEXT")
    for text in (called, rest):
        if not text.isprintable() or len(text) > _MAX_NAME:
            raise UsageError("a name is one line of at most 200 printable characters", code="DOMAIN_NAME")
    config = HomeConfig(name=called, network=(check_name(owner), rest) if network is not None else None)
    home = Home.create(folder, config)
    broker = home.key(config.broker)
    if json:
        write_json(
            {"home": str(folder), "name": called, "broker": broker.fingerprint, "key": broker.raw.hex(),
             "network": network}
        )  # fmt: skip
        return
    write_line(f"{printable(called)}: a home in {printable(str(folder))}, broker {broker.fingerprint}")
    where = printable(str(folder))
    if network is not None:
        note(f"next: `maia key import` the public key of `{owner}`, under this name")
    note(f"next: export MAIA_HOME={where}; `maia key new NAME` makes keys for people, `maia type define` event types,")
    note("      `maia grant` gives rights: the broker itself needs `publish` on what it publishes")


_MAX_NAME = 200
