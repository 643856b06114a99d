"""`maia doctor`: what this installation has, and whether a home is in order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.options import examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import draw, write_json

app = new_app()


@app.command(epilog=examples("maia doctor", "maia doctor --home met --json"))
def doctor(
    digests: Annotated[
        bool, typer.Option("--digests", help="Read every file of own lanes and compare what it holds.")
    ] = False,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Look at Python, the packages, Java, the peer of the S-expression codec, and a home: files, rights, keys, lists.

    Of the log it looks whether the files are there that this domain published, each with the size it had.

    Exits with 1 when something is wrong; what is merely missing is a warning, with the command that mends it.
    """
    from maia.cli.doctor.findings import look

    findings = look(home, digests=digests)
    code = ExitCode.FAILED if any(item.status == "problem" for item in findings) else ExitCode.DONE
    if json:
        write_json({"findings": [item.to_json() for item in findings]}, code=code)
        return code
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    styles = {"ok": "green", "warning": "yellow", "problem": "bold red"}
    for item in findings:
        detail = Text(item.detail)
        if item.hint:
            detail.append(f"\n{item.hint}", style="dim")
        table.add_row(Text(item.status, style=styles[item.status]), item.name, detail)
    draw(table)
    return code
