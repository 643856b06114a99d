"""`maia publish`: send the rows of a file, or of standard input, as events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maia.cli.publishing import Outcome, Publication

app = new_app()


@app.command(
    epilog=examples(
        "maia publish results.csv --type clinic.Result --as lab",
        "maia publish results.parquet --type clinic.Result --as lab --publication 2026-06-01",
        "tail -f results.jsonl | maia publish - --type clinic.Result --as lab",
    )
)
def publish(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="CSV with a header, JSON lines, Parquet; `-` is stdin.")
    ],
    *,
    type_: Annotated[str, typer.Option("--type", metavar="NAME", help="The event type: NAME or OWNER/NAME@VERSION.")],
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
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Publish rows as events: checked, cut to what the client may set, sealed and put into the log.

    A row that is malformed, or that the client has no right to publish, is refused and counted by its code. Standard
    input is JSON lines, one event a line, published as they come. Exit code 3 when the client may not publish the type,
    or none of its rows.
    """
    from maia.cli.publishing import Outcome, prepare
    from maia.cli.read.passphrases import passphrase_source
    from maia.cli.show.output import write_json
    from maia.cli.streaming import start_spark, watching

    prepared = prepare(
        home, source, type_, client=client, version=version, kind=kind, publication=publication,
        passphrase=passphrase_source(passphrase_file, what=f"`{client}`"),
    )  # fmt: skip
    total = Outcome(publication=prepared.name)
    with watching("starting Spark") as watch:
        for made in _parts(prepared):
            known = made.known()
            if known is None:
                spark = start_spark(octets=made.octets())
                watch.say(f"publishing {made.name}")
                watch.follow(spark)
                known = made.run(spark)
            total = total.plus(known)
    code = total.exit_code()
    if json:
        write_json({"type": prepared.shown, **total.to_json()}, code=code)
    else:
        _say(total, prepared)
    return code


def _parts(prepared: Publication) -> Iterator[Publication]:
    """Give the publication itself, or one for each stretch of standard input."""
    if prepared.source != "-":
        yield prepared
        return
    from maia.cli.read.lines import stretches

    for number, lines in enumerate(stretches(by_time=not prepared.named)):
        yield prepared.part(number, lines)


def _say(total: Outcome, prepared: Publication) -> None:
    from maia.cli.show.output import note, printable, write_line

    once = " before; publishing it again changes nothing" if total.repeated else ""
    write_line(f"published {total.events} events of {printable(prepared.shown)} as {prepared.client}{once}")
    if total.refused:
        reasons = ", ".join(f"{code} {count}" for code, count in sorted(total.refused.items()))
        write_line(f"refused {sum(total.refused.values())}: {reasons}")
    for code, count in sorted(total.notices.items()):
        write_line(f"changed {count}: {code}")
    note(f"publication {total.publication}, {total.commits} commit{'s' if total.commits != 1 else ''} of the log")
