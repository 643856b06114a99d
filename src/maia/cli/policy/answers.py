"""`maia policy who-can|overlap|suppose`: what rules say by themselves, before anybody has a role."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import printable, write_json, write_line

app = new_app()
_Files = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE", help="Policy files; those of the home when left out.")
]


@app.command(
    "who-can",
    epilog=examples(
        "maia policy who-can Numberplate location", "maia policy who-can Numberplate location --action publish --json"
    ),
)
@unpacked
def who_can(
    event_type: Annotated[str, typer.Argument(metavar="TYPE", help="The event type, by a word of the rules.")],
    attribute: Annotated[str, typer.Argument(metavar="ATTRIBUTE", help="The attribute, by name.")],
    files: _Files = None,
    *,
    action: Annotated[
        str, typer.Option("--action", metavar="ACTION", help="subscribe for readers, publish for writers.")
    ] = "subscribe",
    place: CommandPlace,
) -> None:
    """List the roles that can ever read or write an attribute, by the rules alone, and what each rests on.

    A role that no rule lets anybody have is not listed. What a role rests on is for others to decide: appointments, and
    with `?` circumstances. `maia who-can` lists who has the right now, by certificates.
    """
    from maia.domain import find_roles, policy_sources
    from maia.home import Home

    found = find_roles(
        Home.open(place.home), policy_sources(place.home, files or ()), event_type, attribute, action=action,
        at=place.instant,
    )  # fmt: skip
    if place.json:
        rows = [
            {
                "role": item.role,
                "rule": item.rule,
                "file": item.file,
                "line": item.line,
                "rests_on": list(item.rests_on),
            }
            for item in found
        ]
        write_json({"roles": rows})
        return
    for item in found:
        rests = ", ".join(item.rests_on) or "nothing"
        write_line(printable(f"{item.role}  by line {item.line} of {item.file}: {item.rule}; rests on {rests}"))


@app.command(epilog=examples("maia policy overlap", "maia policy overlap --json"))
@unpacked
def overlap(files: _Files = None, *, place: CommandPlace) -> None:
    """List pairs of rules that give the same action on the same attributes, and what both give, as a tag.

    Rules by roles alone and rules that access-control filters bound become the same tags, so they can be compared. A
    pair of which no use is allowed by both is a conflict; rights add up, so that takes nothing away.
    """
    from maia.domain import find_overlaps, policy_sources
    from maia.home import Home

    found = find_overlaps(Home.open(place.home), policy_sources(place.home, files or ()), at=place.instant)
    if place.json:
        rows = [
            {"rules": [item.first, item.second], "files": list(item.files), "lines": list(item.lines),
             "languages": list(item.languages), "common": item.common, "conflict": item.conflict}
            for item in found
        ]  # fmt: skip
        write_json({"overlaps": rows})
        return
    for item in found:
        said = "conflict" if item.conflict else f"both give {item.common}"
        places = ", ".join(f"{file}:{line}" for file, line in zip(item.files, item.lines, strict=True))
        write_line(printable(f"{places} ({', '.join(item.languages)}): {said}"))


@app.command(
    epilog=examples(
        'maia policy suppose "npTracker(\'AE05 XYZ\')" --as smith --appoint "detective(smith)"',
        "maia policy suppose \"npTracker('AE05 XYZ')\" --as smith --assume courtOrder --assume detective --json",
    )
)
@unpacked
def suppose(
    role: Annotated[str, typer.Argument(metavar="ROLE", help="The role with its parameters.")],
    files: _Files = None,
    *,
    as_: Annotated[str, typer.Option("--as", metavar="NAME", help="Who would activate it.")],
    appoint: Annotated[
        list[str] | None, typer.Option("--appoint", metavar="FACT", help="State an appointment. Repeatable.")
    ] = None,
    observe: Annotated[
        list[str] | None, typer.Option("--observe", metavar="FACT", help="State a circumstance. Repeatable.")
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option("--assume", metavar="WORD", help="Take what has this name as given, and say so. Repeatable."),
    ] = None,
    place: CommandPlace,
) -> int:
    """Tell whether somebody could have a role if some things were so: by which rule, and what it would give.

    Only the rules and what is stated here count, nobody's actual appointments; nothing is changed. What was assumed is
    listed. When the answer is no, the command says which premises each rule for the role lacks, and exits with 3.
    """
    from maia.domain import policy_sources, suppose

    found = suppose(
        policy_sources(place.home, files or ()), role, as_, appointed=appoint or (), observed=observe or (),
        assume=assume or (),
    )  # fmt: skip
    code = ExitCode.DONE if found else ExitCode.DENIED
    if place.json:
        lacks = [{"rule": item.rule, "line": item.line, "lacks": list(item.lacks)} for item in found.lacks]
        write_json(
            {"role": role, "holds": found.holds, "proof": list(found.proof), "privileges": list(found.privileges),
             "denied": list(found.denied), "assumed": list(found.assumed), "lacks": lacks},
            code=code,
        )  # fmt: skip
        return code
    lines = [*found.proof, *(f"gives {one}" for one in found.privileges)]
    lines += [*(f"denies {one}" for one in found.denied), *(f"assumed {one}" for one in found.assumed)]
    for line in lines if found else [f"line {item.line}: {item}" for item in found.lacks] or ["no rule gives it"]:
        write_line(printable(line))
    return code
