"""`maia deliver`: fill the sealed outbox of a domain's subscriptions, keep them, and read one as its client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer, note, printable, write_json, write_line
from maia.cli.show.tables import draw_table
from maia.encoding import counted
from maia.errors import UsageError

if TYPE_CHECKING:
    from maia.domain import Delivered

app = new_app()
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The subscription, by its name.")]


@app.callback(
    invoke_without_command=True,
    epilog=examples("maia deliver --once", "maia deliver --every 5s", "maia deliver show billing --as BO"),
)
def deliver(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Deliver what there is and end.")] = False,
    every: Annotated[str, typer.Option("--every", metavar="AGE", help="How often to look for more: 1s, 5m.")] = "1s",
    home: options.Home = Path(),
    json: options.Json = False,
) -> int | None:
    """Run the domain's delivery job: each event into the outbox of every subscription that may see it, once.

    Subscriptions are those of `subscriptions.toml`, read anew for each micro-batch, with the rights of that moment.
    Interrupted or killed, it goes on where it ended; several may not run at once.
    """
    if context.invoked_subcommand is not None:
        return None
    from maia.cli.deliver.job import run

    done, interrupted = run(home, once=once, every=every)
    code = ExitCode.INTERRUPTED if interrupted else ExitCode.DONE
    if json:
        write_json(done.to_json(), code=code)
    else:
        _say(done)
    return code


@app.command(
    epilog=examples("maia deliver add billing --as BO --type uk.gov.pito.Numberplate --where \"numberplate != ''\"")
)
def add(
    name: _Name,
    *,
    type_: Annotated[str, typer.Option("--type", metavar="NAME", help="The event type: NAME or OWNER/NAME@VERSION.")],
    client: Annotated[str, principal_option("--as", help="Who subscribes: a key of this home, by name.")],
    where: Annotated[str, typer.Option("--where", metavar="FILTER", help="Only these events.")] = "",
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Keep a subscription in `subscriptions.toml`, after the client's key, right and filter were proven."""
    from maia.authority import Action
    from maia.cli.read.clients import denial, named_type, open_client
    from maia.domain import TypeOrTopic, Wanted, add_subscription

    domain, reader = open_client(home, client, passphrase_file)
    shown = named_type(domain, TypeOrTopic(type=type_))
    with denial(domain, client=client, action=Action.SUBSCRIBE, type_text=shown):
        add_subscription(domain, Wanted(name=name, as_=client, type=shown, where=where), client=reader.proven)
    line = f"{name}: {shown} for {client}{f' where {where}' if where else ''}"
    answer({"name": name, "as": client, "type": shown, "where": where}, line, json=json)


@app.command(epilog=examples("maia deliver remove billing --as BO"))
def remove(
    name: _Name,
    *,
    client: Annotated[str, principal_option("--as", help="Whose subscription it is; the private key proves it.")],
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """End a subscription: nothing more is delivered to it. What it was delivered stays, and so does its name."""
    from maia.cli.read.clients import open_client

    _, reader = open_client(home, client, passphrase_file)
    reader.unsubscribe(name)
    answer({"name": name, "as": client}, f"{name} is ended; `maia deliver show {name}` shows what it got", json=json)


@app.command("list", epilog=examples("maia deliver list", "maia deliver list --json"))
def list_(*, home: options.Home = Path(), json: options.Json = False) -> None:
    """List the subscriptions that this home keeps, and how many events each was delivered."""
    import maia
    from maia.domain import outbox_of, read_subscriptions

    domain = maia.open(home)
    kept = read_subscriptions(domain.path)
    counts = outbox_of(domain).count(item.name for item in kept)
    if json:
        write_json(
            {"subscriptions": [
                {"name": item.name, "as": item.as_, "type": item.type, "where": item.where, "events": counts[item.name]}
                for item in kept
            ]}
        )  # fmt: skip
    elif not kept:
        note("this home keeps no subscriptions: `maia deliver add NAME --as CLIENT --type TYPE` makes one")
    else:
        rows = [(item.name, item.as_, item.type, item.where, f"{counts[item.name]:,}") for item in kept]
        draw_table(("subscription", "client", "type", "where", "events"), rows, right=("events",))


@app.command(epilog=examples("maia deliver dead", "maia deliver dead --json"))
def dead(*, home: options.Home = Path(), json: options.Json = False) -> None:
    """List the parcels that were delivered to nobody, where they lie in the log, and why."""
    from dataclasses import asdict

    import maia
    from maia.domain import outbox_of

    letters = list(outbox_of(maia.open(home)).dead_letters())
    if json:
        write_json({"dead": [asdict(letter) for letter in letters]})
    elif not letters:
        note("no dead letters")
    else:
        rows = [(f"{item.commit}", item.code, f"{item.events:,}", item.origin[:16], item.file) for item in letters]
        draw_table(("commit", "why", "events", "origin", "file"), rows, right=("commit", "events"))


@app.command(
    epilog=examples("maia deliver show billing --as BO", "maia deliver show billing --as BO --last 3 --format json")
)
def show(
    name: _Name,
    *,
    client: Annotated[str, principal_option("--as", help="Whose subscription it is; the private key proves it.")],
    kind: Annotated[str, typer.Option("--format", metavar="FORMAT", help="table for people, or json lines.")] = "table",
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="At most so many events; a table shows 50.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Only the last so many of all events.")
    ] = None,
    passphrase_file: options.PassphraseFile = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Read what a subscription was delivered, as its client: with the rights of now, so what was closed since is null.

    `--json` is `--format json`: one object a line, with the event's name as `_event` and its stamp as `_stamp`.
    """
    from maia.authority import Action
    from maia.cli.deliver.job import rows_of
    from maia.cli.read.clients import denial, open_client
    from maia.cli.show.rows import TABLE_ROWS, json_line, show_table
    from maia.domain import find_subscription

    if kind not in ("table", "json"):
        raise UsageError(f"events are written as table or json, not `{kind}`", code="OUTPUT_FORMAT")
    domain, reader = open_client(home, client, passphrase_file)
    wanted = find_subscription(domain, name)
    with denial(domain, client=client, action=Action.SUBSCRIBE, type_text=wanted.type):
        names, rows = rows_of(domain, reader, name, last=last)
    count = 0
    if json or kind == "json":
        for row in rows:
            if count == limit:
                break
            print(json_line(row), end="")
            count += 1
    else:
        count = show_table(names, rows, most=limit or TABLE_ROWS)
    note(f"{counted(count, 'event')} of {name}")


def _say(done: Delivered) -> None:
    for name, events in done.events.items():
        why = f"; refused: {done.refused[name]}" if name in done.refused else ""
        if name in done.waits:
            why = f"; waits: {done.waits[name] or 'goes on at the next look'} (`maia status`)"
        write_line(printable(f"{name}: {counted(events, 'event')}{why}"))
    for code, events in sorted(done.dead.items()):
        write_line(f"dead letters: {counted(events, 'event')}, {code}")
    wait = f"; {counted(done.lag, 'commit waits', 'commits wait')}" if done.lag else ""
    note(f"went through {counted(done.commits, 'commit')} of the log{wait}")
