"""Tickets of labelled reads: for one key, type and filter, by one broker, for a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maia.domain import FrameLabels, TypeOrTopic, check_labelled_read
from maia.domain.labelled_reads import TICKET_AGE, sign_labelled_read
from maia.errors import DeniedError
from maia.home import Home
from maia.testing import Command

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
LABELS = FrameLabels(policy="ab" * 32, tags=frozenset({"clinical(1)", "é"}))
ASKED = TypeOrTopic(type="met/Report", version="1")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Home]:
    """Make two homes, each with the clients ali and bob."""
    made = []
    for name in ("one", "two"):
        command = Command(tmp_path_factory.mktemp(name) / "home")
        command.do("domain", "init", str(command.home), "--key")
        command.keys("ali", "bob")
        made.append(Home.open(command.home))
    return made[0], made[1]


def test_a_ticket_says_by_what_its_frame_is_labelled_for_a_day(homes: tuple[Home, Home]) -> None:
    """What was signed is read back, until its time is over."""
    home = homes[0]
    made = sign_labelled_read(home, home.key("ali"), ASKED, "a = 1", LABELS, at=NOW)
    for at in (NOW, NOW + TICKET_AGE):
        assert check_labelled_read(home, made.ticket, "ali", ASKED, "a = 1", at=at) == LABELS
    with pytest.raises(DeniedError, match="LABELLED_READ"):
        check_labelled_read(home, made.ticket, "ali", ASKED, "a = 1", at=NOW + TICKET_AGE + timedelta(seconds=1))


OTHERS = {
    "another client": ("bob", ASKED, "a = 1"),
    "another type": ("ali", TypeOrTopic(type="met/Other", version="1"), "a = 1"),
    "another version": ("ali", TypeOrTopic(type="met/Report", version="2"), "a = 1"),
    "a topic": ("ali", TypeOrTopic(topic="met/Report"), "a = 1"),
    "another filter": ("ali", ASKED, ""),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_ticket_is_for_one_read(homes: tuple[Home, Home], other: tuple[str, TypeOrTopic, str]) -> None:
    """Whatever else is read with it is refused."""
    home, (name, asked, where) = homes[0], other
    made = sign_labelled_read(home, home.key("ali"), ASKED, "a = 1", LABELS, at=NOW)
    with pytest.raises(DeniedError, match="LABELLED_READ"):
        check_labelled_read(home, made.ticket, name, asked, where, at=NOW)


def test_a_ticket_is_its_own_brokers(homes: tuple[Home, Home]) -> None:
    """Another broker's signature opens nothing, also for the very same key."""
    one, two = homes
    made = sign_labelled_read(two, one.key("ali"), ASKED, "", LABELS, at=NOW)
    with pytest.raises(DeniedError, match="LABELLED_READ"):
        check_labelled_read(one, made.ticket, "ali", ASKED, "", at=NOW)


@settings(max_examples=60)
@given(text=st.text(), place=st.integers(0, 10_000), octet=st.characters(codec="ascii"))
def test_whatever_stands_in_its_place_is_refused(homes: tuple[Home, Home], text: str, place: int, octet: str) -> None:
    """Any text, and a ticket with one character changed, that does not decode to the very same, is a denial."""
    home = homes[0]
    made = sign_labelled_read(home, home.key("ali"), ASKED, "", LABELS, at=NOW).ticket
    changed = made[: (at := place % len(made))] + octet + made[at + 1 :]
    for wrong in (text, changed):
        # the last character before the padding has bits that no octet is made of
        if wrong.rstrip("=")[:-1] != made.rstrip("=")[:-1]:
            with pytest.raises(DeniedError, match="LABELLED_READ"):
                check_labelled_read(home, wrong, "ali", ASKED, "", at=NOW)
