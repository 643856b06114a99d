"""`maia type lint`: what a new version takes away from those who use the old one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read import options
from maia.cli.read.files import read_source
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, printable, write_json, write_line
from maia.cli.type import view
from maia.events import lint as find_harm
from maia.events import parse_live_clients
from maia.home import Folder, find_definition

EXAMPLES = ("maia type lint OLD NEW", "maia type lint OLD NEW --clients clients.jsonl")
Old = Annotated[str, typer.Argument(metavar="OLD", help="OWNER/NAME@VERSION, or a file.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="OWNER/NAME@VERSION, or a file.")]


def lint(
    old: Old,
    new: New,
    clients: Annotated[
        Path | None,
        typer.Option(
            "--clients",
            metavar="FILE",
            help='Live clients, one JSON object a line: {"client": "SO", "attributes": ["location"]}; '
            "attributes by name in OLD, or by uid under `uids`; all when neither is there.",
        ),
    ] = None,
    home: options.Home = Path(),
    json: options.Json = False,
) -> int:
    """Warn about what a new version takes away from live clients; exit code 1 when there is a warning.

    The subscriptions that the home keeps (`maia deliver add`) are known, with what their rights show; a file names
    clients of other homes.
    """
    place = Folder(home)
    before, after = find_definition(place, old).definition, find_definition(place, new).definition
    live = [] if clients is None else parse_live_clients(read_source(str(clients)), before)
    if place.config is not None:
        from maia.domain import Domain, live_clients

        with Domain.open(home) as domain:
            live += live_clients(domain, before.type_id, at=place.clock())
    findings = find_harm(before, after, live)
    code = ExitCode.FAILED if findings else ExitCode.DONE
    if json:
        write_json({"findings": [view.finding_to_json(finding) for finding in findings]}, code=code)
        return code
    for finding in findings:
        who = ", ".join(printable(name) for name in finding.clients)
        write_line(f"{finding.code}: `{printable(finding.attribute.name)}` ({finding.attribute.uid}) is used by {who}")
        note(f"advice: {finding.advice}")
    if not findings:
        note("nobody is hurt")
    return code
