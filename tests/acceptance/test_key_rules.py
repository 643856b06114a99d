"""When a key changes and how long an old one serves, asked of `maia conformance`: rules 16.05, 16.06 and 16.08."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from maia.testing import Command

HOUR = 3600
FIRST = {"at": 100, "do": "refresh"}
STAYS = {"at": 100, "do": "join", "member": "n", "valid_from": 50, "valid_to": 100_000}


def member(until: int) -> dict[str, Any]:
    """Let m join at 110, on a credential from 90 to ``until``."""
    return {"at": 110, "do": "join", "member": "m", "valid_from": 90, "valid_to": until}


@pytest.fixture
def ask(maia_command: Command) -> Any:
    """Give the door: one question, one answer."""

    def answered(verb: str, **fields: Any) -> dict[str, Any]:
        ran = maia_command("conformance", stdin=json.dumps({"id": 1, "verb": verb, **fields}) + "\n")
        assert ran.code == 0
        return {name: value for name, value in json.loads(ran.out).items() if name != "id"}

    return answered


LEAVES = {
    "the credential ends first": ([member(260), {"at": 200, "do": "leave", "member": "m"}], [260]),
    "the period is over first": ([member(400), {"at": 200, "do": "leave", "member": "m"}], [300]),
    "revoked after it left": (
        [member(260), {"at": 200, "do": "leave", "member": "m"}, {"at": 210, "do": "revoke", "member": "m"}], [210]),
    "revoked while it is inside": ([member(260), {"at": 210, "do": "revoke", "member": "m"}], [210]),
    "nobody leaves": ([member(400)], [300]),
}  # fmt: skip


@pytest.mark.threat("T42")
@pytest.mark.requirement("16.05")
@pytest.mark.parametrize("changes, refreshes", LEAVES.values(), ids=LEAVES)
def test_a_leave_changes_the_key_when_the_right_or_the_period_ends(
    ask: Any, changes: list[dict[str, Any]], refreshes: list[int]
) -> None:
    """Leaves at 200: at 260 when its credential ends then, at 300 when the period does, at 210 when revoked then."""
    asked = {"timeline": [FIRST, STAYS, *changes], "period": 200, "until": 399}
    assert ask("key.refreshes", **asked) == {"result": refreshes}


@pytest.mark.requirement("16.06")
def test_no_key_is_current_for_longer_than_the_period(ask: Any) -> None:
    """Period 3600, whatever happens in between: the next refresh is at most an hour away, and no sooner without cause.

    What is stamped after it has the new key, and no event arrives for the old one once its grace is over.
    """
    joins = {"at": 1000, "do": "join", "member": "m", "valid_from": 500, "valid_to": 100_000}
    timeline, until = [FIRST, STAYS, joins], 20_000
    times = ask("key.refreshes", timeline=timeline, period=HOUR, until=until)["result"]
    assert times == [1000, 4600, 8200, 11_800, 15_400, 19_000]
    assert all(later - sooner == HOUR for sooner, later in pairwise(times))
    assert ask("key.refreshes", timeline=timeline, until=until) == {"result": [1000]}, "without a period it stays"
    chosen = {"epochs": times, "grace": 30, "skew": 5}
    assert ask("key.select", stamp=4599, arrives=4601, **chosen) == {"result": 0}
    assert ask("key.select", stamp=4600, arrives=4601, **chosen) == {"result": 1}
    refused = {"result": "refused", "reason": "KEY_RETIRED"}
    assert ask("key.select", stamp=4599, arrives=4600 + HOUR, **chosen) == refused


@pytest.mark.requirement("16.07")
def test_the_stamp_of_an_event_picks_its_key(ask: Any) -> None:
    """Keys at 100 and 200: 199 has the first, 200 the second, 99 none; and so it is with parcels that are sealed."""
    chosen = {stamp: ask("key.select", epochs=[100, 200], stamp=stamp, arrives=stamp) for stamp in (99, 100, 199, 200)}
    assert {stamp: found["result"] for stamp, found in chosen.items()} == {99: "refused", 100: 0, 199: 0, 200: 1}
    assert chosen[99]["reason"] == "NO_KEY"
    asked = {"type": VERSION, "epochs": [100, 200], "open": 0}
    for stamp, own in ((199, 0), (200, 1)):
        parcels = [{"by": "cb", "at": stamp, "events": [{"plate": "AE05 XYZ"}]}]
        for held in (0, 1):
            found = ask("parcel.open", **asked, parcels=parcels, arrives=stamp, holds={"1": [held]})
            opens = found["result"] == [{"plate": "AE05 XYZ"}]
            assert opens is (held == own), (stamp, held)


ARRIVALS = {
    "within the grace": (199, 225, 0),
    "at the last moment": (199, 230, 0),
    "after it": (199, 240, "KEY_RETIRED"),
    "of the new key": (200, 240, 1),
    "before all keys": (99, 120, "NO_KEY"),
    "from the near future": (204, 199, 1),
    "from the future": (206, 200, "STAMP_AHEAD"),
}


@pytest.mark.threat("T41")
@pytest.mark.requirement("16.08")
@pytest.mark.parametrize("stamp, arrives, expected", ARRIVALS.values(), ids=ARRIVALS)
def test_an_old_key_opens_for_its_grace_and_no_longer(ask: Any, stamp: int, arrives: int, expected: int | str) -> None:
    """Keys at 100 and 200, grace 30: an event of 199 is opened at 225, and refused at 240."""
    asked = {"epochs": [100, 200], "stamp": stamp, "arrives": arrives, "grace": 30, "skew": 5}
    wanted = {"result": expected} if isinstance(expected, int) else {"result": "refused", "reason": expected}
    assert ask("key.select", **asked) == wanted


VERSION = {
    "owner": "pito", "signer": "pito", "name": "Sighting", "version": 1,
    "attributes": [{"name": "plate", "uid": 1, "type": "string"}],
}  # fmt: skip


@pytest.mark.threat("T41")
@pytest.mark.requirement("16.08")
def test_a_real_parcel_of_an_old_key_opens_for_its_grace_and_no_longer(ask: Any) -> None:
    """The same on parcels: sealed at 199 it opens at 225 and not at 240; sealed later under the old key it never does.

    An erased key opens nothing: with the new one alone, an event of the old epoch stays closed.
    """

    def opened(at: int, arrives: int, *, holds: list[int] | None = None, epoch: int | None = None) -> Any:
        parcel = {"by": "cb", "at": at, "events": [{"plate": "AE05 XYZ"}]} | ({} if epoch is None else {"epoch": epoch})
        found = ask(
            "parcel.open", type=VERSION, epochs=[100, 200], parcels=[parcel], open=0, arrives=arrives,
            holds={"1": [0, 1] if holds is None else holds}, grace=30, skew=5,
        )  # fmt: skip
        return found.get("reason", found["result"])

    assert opened(199, 225) == [{"plate": "AE05 XYZ"}]
    assert opened(199, 240) == "KEY_RETIRED"
    assert opened(205, 206) == [{"plate": "AE05 XYZ"}]
    assert opened(205, 206, epoch=0) == "SEAL", "the stamp says which key, and the old one is not it"
    assert opened(199, 225, holds=[1]) == "NO_KEY", "erased"
