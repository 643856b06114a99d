"""What a subscription was delivered is handed out again by the rights of now: rows, cells, labels and the key."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import maia
from maia.errors import DeniedError
from maia.testing import Command, deliver_here, publish_here, read_here

TYPE = "pito/S"
ROWS = [
    {"plate": "A", "place": "Euston", "speed": "30"},
    {"plate": "B", "place": "Victoria", "speed": "50"},
]
Rows = list[dict[str, object]]


@pytest.fixture
def home(tmp_path: Path) -> Command:
    """Give a home in which Ann's subscription `box` was delivered two rows."""
    made = Command(tmp_path / "h")
    made.do("domain", "init", str(made.home))
    made.keys("pito", "cam", "ann")
    attributes = [word for name in ("plate:1", "place:2", "speed:3") for word in ("--attribute", _text(name))]
    made.do("type", "define", f"{TYPE}@1", *attributes)
    for who, action in (("cam", "publish"), ("broker", "publish,subscribe")):
        made.grant("--from", "pito", "--to", who, "--type", TYPE, "--action", action)
    publish_here(maia.open(made.home).home, TYPE, ROWS, as_="cam", at=datetime.now(UTC))
    return made


def _text(name: str) -> str:
    return name.replace(":", ":string:")


def let(home: Command, *attributes: str) -> str:
    """Let Ann subscribe."""
    words = [word for item in attributes for word in ("--attribute", item)]
    return home.grant("--from", "pito", "--to", "ann", "--type", TYPE, "--action", "subscribe", *words)


def deliver(home: Command) -> None:
    """Keep Ann's subscription, and deliver to it."""
    home.do("deliver", "add", "box", "--as", "ann", "--type", TYPE)
    assert deliver_here(maia.open(home.home).home) == 1


def replayed(home: Command, *, last: int | None = None) -> Rows:
    """Read what Ann was delivered."""
    rows = maia.open(home.home).client("ann").delivered("box", last=last).to_pylist()
    return [{name: row[name] for name in row if not name.startswith("_")} for row in rows]


def read(home: Command) -> Rows:
    """Read the log as Ann, now."""
    return read_here(maia.open(home.home).home, TYPE, as_="ann")


def label(home: Command, text: str) -> None:
    """Give the home a label policy."""
    (home.home / "policy").mkdir(exist_ok=True)
    (home.home / "policy" / "labels.toml").write_text(text, "utf-8")


def test_rows_that_are_closed_by_now_are_not_handed_out_again(home: Command) -> None:
    """The right is narrowed to rows of Euston: the replay has what a read has, all of it and the last event."""
    wide = let(home)
    deliver(home)
    assert replayed(home) == read(home) == ROWS
    home.do("revoke", wide, "--yes")
    let(home, "plate", "place=Euston")
    euston = [{"plate": "A", "place": "Euston", "speed": None}]
    assert replayed(home) == replayed(home, last=1) == read(home) == euston
    shown = home("deliver", "show", "box", "--as", "ann", "--json").out
    assert ("Euston" in shown, "Victoria" in shown) == (True, False)


def test_a_replay_never_shows_more_than_was_delivered(home: Command) -> None:
    """A right that became wider opens no cell that was hidden when it was delivered."""
    let(home, "plate")
    deliver(home)
    let(home)
    assert read(home) == ROWS
    assert replayed(home) == [{"plate": row["plate"], "place": None, "speed": None} for row in ROWS]


def test_labels_of_now_screen_what_was_delivered_before(home: Command) -> None:
    """A place becomes clinical after the delivery: nothing of it flows to Ann any more."""
    let(home)
    deliver(home)
    label(
        home,
        '[types.S]\nplate = { S = ["clinical(place)"] }\nplace = { S = ["clinical(place)"] }\n'
        'speed = { S = ["clinical(place)"] }\n[readers.ann]\nS = ["clinical(Euston)"]\n',
    )
    assert replayed(home) == read(home) == ROWS[:1]


def test_what_a_clause_asks_about_and_does_not_show_is_asked_again(home: Command) -> None:
    """The plate flows by the place, which Ann does not see: the replay is the read, and the place stays hidden."""
    let(home, "plate", "speed")
    policy = '[types.S]\nplate = { S = ["clinical(place)"] }\n[readers.ann]\nS = ["clinical(%s)"]\n'
    label(home, policy % "Euston")
    deliver(home)
    assert replayed(home) == read(home)
    assert [(row["plate"], row["place"]) for row in replayed(home)] == [("A", None), (None, None)]
    label(home, policy % "Oxford")
    assert replayed(home) == read(home)
    assert [(row["plate"], row["place"]) for row in replayed(home)] == [(None, None), (None, None)]


def test_a_subscription_is_its_keys_and_not_its_names(home: Command) -> None:
    """Another key that is called Ann gets nothing of the former one's, ends nothing and takes no name over."""
    let(home)
    deliver(home)
    for path in (home.home / "keys").glob("ann.*"):
        path.unlink()
    home.keys("ann")
    let(home)
    assert read(home) == ROWS
    with pytest.raises(DeniedError) as refused:
        replayed(home)
    assert refused.value.code == "NOT_YOUR_SUBSCRIPTION"
    assert home.refused("deliver", "remove", "box", "--as", "ann") == (3, "NOT_YOUR_SUBSCRIPTION")
    publish_here(maia.open(home.home).home, TYPE, ROWS, as_="cam", at=datetime.now(UTC))
    deliver_here(maia.open(home.home).home)
    (listed,) = home.do("deliver", "list")["subscriptions"]
    assert listed["events"] == len(ROWS), "nothing more is delivered to a key that subscribed to nothing"


def test_a_subscription_without_a_key_is_read_by_nobody(home: Command) -> None:
    """A file from before keys were kept does not tell whose it was."""
    let(home)
    deliver(home)
    path = home.home / "subscriptions.toml"
    kept = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in kept if not line.startswith("key = ")), "utf-8")
    assert home.refused("deliver", "show", "box", "--as", "ann") == (3, "NOT_YOUR_SUBSCRIPTION")
