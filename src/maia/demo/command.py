"""`maia demo`: scenarios with real keys, certificates, policies and streams, in temporary homes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli import examples, new_app, note, now, options, write_json, write_line
from maia.demo.scenarios import Scenario
from maia.errors import UsageError

if TYPE_CHECKING:
    from maia.demo.type_evolution import VersionStory
    from maia.home import Folder
    from maia.testing import NumberplateNetwork

app = new_app()
_LISTED = "; ".join(f"`{scenario}`: {scenario.about}" for scenario in Scenario)


@app.command(
    epilog=examples(
        "maia demo",
        "maia demo --list",
        "maia demo --emulate",
        "maia demo clinic",
        "maia demo stock --json",
        "maia demo avs --sheet seen.png",
    )
)
def demo(
    scenario: Annotated[Scenario, typer.Argument(help=f"{_LISTED}.")] = Scenario.NUMBERPLATE,
    *,
    listed: Annotated[bool, typer.Option("--list", help="List the scenarios, and play none.")] = False,
    events: Annotated[
        int, typer.Option("--events", min=1000, max=50_000_000, help="How many sightings; of `numberplate` alone.")
    ] = 200_000,
    emulate: Annotated[
        bool,
        typer.Option(
            "--emulate", help="With `numberplate`, in place of the stream: one sub-event for each group of readers."
        ),
    ] = False,
    sheet: Annotated[
        Path | None, typer.Option("--sheet", metavar="FILE", help="With `avs`: where the contact sheet goes, a PNG.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the homes, to look at them with the other verbs.")] = False,
    json: options.Json = False,
) -> None:
    """Play a scenario with real keys, certificates and streams, in homes of its own that are removed afterwards.

    The numberplate one by default: PITO owns a type, and two domains give narrow rights to it. It draws who gave what
    to whom, lets a verifier fill the matrix of rights, and shows one event as three versions of its type see it. Then
    cameras publish sightings through Spark, and a billing office, a statistics office and a detective read one stream,
    each what it may. Others say on standard error what is done; those with commands are a way to do it yourself.

    With --emulate two sightings are sealed as the thesis emulates it, and compared with what Maia does; without Spark.
    """
    if listed:
        _list(json=json)
        return
    if emulate and scenario is not Scenario.NUMBERPLATE:
        raise UsageError("`--emulate` is a way to play `numberplate`")
    if sheet is not None and scenario is not Scenario.AVS:
        raise UsageError("`--sheet` is what `avs` draws")
    folder = Path(tempfile.mkdtemp(prefix="maia-demo-"))
    try:
        if scenario in (Scenario.NUMBERPLATE, Scenario.TRUST):
            sightings = None if emulate or scenario is Scenario.TRUST else events
            facts = _numberplate(folder, sightings=sightings, emulate=emulate, drawn=not json)
        elif scenario is Scenario.AVS:
            facts = _cameras(folder, sheet, drawn=not json)
        else:
            facts = _live(scenario, folder, drawn=not json)
        if json:
            write_json({"kept": keep, **facts})
    finally:
        if not keep:
            shutil.rmtree(folder)
    note(f"kept; try: maia cert show --home {facts['home']}" if keep else "the homes were removed; --keep keeps them")


def _list(*, json: bool) -> None:
    if json:
        write_json({"scenarios": {scenario.value: scenario.about for scenario in Scenario}})
        return
    for scenario in Scenario:
        write_line(f"{scenario:<12} {scenario.about}")


def _live(scenario: Scenario, folder: Path, *, drawn: bool) -> dict[str, object]:
    """Play a scenario that lives on a stream."""
    from maia.demo.scenarios import play_scenario
    from maia.spark import spark_errors

    with spark_errors():
        found = play_scenario(scenario, folder, say=note, drawn=drawn)
    return {"home": str(folder), **found.to_json(), "views": [view.to_json() for view in found.views()]}


def _cameras(folder: Path, sheet: Path | None, *, drawn: bool) -> dict[str, object]:
    """Play the scenario of cameras, which needs no Spark."""
    from maia.demo.avs import play_avs

    found = play_avs(folder, say=note, sheet=sheet)
    if drawn:
        from maia.demo.table_view import draw_views

        draw_views(found.views())
    return {"home": str(folder / "avs"), **found.to_json(), "views": [view.to_json() for view in found.views()]}


def _numberplate(folder: Path, *, sightings: int | None, emulate: bool, drawn: bool) -> dict[str, object]:
    """Settle the numberplate network and draw it; then its sub-events, or so many sightings through Spark."""
    from maia.demo.type_evolution import version_story
    from maia.home import Folder
    from maia.testing import numberplate_network

    network = numberplate_network(seed=None, now=now())
    place = Folder(folder / "people" if sightings is not None or emulate else folder)
    _settle(network, place)
    note(f"home: {folder}")
    story = version_story(network.people["PITO"], network.people["TM"], at=network.now)
    facts: dict[str, object] = {"home": str(place.path), **_facts(network, place), "type": _story(story)}
    if drawn:
        from maia.demo.view import draw_demo

        draw_demo(network, place, story)
    if emulate:
        from maia.demo.emulated import draw_emulation, play_emulated

        emulation = play_emulated(network, folder)
        facts["emulation"] = emulation.to_json()
        if drawn:
            draw_emulation(emulation)
    elif sightings is not None:
        from maia.demo.stream import play
        from maia.demo.stream_view import draw_stream

        stream = play(network, folder, events=sightings, say=note)
        facts |= {"stream": stream.to_json(), "views": [view.to_json() for view in stream.views()]}
        if drawn:
            draw_stream(stream)
    return facts


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
