"""A translator client between two types, for a change that would cut clients off from each other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.testing import Command


@pytest.mark.requirement("3.13")
def test_a_translator_moves_events_once_with_equal_payload(spark: Any, maia_command: Command) -> None:
    """From T to T2 by names and by a pair, again without repeating; without a right, or between versions, refused."""
    home = maia_command
    home.do("domain", "init", str(home.home))
    home.keys("pito", "camera", "reader", "translator")
    home.do("type", "define", "pito/T@1", "--attribute", "license:string:1", "--attribute", "place:string:2")
    home.do("type", "define", "pito/T2@1", "--attribute", "numberplate:string:1", "--attribute", "place:string:2")
    rights = (
        ("broker", "T", "publish"), ("broker", "T", "subscribe"), ("broker", "T2", "publish"),
        ("broker", "T2", "subscribe"), ("camera", "T", "publish"), ("reader", "T2", "subscribe"),
        ("translator", "T", "subscribe"),
    )  # fmt: skip
    for who, kind, action in rights:
        home.grant("--from", "pito", "--to", who, "--type", f"pito/{kind}", "--action", action)
    domain = maia.open(home.home)
    rows = pa.table({"license": ["AE05 XYZ"], "place": ["Euston"]})
    domain.client("camera").publish(rows, "T")
    move = ("translate", "T", "T2", "--as", "translator", "--pair", "license=numberplate", "--pair", "place=place")
    assert home.refused(*move)[0] == 3
    home.grant("--from", "pito", "--to", "translator", "--type", "pito/T2", "--action", "publish")
    assert home.do(*move)["events"] == 1
    assert home.do(*move)["events"] == 0
    seen = domain.client("reader").read("T2").collect()
    assert [row.asDict() for row in seen] == [{"numberplate": "AE05 XYZ", "place": "Euston"}]
    assert home.refused("translate", "T", "T", "--as", "translator") == (1, "TRANSLATOR_PAIRS")
    wrong = ("--pair", "license=nothing")
    assert home.refused("translate", "T", "T2", "--as", "translator", *wrong) == (1, "NO_ATTRIBUTE")
