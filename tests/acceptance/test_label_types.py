"""Of which types a label policy speaks: by owner and name, over what inherits from them, and never of nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inheritance_world import CHILD, PARENT, ROW, SEEN, make_world
from pathology_world import label
from topic_world import copied, make_exchange

import maia
from maia.errors import MaiaError
from maia.testing import Command, publish_here, read_here

SECRET = 'plate = { S = ["secret"] }\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home with a parent and a child type, and one event of the child."""
    home = make_world(tmp_path_factory.mktemp("label-types") / "home")
    opened = maia.open(home.home).home
    assert publish_here(opened, CHILD, [ROW], as_="camera", at=datetime.now(UTC)) == 1
    return home


def shown(made: Command, type_: str, client: str = "reader") -> list[dict[str, Any]]:
    """Read a type as a client."""
    return read_here(maia.open(made.home).home, type_, as_=client)


def code_of(made: Command, type_: str) -> str:
    """Give the code with which a read waits."""
    with pytest.raises(MaiaError) as raised:
        shown(made, type_)
    return raised.value.code


@pytest.mark.requirement("17.04")
def test_what_a_type_inherits_keeps_its_labels(made: Command) -> None:
    """The policy labels the parent: the child's readers do not see its attribute either, whoever owns the child."""
    label(made, f"[types.{PARENT}]\n{SECRET}")
    assert shown(made, CHILD) == [{**ROW, "plate": None}]
    assert shown(made, PARENT) == [{**SEEN, "plate": None}]
    label(made, f'[types.{PARENT}]\n{SECRET}[readers.reader]\nS = ["secret"]\n')
    assert shown(made, CHILD) == [ROW]


@pytest.mark.requirement("17.04")
def test_events_of_a_labelled_child_are_not_read_as_its_parents(made: Command) -> None:
    """The policy labels the child alone; its events are the parent's as well, and there it is as secret."""
    label(made, f'[types."met/{CHILD}"]\n{SECRET}place = {{ S = ["at(unit)"] }}\n[readers.reader]\nS = ["at(*)"]\n')
    assert shown(made, CHILD) == [{**ROW, "plate": None}]
    assert shown(made, PARENT) == [{**SEEN, "plate": None}], "a carrier that the parent lacks stands for the family"
    with pytest.raises(MaiaError, match="LABELS_CLOSE_ALL"):
        shown(made, PARENT, "parents")


def test_a_name_is_that_of_one_type(made: Command) -> None:
    """Two owners have types of one name: the policy says whose it means, and labels of one are not the other's.

    Where it does not say, it labels both: whoever defines a second type of the name closes no read, and opens none.
    """
    made.do("type", "define", "met/Note@1", "--attribute", "text:string")
    made.do("type", "define", "pito/Note@1", "--attribute", "text:string")
    for owner in ("met", "pito"):
        for who, action in (("broker", "publish"), ("camera", "publish"), ("reader", "subscribe")):
            made.grant("--from", owner, "--to", who, "--type", f"{owner}/Note", "--action", action)
        label(made, "")
        publish_here(
            maia.open(made.home).home, f"{owner}/Note", [{"text": owner}], as_="camera", at=datetime.now(UTC)
        )  # fmt: skip
    label(made, '[types."met/Note"]\ntext = { S = ["secret"] }\n')
    assert shown(made, "pito/Note") == [{"text": "pito"}]
    with pytest.raises(MaiaError, match="LABELS_CLOSE_ALL"):
        shown(made, "met/Note")
    label(made, '[types.Note]\ntext = { S = ["secret"] }\n')
    for owner in ("met", "pito"):
        assert code_of(made, f"{owner}/Note") == "LABELS_CLOSE_ALL"
    assert shown(made, PARENT) == [SEEN], "and no other type is closed by it"
    assert "`met/Note`, `pito/Note`" in made("policy", "labels").err
    label(made, '[types.Note]\ntext = { S = ["secret"] }\n[types."pito/Note"]\ntext = { S = [] }\n')
    assert shown(made, "pito/Note") == [{"text": "pito"}]
    assert code_of(made, "met/Note") == "LABELS_CLOSE_ALL"


WRONG = {
    "no such type": "[types.TestTyp1]\nplate = { S = [] }\n",
    "no such owner": f"[types.'camera/{PARENT}']\nplate = {{ S = [] }}\n",
    "no such attribute": f"[types.{PARENT}]\nplat = {{ S = [] }}\n",
    "no such carrier": f'[types.{PARENT}]\nplate = {{ S = ["at(unit)"] }}\n',
    "one type twice": f"[types.{PARENT}]\n{SECRET}[types.'pito/{PARENT}']\n{SECRET}",
}


@pytest.mark.parametrize("policy", WRONG.values(), ids=WRONG.keys())
def test_a_name_that_stands_for_nothing_closes_reads_and_is_reported(made: Command, policy: str) -> None:
    """A slip of the pen does not silently label nothing: reads wait, and the command says why."""
    label(made, policy)
    assert code_of(made, PARENT) == "LABELS_UNKNOWN"
    assert "LABELS_UNKNOWN" in made.refused("policy", "labels")[1]


def test_a_policy_that_is_a_link_to_nowhere_closes_reads(made: Command, tmp_path: Path) -> None:
    """A home without the file labels nothing; a link that leads nowhere, or a folder in its place, closes reads."""
    label(made, "")
    file = made.home / "policy" / "labels.toml"
    file.unlink()
    assert shown(made, PARENT) == [SEEN]
    try:
        file.symlink_to(tmp_path / "gone.toml")
        assert code_of(made, PARENT) == "LABELS_UNKNOWN"
        file.unlink()
        file.mkdir()
        assert code_of(made, PARENT) == "LABELS_UNKNOWN"
    finally:
        file.rmdir()


def test_a_sub_topic_has_the_labels_of_the_topics_above(tmp_path: Path) -> None:
    """The policy labels the top of a tree: what is below is closed as well."""
    exchange = copied(make_exchange(tmp_path / "made"), tmp_path)
    for who, action in (("ticker", "publish"), ("trader", "subscribe")):
        exchange.give(who, "MarketQuotes", action)
        exchange.give(who, "MarketQuotes.Nokia", action)
    assert exchange.publish("MarketQuotes.Nokia", 7) == 1
    label(exchange.command, '[types.MarketQuotes]\nprice = { S = ["secret"] }\n')
    rows = shown(exchange.command, "MarketQuotes.Nokia", "trader")
    assert [(row["price"], row["volume"]) for row in rows] == [(None, 1)]
