"""`maia compare`: whether one principal is shown whatever another is, and a row that shows the difference."""

from __future__ import annotations

from typing import Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app
from maia.cli.show.output import answer

app = new_app()


@app.command(
    epilog=examples(
        "maia compare uk.gov.pito.Numberplate smith met",
        "maia compare uk.gov.pito.Numberplate smith --json",
        "maia compare uk.gov.pito.Numberplate smith smith --then 2026-12-31",
    )
)
@unpacked
def compare(
    event_type: Annotated[str, typer.Argument(metavar="TYPE", help="The event type: NAME or OWNER/NAME@VERSION.")],
    left: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Whose view.")],
    right: Annotated[str | None, typer.Argument(metavar="[OTHER]", help="With whose it is compared.")] = None,
    *,
    action: Annotated[
        str,
        typer.Option("--action", metavar="ACTION", help="subscribe for what they read, publish for what they write."),
    ] = "subscribe",
    then: Annotated[
        str | None, typer.Option("--then", metavar="INSTANT", help="Look at the second one at this moment.")
    ] = None,
    place: CommandPlace,
) -> None:
    """Compare what two principals are shown of a type: whether all, the same, or nothing in common.

    The answers are about all rows that there could be, and exact; where one is no, a row shows it. Of one principal
    alone: which attributes it is shown in every row, which in none, and which demands of its rights nothing can meet.
    What depends on conditions on events is not looked into, and the answer says so.
    """
    import maia

    domain = maia.open(place.home)
    found = domain.compare(
        event_type, left, right, action=action, at=place.instant, then=place.moment(then)
    )  # fmt: skip
    answer(found.to_json(), *found.lines(), json=place.json)
