"""`maia publish`: send the rows of a file, or of standard input, as events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, printable, write_json, write_line
from maia.encoding import counted

if TYPE_CHECKING:
    from maia.cli.publish.publication import Outgoing, Total

app = new_app()


@app.command(
    epilog=examples(
        "maia publish results.csv --type clinic.Result --as lab",
        "maia publish results.parquet --type clinic.Result --as lab --publication 2026-06-01 --strict",
        "tail -f results.jsonl | maia publish - --type clinic.Result --as lab",
        "maia publish offers.csv --type shop.Product --as acme --advertise \"message = 'new_product' and price < 53\"",
        "maia publish quotes.csv --topic MarketQuotes.Stocks.Nokia --as ticker",
    )
)
def publish(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="CSV with a header, JSON lines, Parquet; `-` is stdin.")
    ],
    *,
    type_: options.EventTypeName = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="In its place, the topic: NAME or OWNER/NAME.")
    ] = None,
    client: Annotated[str, principal_option("--as", help="Who publishes: a key of this home, by name.")],
    version: Annotated[
        str | None, typer.Option("--version", metavar="V", help="Which version the rows have, when there are several.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="csv, json or parquet; else by the file's name.")
    ] = None,
    publication: Annotated[
        str | None,
        typer.Option("--publication", metavar="ID", help="Names the publication: published twice it counts once."),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option("--advertise", metavar="FILTER", help="What will be published; other rows are refused."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Publish nothing when any row is refused; of standard input, no stretch.")
    ] = False,
    naive_timestamps: Annotated[
        str | None,
        typer.Option("--naive-timestamps", metavar="ZONE", help="The zone of times that have none: UTC, +01:00."),
    ] = None,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Publish rows as events: checked, cut to what the client may set, sealed and put into the log.

    A row that is malformed, or that the client has no right to publish, is refused and counted by its code and column.
    A time without a zone is malformed, unless --naive-timestamps says of which zone it is.
    With --advertise the client says what it will publish, as a filter whose constraints are alternatives. The bounds of
    its right must allow that, or nothing is published, and it is held to its word.
    Standard input is JSON lines, one event a line, published as they come. Exit code 3 when the client may not publish
    the type, or none of its rows. Interrupted, it says what stands.
    """
    from maia.cli.publish.publication import Total, prepare
    from maia.domain import Published, TypeOrTopic

    prepared = prepare(
        home, source, TypeOrTopic(type=type_, version=version, topic=topic), client=client, kind=kind,
        publication=publication, strict=strict, advertise=advertise,
        naive_timestamps=naive_timestamps, passphrase_file=passphrase_file,
    )  # fmt: skip
    total = Total(Published(publication=prepared.name, commit=None, events=0))
    try:
        _run(prepared, total)
        code = total.exit_code()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    if json:
        stopped: dict[str, object] = {"interrupted": True} if code is ExitCode.INTERRUPTED else {}
        write_json({"type": prepared.type, **total.done.to_json(), "commits": total.commits, **stopped}, code=code)
    else:
        _say(total, prepared, interrupted=code is ExitCode.INTERRUPTED)
    return code


def _run(prepared: Outgoing, total: Total) -> None:
    """Publish stretch by stretch; interrupted, what was committed by then counts."""
    from maia.cli.show.progress import watching

    with watching("starting Spark") as watch:
        for name, lines in prepared.parts():
            done = prepared.known(name) if prepared.named else None
            if done is None:
                try:
                    done = prepared.run(name, lines, watch)
                except KeyboardInterrupt:
                    stands = prepared.known(name)
                    if stands is not None:
                        total.add(stands)
                    raise
            total.add(done)


def _say(total: Total, prepared: Outgoing, *, interrupted: bool) -> None:
    if interrupted and not total.commits:
        note("interrupted: nothing is published")
        return
    done = total.done
    once = " before; publishing it again changes nothing" if done.repeated else ""
    who = f"{printable(prepared.type)} as {prepared.client.name}"
    write_line(f"published {counted(done.events, 'event')} of {who}{once}")
    for line in done.lines()[1:]:
        write_line(printable(line))
    stopped = "interrupted; this stands: " if interrupted else ""
    note(f"{stopped}publication {done.publication}, {counted(total.commits, 'commit')} of the log")
