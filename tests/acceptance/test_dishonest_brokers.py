"""Readers take no broker's word: what one publishes beyond its right, its type, its mode or its time is not shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import maia
from maia.events import EncryptionMode
from maia.testing import Command, publish_here

ROWS = [{"plate": "AE05 XYZ", "place": "Victoria"}]
SEEN = [("AE05 XYZ", "Victoria")]


class Broker:
    """A home whose broker publishes as it likes, and what a reader of it is shown."""

    def __init__(self, home: Command) -> None:
        """Make the home, with an owner, a camera and a reader."""
        self.command = home
        home.do("domain", "init", str(home.home))
        home.keys("pito", "camera", "reader")

    def define(self, name: str, mode: str, *limit: str) -> None:
        """Define a type that the camera may publish and the reader may read; ``limit`` is what the broker may set."""
        kind, attributes = f"pito/{name}", ("--attribute", "plate:string:1", "--attribute", "place:string:2")
        self.command.do("type", "define", f"{kind}@1", "--encryption", mode, *attributes)
        for who, action, more in (
            ("broker", "publish", limit), ("broker", "subscribe", ()), ("camera", "publish", ()),
            ("reader", "subscribe", ()),
        ):  # fmt: skip
            self.command.grant("--from", "pito", "--to", who, "--type", kind, "--action", action, *more)

    def publish(self, name: str, change: Callable[[Any], Any] | None = None, **more: Any) -> None:
        """Publish one sighting, by a plan that the broker changed."""
        home = maia.open(self.command.home).home
        publish_here(home, name, ROWS, as_="camera", at=datetime.now(UTC), honest=False, change=change, **more)

    def shown(self, name: str) -> list[tuple[Any, ...]]:
        """Read as the reader."""
        rows = maia.open(self.command.home).client("reader").read(name).select("plate", "place").collect()
        return sorted(tuple(row) for row in rows)

    def refused(self) -> dict[str, int]:
        """Count what the reader was refused, by reason, from the audit."""
        found: dict[str, int] = {}
        for row in self.command.do("audit", "--as", "reader", "--kind", "refuse")["rows"]:
            found[row["reason"]] = found.get(row["reason"], 0) + row["events"]
        return found


@pytest.fixture
def broker(spark: Any, maia_command: Command) -> Broker:
    """Give a broker that nobody watches."""
    return Broker(maia_command)


def test_a_cell_that_its_origin_may_not_set_is_null(broker: Broker) -> None:
    """The broker may set plates. It sets a place too, which readers do not see; with the right to, they would."""
    broker.define("Plates", "plain", "--attribute", "plate")
    broker.publish("Plates")
    assert broker.shown("Plates") == [("AE05 XYZ", None)]
    broker.define("Both", "plain", "--attribute", "plate", "--attribute", "place")
    broker.publish("Both")
    assert broker.shown("Both") == SEEN


@pytest.mark.threat("T48")
def test_a_parcel_of_another_type_is_refused(broker: Broker) -> None:
    """What was signed as a rumour is put where sightings lie: no reader of sightings takes it for one."""
    broker.define("Sighting", "plain")
    broker.define("Rumour", "plain")
    domain = maia.open(broker.command.home)
    rumour = domain.event_type("Rumour").type_id
    broker.publish("Sighting", lambda plan: replace(plan, sealing=replace(plan.sealing, type_id=rumour)))
    assert broker.shown("Sighting") == []
    assert broker.refused() == {"PARCEL_OTHER_TYPE": 1}
    broker.publish("Sighting")
    assert broker.shown("Sighting") == SEEN


@pytest.mark.parametrize("worse", [EncryptionMode.PLAIN, EncryptionMode.EVENT], ids=lambda mode: mode.value)
def test_a_parcel_that_is_sealed_worse_than_its_owner_wants_is_refused(broker: Broker, worse: EncryptionMode) -> None:
    """The owner says attribute by attribute; what comes in the clear, or under one key, is not taken."""
    broker.define("Sighting", "attribute")
    broker.define("Whole", "event")  # so that the broker has keys of both kinds
    broker.publish("Sighting")
    assert broker.shown("Sighting") == SEEN
    whole = maia.open(broker.command.home).event_type("Whole").type_id

    def downgrade(plan: Any) -> Any:
        return replace(plan, sealing=replace(plan.sealing, mode=worse, key_type=whole, descent=None))

    broker.publish("Whole")
    broker.publish("Sighting", downgrade)
    assert broker.shown("Sighting") == SEEN
    assert broker.refused() == {"MODE_REFUSED": 1}


@pytest.mark.threat("T41")
@pytest.mark.parametrize("mode", ["plain", "attribute"])
def test_a_stamp_from_the_future_waits(broker: Broker, mode: str) -> None:
    """Half an hour ahead it would outlive the right and the key of now; what is stamped now is shown."""
    broker.define("Sighting", mode)
    broker.publish("Sighting")
    assert broker.shown("Sighting") == SEEN
    broker.publish("Sighting", stamped=datetime.now(UTC) + timedelta(minutes=30))
    assert broker.shown("Sighting") == SEEN
    alarms = broker.command.do("audit", "--kind", "alarm")["rows"]
    assert [row["reason"] for row in alarms] == ["STAMP_AHEAD"]
