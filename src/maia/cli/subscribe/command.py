"""`maia subscribe`: see the events of a type as a client may see them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note

app = new_app()


@app.command(
    epilog=examples(
        "maia subscribe --type clinic.Result --as doctor",
        "maia subscribe --type clinic.Result --as doctor --where \"ward = 'A'\" --attributes ward,value --format json",
        "maia subscribe --type clinic.Result --as researcher --format parquet --out results",
        "maia subscribe --type clinic.Result --as doctor --format json --follow --out results.jsonl",
        "maia subscribe --topic 'MarketQuotes.*.Nokia' --as trader",
    )
)
def subscribe(
    *,
    type_: options.EventTypeName = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="PATTERN", help="In its place, a topic and all below it; `*` is any one component."
        ),
    ] = None,
    client: Annotated[str, principal_option("--as", help="Who reads: a key of this home, by name.")],
    where: Annotated[
        str, typer.Option("--where", metavar="FILTER", help="Only these events; over attributes it may read.")
    ] = "",
    attributes: Annotated[
        str | None,
        typer.Option("--attributes", metavar="A,B", help="Only these attributes, in this order; all when left out."),
    ] = None,
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
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until interrupted; with --out, from where it ended last time.")
    ] = False,
    starting: Annotated[
        str, typer.Option("--starting", metavar="WHERE", help="With --follow: earliest or latest.")
    ] = "earliest",
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Read the log as a client: rows it has no right to are absent, cells it has no right to are null.

    A table shows an attribute that no right opens as ∅. What was closed, refused or left out is said in one line on
    standard error. `--json` is `--format json`: one object a line. Exit code 3 when the client may not subscribe to the
    type, filters by an attribute that it may not read, or every event was refused; 1 when nothing was read, since the
    log waits. What is written to `--out` is no longer protected by Maia.
    """
    from maia.cli.show.progress import watching
    from maia.cli.subscribe.view import follow as follow_events
    from maia.cli.subscribe.view import prepare, read
    from maia.domain import TypeOrTopic
    from maia.spark import progress_of, start_spark

    asked = TypeOrTopic(type=type_, version=version, topic=topic)
    view = prepare(
        home, asked, client=client, where=where, attributes=attributes, kind="json" if json else kind, out=out,
        limit=limit, starting=starting, follow=follow, passphrase_file=passphrase_file,
    )  # fmt: skip
    rows, interrupted, show = 0, False, None
    with watching("starting Spark") as watch:
        spark = start_spark(octets=None if follow else view.octets())
        watch.say(f"{'following' if follow else 'reading'} {view.asked.text}")
        if follow:
            rows, interrupted = follow_events(view, watch)
        else:
            watch.follow(lambda: progress_of(spark))
            show = read(view, watch)
    rows = rows if show is None else show()
    sight = view.sight()
    note(sight.line(rows))
    if interrupted:
        return ExitCode.INTERRUPTED
    if rows or sight.events or sight.unmatched:
        return ExitCode.DONE
    return ExitCode.DENIED if sight.refused else ExitCode.FAILED if sight.parked else ExitCode.DONE
