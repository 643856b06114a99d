"""Types and topics of others beside one's own: what they must not stop, open or make costly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

import maia
from maia.domain import Domain, TypeOrTopic, Wanted, plan_parts
from maia.domain.subscriptions import DomainPlans
from maia.testing import Command

PLAIN = ("--attribute", "price:float:2", "--encryption", "plain")


@pytest.fixture
def home(tmp_path: Path) -> Command:
    """Give a home with topics of an exchange, which Ann may read."""
    command = Command(tmp_path / "home")
    command.do("domain", "init", str(command.home))
    command.keys("exchange", "other", "ann")
    command.do("topic", "define", "exchange/A", *PLAIN)
    command.do("topic", "define", "exchange/A.B")
    command.grant("--from", "exchange", "--to", "broker", "--type", "exchange/*", "--action", "publish,subscribe")
    command.do("topic", "grant", "--from", "exchange", "--to", "ann", "--topic", "exchange/A", "--action", "subscribe")
    return command


def test_a_topic_and_a_type_do_not_share_a_tree(home: Command) -> None:
    """A right on a topic and its sub-topics is on names: no type is defined below a topic, and no topic above one."""
    assert home.refused("type", "define", "exchange/A.Salaries@1", *PLAIN) == (1, "TOPIC_SHAPE")
    home.do("type", "define", "exchange/Staff.Salaries@1", *PLAIN)
    assert home.refused("topic", "define", "exchange/Staff", *PLAIN) == (1, "TOPIC_SHAPE")
    home.do("type", "define", "other/A.Salaries@1", *PLAIN)
    home.do("type", "define", "exchange/Apples@1", *PLAIN)


def test_the_topics_of_another_owner_do_not_stop_a_subscription(home: Command) -> None:
    """It is fixed to its owner when it is made; what is asked for later has to say whose it means."""
    domain = maia.open(home.home)
    asked = TypeOrTopic(topic="A.*").fixed(domain)
    home.do("topic", "define", "other/A", *PLAIN)
    home.do("topic", "define", "other/A.B")
    domain = maia.open(home.home)
    assert asked.topic == "exchange/A.*"
    assert {part.name.name for part in plan_parts(domain, asked, client=domain.prove("ann"))} == {"A.B"}
    assert asked.fixed(domain) == asked
    with pytest.raises(maia.errors.UsageError, match="TYPE_AMBIGUOUS"):
        TypeOrTopic(topic="A.*").fixed(domain)


def test_a_name_that_became_unclear_stops_one_subscription_and_not_the_job(home: Command) -> None:
    """Another owner's type has the name that one subscription goes by: that waits, and the other is planned."""
    home.do("type", "define", "exchange/S@1", *PLAIN)
    home.do("type", "define", "exchange/T@1", *PLAIN)
    for name in ("S", "T"):
        home.grant("--from", "exchange", "--to", "ann", "--type", f"exchange/{name}", "--action", "subscribe")
    home.do("type", "define", "other/S@1", *PLAIN)
    wanted = tuple(Wanted(name=name, as_="ann", type=name, where="") for name in ("S", "T"))
    domain = maia.open(home.home)
    planned = DomainPlans(domain, wanted)(None, domain.clock())
    assert planned.waits == {"S": "TYPE_AMBIGUOUS"}
    assert [item.identity for plan in planned.plans for item in plan.subscriptions] == ["T"]


def test_many_topics_are_planned_with_one_look_at_the_home(home: Command) -> None:
    """Two topics or seven: as many looks at the home's files."""
    few = looks(home)
    for number in range(5):
        home.do("topic", "define", f"exchange/A.C{number}")
    assert looks(home) == few


def looks(home: Command) -> int:
    """Count how often planning all topics below one looks at the home."""
    domain = maia.open(home.home)
    client, at = domain.prove("ann"), domain.follow()
    with counted_looks() as count:
        assert all(part.plan for part in plan_parts(domain, TypeOrTopic(topic="A"), client=client, at=at))
    return len(count)


@contextmanager
def counted_looks() -> Iterator[list[None]]:
    """Note each look at a home, which goes on as ever."""
    seen: list[None] = []
    real = Domain.known

    def known(self: Domain, **more: object) -> object:
        seen.append(None)
        return real(self, **more)  # type: ignore[arg-type]

    with patch.object(Domain, "known", known):
        yield seen
