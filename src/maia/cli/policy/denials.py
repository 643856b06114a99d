"""`maia policy denials`: which rules denials take effect on, which take none, and what is denied whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, printable, write_json, write_line
from maia.encoding import counted

app = new_app()


@app.command(epilog=examples("maia policy denials", "maia policy denials --check --json"))
@unpacked
def denials(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Policy files; those of the home when left out.")
    ] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 when a denial takes no effect, or leaves nothing of a rule.")
    ] = False,
    place: CommandPlace,
) -> int:
    """Show what each denial takes from which rule, by the rules alone: a part of it, or all.

    A denial takes effect for whomever its appointments concern; `maia policy explain` tells for one member. One that
    takes nothing from any rule says nothing, and one that leaves nothing of a rule may say more than was meant: with
    --check either exits 1.
    """
    from maia.domain import find_denials, policy_sources
    from maia.home import Home

    found = find_denials(Home.open(place.home), policy_sources(place.home, files or ()), at=place.instant)
    idle = [view for view in found if view.idle]
    whole = list(dict.fromkeys(item for view in found for item in view.effects if item.whole))
    code = ExitCode.FAILED if check and (idle or whole) else ExitCode.DONE
    if place.json:
        rows = [
            {"rule": view.rule, "file": view.file, "line": view.line, "idle": view.idle,
             "effects": [{"rule": item.rule, "file": item.file, "line": item.line,
                          "takes": "whole" if item.whole else "part"} for item in view.effects]}
            for view in found
        ]  # fmt: skip
        wholly = [{"rule": item.rule, "file": item.file, "line": item.line} for item in whole]
        write_json({"denials": rows, "wholly_denied": wholly}, code=code)
        return code
    for view in found:
        write_line(printable(f"{view.file}:{view.line}: {view.rule}"))
        for item in view.effects:
            takes = "all" if item.whole else "a part"
            write_line(printable(f"  takes {takes} of {item.file}:{item.line}: {item.rule}"))
        if view.idle:
            write_line("  takes nothing: no rule gives it")
    note(f"{counted(len(found), 'denial')}, {len(idle)} without effect, {counted(len(whole), 'rule')} denied whole")
    return code
