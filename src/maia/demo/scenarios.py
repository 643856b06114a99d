"""The scenarios: what each is about, and how it is played and drawn."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from maia.demo.views import SceneView

Say = Callable[[str], None]


class Scenario(StrEnum):
    """What can be played."""

    NUMBERPLATE = "numberplate"
    TRUST = "trust"
    DETECTIVE = "detective"
    STOCK = "stock"
    MIKLOS = "miklos"
    CLINIC = "clinic"
    AVS = "avs"
    PATHOLOGY = "pathology"

    @property
    def about(self) -> str:
        """Say it in a line."""
        return _ABOUT[self]


_ABOUT = {
    Scenario.NUMBERPLATE: "sightings of cars through Spark, and four parties that see them with different eyes",
    Scenario.TRUST: "its keys, certificates and versions alone, without Spark",
    Scenario.DETECTIVE: "a court order on a live stream, lost in three ways and given back",
    Scenario.STOCK: "an exchange sells flows to firms, whose accounts come and go until the contracts end",
    Scenario.MIKLOS: "access-control filters: what may be published, announced and asked for, and what is screened",
    Scenario.CLINIC: "a hospital's first day: its own CSV file, roles by shift, a second hospital, the end of both",
    Scenario.AVS: "two cameras, three people, and policies that change what each sees while it runs; without Spark",
    Scenario.PATHOLOGY: "a report of seven labelled parts: who sees which, what may leave, what a revocation closes",
}


class Facts(Protocol):
    """What a scenario brought."""

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        ...

    def views(self) -> list[SceneView]:
        """Give the part that is the same each time."""
        ...


def play_scenario(scenario: Scenario, folder: Path, *, say: Say, drawn: bool) -> Facts:
    """Play a scenario that lives on a stream in an empty folder, and draw it for people when asked."""
    found: Facts
    if scenario is Scenario.DETECTIVE:
        from maia.demo.detective import play_detective

        found = detective = play_detective(folder, say=say)
        if drawn:
            from maia.demo.detective_view import draw_detective

            draw_detective(detective)
    elif scenario is Scenario.STOCK:
        from maia.demo.stock import play_stock

        found = stock = play_stock(folder, say=say)
        if drawn:
            from maia.demo.stock_view import draw_stock

            draw_stock(stock)
    else:
        if scenario is Scenario.MIKLOS:
            from maia.demo.miklos import play_miklos

            found = play_miklos(folder, say=say)
        elif scenario is Scenario.PATHOLOGY:
            from maia.demo.pathology import play_pathology

            found = play_pathology(folder, say=say)
        else:
            from maia.demo.clinic import play_clinic

            found = play_clinic(folder, say=say)
        if drawn:
            from maia.demo.table_view import draw_views

            draw_views(found.views())
    return found
