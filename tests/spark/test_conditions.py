"""Conditions and rates where Spark publishes and reads: asked on the workers, counted once however often tasks run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from network import Network, sightings
from tasks import fail_once

import maia
from maia.authority import Action, type_right
from maia.home import Home
from maia.log import read_audit
from maia.testing import ATTRIBUTES, TYPE_NAME, grant

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    # pyspark leaves sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def let(network: Network, who: str, action: Action, *conditions: str) -> Home:
    """Give a client of the congestion charge service a right with conditions."""
    home = Home.open(network.ccs)
    signer = home.new_key(who)
    people = network.people
    right = type_right(people.key("PITO"), TYPE_NAME, actions=[action], attributes=list(ATTRIBUTES.values()))
    home.certificates.add(grant(people.people["CCS"], signer, right, conditions=conditions))
    connect = next(item for name, item in people.certificates.items() if name == "Cap3b-CCTV")
    home.certificates.add(grant(people.people["CCS"], signer, connect.body.tag))
    return home


def refused(network: Network) -> dict[str, int]:
    """Count the refused events by code, from the audit."""
    found: dict[str, int] = {}
    for row in read_audit(network.ccs / "audit"):
        if row.kind == "refuse":
            found[row.code] = found.get(row.code, 0) + row.events
    return found


def test_a_rate_is_shared_by_executors_and_counts_a_repeated_task_once(
    spark: Any, network: Network, tmp_path: Path
) -> None:
    """Twelve an hour: eight leave although each worker is killed once and runs again; of the next eight, four."""
    home = let(network, "lamp", Action.PUBLISH, 'rate(12, "1h")')
    rows = sightings(f"P{number}" for number in range(8))
    frame = spark.createDataFrame(rows.to_pandas(), "numberplate string, timestamp timestamp, location string")
    failing = frame.repartition(2).mapInArrow(partial(fail_once, str(tmp_path / "failed")), frame.schema)
    maia.open(home.path).client("lamp").publish(failing, TYPE_NAME)
    assert len(list(tmp_path.glob("failed-*"))) >= 1
    maia.open(home.path).client("lamp").publish(frame.repartition(2), TYPE_NAME)
    assert [commit.events for commit in network.log.commits()] == [8, 4]
    assert refused(network) == {"RATE_LIMITED": 4}


def test_conditions_on_events_are_asked_on_the_workers(spark: Any, network: Network) -> None:
    """A publisher's and a subscriber's, each with a fact from the home's own providers."""
    home = let(network, "lamp", Action.PUBLISH, f"known(event['{ATTRIBUTES['numberplate']}'])")
    let(network, "clerk", Action.SUBSCRIBE, f"event['{ATTRIBUTES['numberplate']}'] != 'P2' && known('P1')")
    (home.path / "policy").mkdir()
    declared = '[[predicate]]\nname = "known"\narity = 1\nkind = "file"\npath = "known.csv"\n'
    (home.path / "policy" / "providers.toml").write_text(declared, "utf-8")
    (home.path / "policy" / "known.csv").write_text("P1\nP2\nP3\n", "utf-8")
    rows = sightings(f"P{number}" for number in range(6))
    frame = spark.createDataFrame(rows.to_pandas(), "numberplate string, timestamp timestamp, location string")
    maia.open(home.path).client("lamp").publish(frame.repartition(2), TYPE_NAME)
    assert refused(network) == {"CONDITION_FALSE": 3}
    seen = maia.open(home.path).client("clerk").read(TYPE_NAME).collect()
    assert sorted(row["numberplate"] for row in seen) == ["P1", "P3"]
    (home.path / "policy" / "known.csv").unlink()  # the provider is down: nothing is seen
    assert maia.open(home.path).client("clerk").read(TYPE_NAME).collect() == []
