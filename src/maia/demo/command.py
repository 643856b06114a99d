"""`maia demo`: scenarios with real keys, certificates, policies and streams, in temporary homes."""

from __future__ import annotations

import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli import examples, new_app, options

if TYPE_CHECKING:
    from maia.demo.type_evolution import VersionStory
    from maia.home import Folder
    from maia.testing import NumberplateNetwork

app = new_app()


class Scenario(StrEnum):
    """What can be played."""

    NUMBERPLATE = "numberplate"
    TRUST = "trust"
    DETECTIVE = "detective"
    STOCK = "stock"


@app.command(epilog=examples("maia demo", "maia demo trust --keep", "maia demo detective", "maia demo stock --json"))
def demo(
    scenario: Annotated[
        Scenario,
        typer.Argument(
            help="`numberplate` sends real sightings through Spark; `trust` stops before that; `detective` loses a "
            "court order in three ways on a live stream; `stock` sells flows to firms whose accounts come and go."
        ),
    ] = Scenario.NUMBERPLATE,
    *,
    events: Annotated[int, typer.Option("--events", min=1000, max=50_000_000, help="How many sightings.")] = 200_000,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the homes, to look at them with the other verbs.")] = False,
    json: options.Json = False,
) -> None:
    """Play a scenario; the numberplate one by default: PITO owns a type, and two domains give narrow rights to it.

    Makes fresh keys and certificates in a temporary folder, draws who gave what to whom, lets a verifier fill the
    matrix of rights, and shows one event as three versions of its type see it. Then cameras publish sightings
    through Spark, and a billing office, a statistics office and a detective read one stream, each what it may.
    """
    from maia.cli import note, now, write_json
    from maia.demo.type_evolution import version_story
    from maia.home import Folder
    from maia.testing import numberplate_network

    folder = Path(tempfile.mkdtemp(prefix="maia-demo-"))
    if scenario in (Scenario.DETECTIVE, Scenario.STOCK):
        _play(scenario, folder, keep=keep, json=json)
        return
    try:
        network = numberplate_network(seed=None, now=now())
        place = Folder(folder if scenario is Scenario.TRUST else folder / "people")
        _settle(network, place)
        note(f"home: {folder}")
        story = version_story(network.people["PITO"], network.people["TM"], at=network.now)
        stream = None
        if not json:
            from maia.demo.view import draw_demo

            draw_demo(network, place, story)
        if scenario is Scenario.NUMBERPLATE:
            from maia.demo.stream import play

            stream = play(network, folder, events=events, say=note)
        if json:
            facts: dict[str, object] = {**_facts(network, place), "type": _story(story)}
            if stream is not None:
                facts["stream"] = stream.to_json()
            write_json({"home": str(place.path), "kept": keep, **facts})
        elif stream is not None:
            from maia.demo.stream_view import draw_stream

            draw_stream(stream)
    finally:
        if not keep:
            shutil.rmtree(folder)
    note(f"kept; try: maia cert show --home {place.path}" if keep else "the home was removed; --keep keeps it")


def _play(scenario: Scenario, folder: Path, *, keep: bool, json: bool) -> None:
    """Play a scenario that lives on a stream."""
    from maia.cli import note, write_json
    from maia.spark import spark_errors

    try:
        with spark_errors():
            if scenario is Scenario.DETECTIVE:
                from maia.demo.detective import play_detective

                detective = play_detective(folder, say=note)
                if not json:
                    from maia.demo.detective_view import draw_detective

                    draw_detective(detective)
                found = detective.to_json()
            else:
                from maia.demo.stock import play_stock

                stock = play_stock(folder, say=note)
                if not json:
                    from maia.demo.stock_view import draw_stock

                    draw_stock(stock)
                found = stock.to_json()
        if json:
            write_json({"home": str(folder), "kept": keep, **found})
    finally:
        if not keep:
            shutil.rmtree(folder)
    note(f"kept: {folder}" if keep else "the homes were removed; --keep keeps them")


def _settle(network: NumberplateNetwork, home: Folder) -> None:
    """Write keys and certificates to the home. Demonstration keys are not sealed."""
    from maia.home import write_key, write_public_key

    for who in network.people:
        write_key(home.key_path(who), network.people[who], passphrase=None)
        write_public_key(home.public_path(who), network.key(who))
    for certificate in network.certificates.values():
        home.certificates.add(certificate)


def _facts(network: NumberplateNetwork, home: Folder) -> dict[str, object]:
    from maia.authority import Action
    from maia.demo.trust import cells, delegation_tree, matrix, reductions

    decisions = matrix(network)
    return {
        "keys": {who: network.key(who).fingerprint for who in network.people},
        "tree": [branch.to_json() for branch in delegation_tree(network, home)],
        "matrix": {
            who: {action: {"allowed": bool(found), "reason": found.reason} for action, found in row.items()}
            for who, row in decisions.items()
        },
        "attributes": {
            who: {
                action: cells(network, home, who, Action.parse(action)) if decisions[who][action] else []
                for action in ("publish", "subscribe")
            }
            for who in network.people
        },
        "reductions": [item.to_json() for item in reductions(network, home)],
    }


def _story(story: VersionStory) -> dict[str, object]:
    from maia.demo.types import in_transit, version_views

    return {
        "name": story.verified[0].event_type.name.name,
        "in_transit": in_transit(story),
        "versions": [view.to_json() for view in version_views(story)],
    }
