"""`maia demo`: the numberplate scenario, with real keys and certificates in a temporary home."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maia.cli import options
from maia.cli.options import examples, new_app

if TYPE_CHECKING:
    from maia.cli.home import Home
    from maia.cli.type_demo import VersionStory
    from maia.testing import NumberplateNetwork

app = new_app()


@app.command(epilog=examples("maia demo", "maia demo --keep", "maia demo --json"))
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the home, to look at it with the other verbs.")] = False,
    json: options.Json = False,
) -> None:
    """Play the numberplate scenario: PITO owns an event type, and two domains give their people narrow rights to it.

    Makes fresh keys and certificates in a temporary home, draws who gave what to whom, lets a verifier fill the matrix
    of rights, and shows one event as three versions of its type see it.
    """
    from maia.cli.home import Home
    from maia.cli.instants import now
    from maia.cli.output import note, write_json
    from maia.cli.type_demo import version_story
    from maia.testing import numberplate_network

    folder = Path(tempfile.mkdtemp(prefix="maia-demo-"))
    try:
        network = numberplate_network(seed=None, now=now())
        place = Home(folder)
        _settle(network, place)
        note(f"home: {folder}")
        story = version_story(network.people["PITO"], network.people["TM"], at=network.now)
        if json:
            write_json({"home": str(folder), "kept": keep, **_facts(network, place), "type": _story(story)})
        else:
            from maia.cli.demo_view import draw_demo

            draw_demo(network, place, story)
    finally:
        if not keep:
            shutil.rmtree(folder)
    note(f"kept; try: maia cert show --home {folder}" if keep else "the home was removed; --keep keeps it")


def _settle(network: NumberplateNetwork, home: Home) -> None:
    """Write keys and certificates to the home. Demonstration keys are not sealed."""
    from maia.stores import write_key, write_public_key

    for who in network.people:
        write_key(home.key_path(who), network.people[who], passphrase=None)
        write_public_key(home.public_path(who), network.key(who))
    for certificate in network.certificates.values():
        home.certificates.add(certificate)


def _facts(network: NumberplateNetwork, home: Home) -> dict[str, object]:
    from maia.authority import Action
    from maia.cli.demo_trust import cells, delegation_tree, matrix, reductions

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
    from maia.cli.demo_types import in_transit, version_views

    return {
        "name": story.verified[0].event_type.name.name,
        "in_transit": in_transit(story),
        "versions": [view.to_json() for view in version_views(story)],
    }
