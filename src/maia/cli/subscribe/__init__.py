"""`maia subscribe`: see the events of a type as a client may see them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

app = new_app()


@app.command(
    epilog=examples(
        "maia subscribe --type clinic.Result --as doctor",
        "maia subscribe --type clinic.Result --as doctor --where \"ward = 'A'\" --format json",
        "maia subscribe --type clinic.Result --as researcher --format parquet --out results",
        "maia subscribe --type clinic.Result --as doctor --format json --follow",
    )
)
def subscribe(
    *,
    type_: Annotated[str, typer.Option("--type", metavar="NAME", help="The event type: NAME or OWNER/NAME@VERSION.")],
    client: Annotated[str, principal_option("--as", help="Who reads: a key of this home, by name.")],
    where: Annotated[
        str, typer.Option("--where", metavar="FILTER", help="Only these events; over attributes it may read.")
    ] = "",
    version: Annotated[
        str | None, typer.Option("--version", metavar="V", help="The version to see them as, when there are several.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="table for people, json lines, or a parquet folder.")
    ] = "table",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="A file for json lines, a folder for parquet.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="At most so many events; a table shows 50.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until interrupted.")] = False,
    starting: Annotated[
        str, typer.Option("--starting", metavar="WHERE", help="With --follow: earliest or latest.")
    ] = "earliest",
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Read the log as a client: rows it has no right to are absent, cells it has no right to are null.

    `--json` is `--format json`: one object a line. Exit code 3 when the client may not subscribe to the type, or
    filters by an attribute that it may not read. What is written to `--out` is no longer protected by Maia.
    """
    from maia.cli.read.passphrases import passphrase_source
    from maia.cli.show.exits import ExitCode
    from maia.cli.streaming import start_spark, watching
    from maia.cli.subscribing import follow_events, prepare, read_events

    asked = prepare(
        home, type_, client=client, where=where, version=version, kind="json" if json else kind, out=out, limit=limit,
        starting=starting, follow=follow, passphrase=passphrase_source(passphrase_file, what=f"`{client}`"),
    )  # fmt: skip
    with watching("starting Spark") as watch:
        spark = start_spark(octets=None if follow else asked.octets())
        watch.follow(spark)
        watch.say("following" if follow else "reading")
        show = follow_events(asked, watch) if follow else read_events(asked)
    show()
    return ExitCode.DONE
