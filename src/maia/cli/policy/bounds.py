"""`maia policy bounds`: who is bounded by what, and what becomes of a filter or an event."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli.read.bundles import CommandPlace, unpacked
from maia.cli.read.options import examples, new_app, principal_option
from maia.cli.show.exits import ExitCode
from maia.cli.show.output import note, printable, write_json, write_line
from maia.errors import UsageError

if TYPE_CHECKING:
    from maia.authority import Action
    from maia.domain import BoundQuestion, Domain
    from maia.events import EventType

app = new_app()


@app.command(
    epilog=examples(
        "maia policy bounds",
        "maia policy bounds --type shop.Product --subscribe \"message = 'new_product'\"",
        'maia policy bounds --as acme --type shop.Product --advertise "message any and color any"',
        'maia policy bounds --as acme --type shop.Product --event \'{"message": "new_product", "price": 523}\'',
    )
)
@unpacked
def bounds(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Policy files; those of the home when left out.")
    ] = None,
    *,
    as_: Annotated[
        str | None, principal_option("--as", help="Ask of the rights that a client has now, in place of the rules.")
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="The event type: NAME or OWNER/NAME@VERSION.")
    ] = None,
    action: Annotated[
        str | None, typer.Option("--action", metavar="ACTION", help="publish or subscribe; both when left out.")
    ] = None,
    subscribe: Annotated[
        str | None, typer.Option("--subscribe", metavar="FILTER", help="What becomes of this subscription.")
    ] = None,
    advertise: Annotated[
        str | None, typer.Option("--advertise", metavar="FILTER", help="What becomes of this advertisement.")
    ] = None,
    event: Annotated[
        str | None,
        typer.Option("--event", metavar="JSON", help="An event to publish; with --subscribe, one to be seen."),
    ] = None,
    place: CommandPlace,
) -> int:
    """Show the access-control filters of rights, and what they make of a filter or an event; nothing is changed.

    Asked of the rules in policy files, in force or not; with --as, of the rights that a client holds now. Rights add
    up: one that allows is enough, and exits 0; when none does, the command exits 3.
    """
    from maia.domain import Domain, client_bounds, policy_sources, rule_bounds

    opened = Domain.open(place.home) if (place.home / "maia.toml").is_file() else None
    asked = None
    event_type = _version(opened, type_, needed=as_ is not None)
    if subscribe is not None or advertise is not None or event is not None:
        asked = _question(_version(opened, type_, needed=True), subscribe, advertise, event)
    if as_ is None:
        home = None if opened is None else opened.home
        found = rule_bounds(policy_sources(place.home, files or ()), home, asked, at=place.instant)
    elif opened is not None and event_type is not None:
        found = client_bounds(
            opened.known(at=place.instant), opened.home.key(as_), event_type, asked, holder=as_,
            actions=_actions(action), at=place.instant,
        )  # fmt: skip
    else:
        raise UsageError("--as asks about a home", code="RIGHT_OPTIONS")
    denied = asked is not None and not any(view.allowed for view in found)
    code = ExitCode.DENIED if denied else ExitCode.DONE
    if place.json:
        write_json({"rights": [view.to_json() for view in found]}, code=code)
        return code
    for view in found:
        for line in view.lines():
            write_line(printable(line))
    if not found:
        note("no rule, no access: nothing gives such a right")
    elif denied:
        note("refused: no right allows it")
    return code


def _version(domain: Domain | None, type_: str | None, *, needed: bool) -> EventType | None:
    if type_ is None or domain is None:
        if needed:
            raise UsageError("name the event type of this home with --type", code="RIGHT_OPTIONS")
        return None
    return domain.event_type(type_)


def _question(
    event_type: EventType | None, subscribe: str | None, advertise: str | None, event: str | None
) -> BoundQuestion | None:
    """Read what is asked about.

    Raises:
        UsageError: Two things are, or the event is no JSON object.
    """
    from maia.domain import BoundQuestion
    from maia.filters import Side

    if event_type is None:
        return None
    if advertise is not None and (subscribe is not None or event is not None):
        raise UsageError("--advertise stands alone", code="RIGHT_OPTIONS")
    try:
        read = None if event is None else json_.loads(event)
    except (ValueError, RecursionError) as error:
        raise UsageError("the event is no JSON", code="REQUEST_FIELD") from error
    if read is not None and not isinstance(read, dict):
        raise UsageError("an event must be an object", code="REQUEST_FIELD")
    side = Side.ADVERTISE if advertise is not None else Side.SUBSCRIBE if subscribe is not None else Side.PUBLISH
    return BoundQuestion(event_type=event_type, side=side, filter=advertise or subscribe or "", event=read)


def _actions(word: str | None) -> tuple[Action, ...]:
    from maia.authority import Action

    chosen = (Action.PUBLISH, Action.SUBSCRIBE)
    if word is None:
        return chosen
    found = tuple(action for action in chosen if action.value == word)
    if not found:
        raise UsageError("bounds are of publish or subscribe", code="RIGHT_OPTIONS")
    return found
