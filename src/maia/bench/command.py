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


@app.command(epilog=examples("maia bench sealing", "maia bench sealing --attributes 5,25 --groups 31 --json"))
def sealing(
    *,
    events: Annotated[int, typer.Option("--events", min=1, max=1_000_000, help="How many events.")] = 16_384,
    attributes: Annotated[
        str, typer.Option("--attributes", help="Numbers of attributes, with commas between them.")
    ] = "1,5,25",
    groups: Annotated[
        int, typer.Option("--groups", min=1, max=_MOST, help="Groups of readers with different rights, to emulate.")
    ] = 3,
    runs: Annotated[int, typer.Option("--runs", min=1, max=_MOST, help="How many rounds count.")] = 5,
    json: options.Json = False,
) -> None:
    """Seal and open parcels on one core, without Spark: what blocks, signatures and the ways of the thesis cost.

    Beside Maia's own ways stand two of the thesis, which Maia does not use: EAX with and without an attached OMAC, and
    one sub-event for each group of readers in place of keys for attributes.
    """
    from maia.bench.page import sealing_lines
    from maia.bench.sealing import sealing as measure
    from maia.cli import write_json, write_line

    many = _numbers(attributes, "attributes", most=_MOST)
    results = measure(events=events, attributes=many, groups=groups, runs=runs)
    if json:
        write_json(results.to_json())
    else:
        write_line("\n".join(sealing_lines(results)).rstrip())


@app.command(epilog=examples("maia bench labels", "maia bench labels --checks 1000000 --tags 8 --json"))
def labels(
    *,
    checks: Annotated[
        int, typer.Option("--checks", min=100, max=100_000_000, help="How many checks for each size.")
    ] = 20_000,
    tags: Annotated[
        str, typer.Option("--tags", help="Numbers of flow tags in a label, with commas between them.")
    ] = "1,2,4,8,16,32,64",
    runs: Annotated[int, typer.Option("--runs", min=1, max=100, help="Over how many rounds they are spread.")] = 5,
    json: options.Json = False,
) -> None:
    """Check labels against a reader as every read does, computed each time and remembered.

    The answers of both must be the same, and are compared.
    """
    from maia.bench.labels import check_labels
    from maia.bench.page import label_lines
    from maia.cli import write_json, write_line

    results = check_labels(checks=checks, tags=_numbers(tags, "flow tags", most=_MOST), runs=runs)
    if json:
        write_json(results.to_json())
    else:
        write_line("\n".join(label_lines(results)).rstrip())


def _numbers(text: str, what: str, *, most: int) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and 1 <= int(part) <= most for part in parts) or len(parts) > most:
        raise UsageError(f"`{text}` is no list of {what} from 1 to {most}", code="NUMBERS")
    return tuple(dict.fromkeys(int(part) for part in parts))
