"""`maia bench`: what protection costs on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli import examples, new_app, options
from maia.errors import UsageError

app = new_app()
_MOST = 1000


@app.callback()
def bench() -> None:
    """Measure what protection costs on this machine."""


@app.command(
    epilog=examples(
        "maia bench pipeline", "maia bench pipeline --attributes 1,10,25 --subscriptions 1,100 --runs 5 --json"
    )
)
def pipeline(
    *,
    events: Annotated[int, typer.Option("--events", min=1000, max=50_000_000, help="How many events.")] = 50_000,
    attributes: Annotated[
        str, typer.Option("--attributes", help="Numbers of attributes, with commas between them.")
    ] = "1,10",
    subscriptions: Annotated[
        str, typer.Option("--subscriptions", help="Numbers of subscriptions: 1, or up to 100.")
    ] = "1",
    runs: Annotated[int, typer.Option("--runs", min=1, max=_MOST, help="How many rounds count.")] = 3,
    json: options.Json = False,
) -> None:
    """Send the same rows through plain Parquet, through Maia in each mode, and sealed value by value.

    The arms take turns in each round; the first round warms up and does not count. A ratio above 1 is faster than
    plain Parquet. With the defaults it takes about a minute on two quiet cores.
    """
    from maia.bench.page import lines
    from maia.bench.whole import quick
    from maia.cli import watching, write_json, write_line

    many = _numbers(attributes, "attributes", most=_MOST)
    readers = _numbers(subscriptions, "subscriptions", most=100)
    with watching("starting Spark") as watch:
        results = quick(events=events, attributes=many, subscriptions=readers, runs=runs, say=watch.say)
    if json:
        write_json(results.to_json())
    else:
        write_line("\n".join(lines(results)).rstrip())


def _numbers(text: str, what: str, *, most: int) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and 1 <= int(part) <= most for part in parts) or len(parts) > most:
        raise UsageError(f"`{text}` is no list of {what} from 1 to {most}", code="NUMBERS")
    return tuple(dict.fromkeys(int(part) for part in parts))
