"""`maia who-can`: everybody who reads or writes an attribute, by all certificates that a home knows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import answer, write_json, write_line

app = new_app()


@app.command(
    epilog=examples(
        "maia who-can uk.gov.pito.Numberplate",
        "maia who-can uk.gov.pito.Numberplate numberplate --only met --only 'met: clients'",
        "maia who-can uk.gov.pito.Numberplate location --where \"location = 'Victoria'\" --json",
        "maia who-can uk.gov.pito.Numberplate location --action publish --at 2026-12-31",
        'maia who-can uk.gov.pito.Numberplate location --as smith --row \'{"numberplate": "AE05 XYZ"}\'',
    )
)
@unpacked
def who_can(
    event_type: Annotated[str, typer.Argument(metavar="TYPE", help="The event type: NAME or OWNER/NAME@VERSION.")],
    attribute: Annotated[
        str | None, typer.Argument(metavar="[ATTRIBUTE]", help="The attribute, by name; a table of all when left out.")
    ] = None,
    *,
    action: Annotated[
        str, typer.Option("--action", metavar="ACTION", help="subscribe for readers, publish for writers.")
    ] = "subscribe",
    where: Annotated[
        str, typer.Option("--where", metavar="FILTER", help="In some row that a filter matches; else in some row.")
    ] = "",
    row: Annotated[
        str | None, typer.Option("--row", metavar="JSON", help="In this row, by name; what is not named is null.")
    ] = None,
    principal: Annotated[
        str | None, principal_option("--as", help="Ask about one principal: yes, or the link that is missing.")
    ] = None,
    only: Annotated[
        list[str] | None,
        principal_option("--only", help="Who alone may, a key or a local name; exits 3 when others do. Repeatable."),
    ] = None,
    add: Annotated[
        list[Path] | None, typer.Option("--add", metavar="FILE", help="As if this certificate were known as well.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="CERTIFICATE", help="As if this certificate were not there.")
    ] = None,
    place: CommandPlace,
) -> int:
    """List everybody who reads or writes an attribute, each with the chain of certificates that gives it.

    The list is complete for what this home knows, at the moment that is asked about: signatures, periods, lists, names,
    thresholds, conditions and the network count as they do for a broker, since the broker's own decision is asked for
    each. It says on what it rests, and whether something could not be told. Owners, who need no certificate, are not
    listed. With --as the command exits with 3 when the answer is no, and says what is missing. Without an attribute it
    lists everybody's rights on the type.
    """
    import maia
    from maia.cli.read.files import read_source
    from maia.cli.read.rows import read_row
    from maia.errors import UsageError

    domain = maia.open(place.home)
    values = None if row is None else read_row(row)
    if attribute is None:
        if any((where, row, principal, only, add, remove)):
            raise UsageError("name the attribute that is asked about", code="NOTHING_NAMED")
        table = domain.rights(event_type, at=place.instant)
        lines = [
            f"{who}: {'; '.join(f'{does} {_listed(on)}' for does, on in can.items())}" for who, can in table.items()
        ]
        answer({"rights": table}, *lines, json=place.json)
        return ExitCode.DONE
    if principal is not None:
        if add or remove or only:
            raise UsageError("--as does not go with --add, --remove and --only", code="USAGE")
        found = domain.why_not(
            event_type, attribute, principal=principal, action=action, row=values, where=where, at=place.instant
        )
        code = ExitCode.DONE if found else ExitCode.DENIED
        if place.json:
            data = {"principal": found.principal, "cell": found.cell, "holds": bool(found)}
            write_json(data if found else data | {"error": found.code, "message": found.message}, code=code)
        else:
            write_line(str(found))
        return code
    readers = domain.who_can(
        event_type, attribute, action=action, row=values, where=where, only=only, at=place.instant,
        add=[read_source(str(path)) for path in add or ()], remove=remove or (),
    )  # fmt: skip
    code = ExitCode.DENIED if readers.outsiders else ExitCode.DONE
    answer(readers.to_json(), *readers.lines(), json=place.json, code=code)
    return code


def _listed(attributes: tuple[str, ...]) -> str:
    return "" if attributes == ("*",) else f"({', '.join(attributes)})"
