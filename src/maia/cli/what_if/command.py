"""`maia what-if`: who would gain and lose what, if something were otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import answer

app = new_app()


@app.command(
    epilog=examples(
        "maia what-if --remove 3fa1c9",
        "maia what-if --add smith.cert --json",
        "maia what-if --then 2026-12-31",
        "maia what-if --at 2026-06-01 --then now",
    )
)
@unpacked
def what_if(
    *,
    add: Annotated[
        list[Path] | None, typer.Option("--add", metavar="FILE", help="As if this certificate were known as well.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="CERTIFICATE", help="As if this certificate were not there.")
    ] = None,
    then: Annotated[
        str | None,
        typer.Option("--then", metavar="INSTANT", help="Compare with this moment, in place of the same one."),
    ] = None,
    place: CommandPlace,
) -> None:
    """Tell who would gain, lose or keep in other rows which attribute, with certificates more or less, or later.

    Everybody is decided for twice, as things are and as they would be, by the decision that a broker makes. Where
    somebody keeps an attribute in fewer or more rows, one such row is shown. Nothing is changed.
    """
    import maia
    from maia.cli.read.files import read_source
    from maia.errors import UsageError

    if not add and not remove and then is None:
        raise UsageError("say what would be otherwise: --add, --remove or --then", code="NOTHING_NAMED")
    domain = maia.open(place.home)
    found = domain.what_if(
        add=[read_source(str(path)) for path in add or ()], remove=remove or (), then=place.moment(then),
        at=place.instant,
    )  # fmt: skip
    answer(found.to_json(), *found.lines(), json=place.json)
