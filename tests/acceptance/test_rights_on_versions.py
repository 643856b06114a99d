"""A right on one version is a right on what that version has: it reads and sets nothing of what another version has."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import maia
from maia.authority import Action, Constraint, parse_tag, type_right
from maia.encoding import format_advanced
from maia.errors import MaiaError
from maia.principals import PublicKey
from maia.testing import Command, publish_here

NAME = "uk.gov.pito.Sighting"
SPEED = "77"  # the uid of the speed, which version 2 adds
ROWS = [{"numberplate": "AE05 XYZ", "location": "Euston", "speed": 250}]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home with two versions of a type; its broker may publish the first.

    Met may pass on all of version 1, the yard all of every version; the camera publishes and the reader reads all.
    """
    made = Command(tmp_path_factory.mktemp("versions") / "home")
    made.do("domain", "init", str(made.home))
    made.keys("pito", "camera", "reader", "met", "yard")
    first = ("--attribute", "numberplate:string:1", "--attribute", "location:string:2")
    made.do("type", "define", f"pito/{NAME}@1", "--encryption", "plain", *first)
    made.do(
        "type", "define", f"pito/{NAME}@2", "--encryption", "plain", *first, "--attribute", f"speed:integer:{SPEED}"
    )
    for who, version, action, more in (
        ("broker", "@1", "publish", ()), ("broker", "", "subscribe", ()), ("camera", "", "publish", ()),
        ("reader", "", "subscribe", ()), ("met", "@1", "subscribe", ("--delegate",)),
        ("yard", "", "subscribe", ("--delegate",)),
    ):  # fmt: skip
        made.grant("--from", "pito", "--to", who, "--type", f"pito/{NAME}{version}", "--action", action, *more)
    return made


def narrowed(home: Command, giver: str, to: str, *demands: Constraint, conditions: tuple[str, ...] = ()) -> list[str]:
    """Write the arguments of `maia grant` for a right on all of version 1, narrowed."""
    owner = PublicKey.import_(bytes.fromhex(home.do("key", "show", "pito")["keys"][0]["key"]))
    right = type_right(owner, NAME, "1", actions=[Action.SUBSCRIBE], constraints=demands)
    asked = [part for condition in conditions for part in ("--condition", condition)]
    return ["--from", giver, "--to", to, "--tag", format_advanced(right.to_sexp()), *asked]


def reads(home: Command, who: str) -> bool:
    """Tell whether a client may read version 1, or raise why not."""
    domain = maia.open(home.home)
    return bool(domain.deliver_plan(NAME, client=domain.prove(who), version="1", commits=()).subscriptions)


@pytest.mark.threat("T67")
@pytest.mark.requirement("5.08")
@pytest.mark.requirement("10.14")
@pytest.mark.parametrize("by", ["constraint", "condition"])
def test_all_of_a_version_chooses_no_rows_by_what_another_version_has(home: Command, by: str) -> None:
    """Met holds all of version 1. What it gives by a speed is refused when issued, and issued still gives nothing."""
    demands = (Constraint(SPEED, ">=", 8192),) if by == "constraint" else ()
    conditions = () if by == "constraint" else (f"event['{SPEED}'] == 9137",)
    home.keys(f"met-{by}", f"yard-{by}")
    by_met = narrowed(home, "met", f"met-{by}", *demands, conditions=conditions)
    assert home.refused("grant", *by_met) == (3, "SPEAKS_OF_CLOSED")
    home.grant(*by_met, "--blanket")
    with pytest.raises(MaiaError) as caught:
        reads(home, f"met-{by}")
    assert caught.value.code == "SPEAKS_OF_CLOSED"
    home.grant(*narrowed(home, "yard", f"yard-{by}", *demands, conditions=conditions))
    assert reads(home, f"yard-{by}")


@pytest.mark.requirement("10.14")
def test_all_of_a_version_chooses_rows_by_what_the_version_has(home: Command) -> None:
    """Met narrows by the plate, which version 1 has."""
    home.keys("plates")
    home.grant(*narrowed(home, "met", "plates", Constraint("1", "=", "AE05 XYZ"), conditions=("event['2'] != 'Kent'",)))
    assert reads(home, "plates")


def test_a_broker_publishes_no_version_that_it_has_no_right_to(home: Command) -> None:
    """The camera may publish every version, its broker the first: the second is refused before a row is looked at."""
    domain = maia.open(home.home)
    camera = domain.prove("camera")
    with pytest.raises(MaiaError) as caught:
        domain.publish_plan(NAME, client=camera, version="2", publication="second")
    assert caught.value.code == "NOT_PERMITTED"
    assert domain.publish_plan(NAME, client=camera, version="1", publication="first").own


def test_a_reader_takes_from_a_broker_only_what_its_version_has(spark: Any, home: Command) -> None:
    """A broker that seals a speed on its right to version 1: readers of version 2 see the rest of the row."""
    domain, now = maia.open(home.home), datetime.now(UTC)
    second = domain.known(at=now).definition(domain.event_type(NAME, "2").type_id, "2")

    def forge(plan: Any) -> Any:
        everything = parse_tag((b"*",))
        clauses = tuple(replace(clause, cells=replace(clause.cells, uids=everything)) for clause in plan.clauses)
        return replace(plan, definition=second, clauses=clauses)

    publish_here(domain.home, f"{NAME}@1", ROWS, as_="camera", at=now, honest=False, change=forge)
    rows = maia.open(home.home).client("reader").read(f"{NAME}@2").select("numberplate", "location", "speed").collect()
    assert [tuple(row) for row in rows] == [("AE05 XYZ", "Euston", None)]
