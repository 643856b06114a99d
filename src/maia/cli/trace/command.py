"""`maia trace`: the steps that events went through in a home, without values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import note, printable, write_json
from maia.cli.show.tables import draw_table

app = new_app()


@app.command(epilog=examples("maia trace", "maia trace --json | jq '.steps[].step'", "maia trace --clear"))
def trace(
    *,
    clear: Annotated[bool, typer.Option("--clear", help="Forget what was traced so far.")] = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> None:
    """Show which steps events went through here, in their order: names and counts, no values.

    It is written while `maia.toml` says `trace = "on"`, by whatever publishes, reads or delivers for this home.
    """
    import maia
    from maia.domain import TRACE_FILE, read_trace

    domain = maia.open(home)
    if clear:
        (domain.path / TRACE_FILE).unlink(missing_ok=True)
    steps = list(read_trace(domain.path))
    if json:
        write_json({"trace": domain.config.trace, "steps": steps})
        return
    if domain.config.trace == "off":
        note('tracing is off; `trace = "on"` in maia.toml turns it on')
    if steps:
        rows = [
            (str(item["at"])[:19], str(item["operation"]), printable(str(item["name"])), str(item["step"]),
             str(item["count"]))
            for item in steps
        ]  # fmt: skip
        draw_table(("at", "operation", "name", "step", "count"), rows, right=("count",))
