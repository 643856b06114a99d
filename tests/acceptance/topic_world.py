"""An exchange with topics, for the acceptance tests of them: a home, made by the command, and what is done in it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import maia
from maia.testing import Command, publish_here

TOPICS = (
    "MarketQuotes",
    "MarketQuotes.Nokia",
    "MarketQuotes.Stocks",
    "MarketQuotes.Stocks.Nokia",
    "MarketQuotes.Derivative",
    "MarketQuotes.Derivative.Nokia",
)
DENIED, NOT_PROVEN, NOT_FOUND = 3, 4, 5


class Exchange:
    """A home of an exchange: `owner` owns its topics, the broker may publish under all, others have no right yet."""

    def __init__(self, command: Command) -> None:
        """Work in a home that `make_exchange` made."""
        self.command = command
        self._last = datetime.now(UTC)

    def define(self, name: str, *more: str, owner: str = "owner") -> dict[str, Any]:
        """Define a topic, with a price and a volume where it is at the top."""
        fields = ("--attribute", "price:integer", "--attribute", "volume:integer") if "." not in name else ()
        return self.command.do("topic", "define", f"{owner}/{name}", *fields, *more)

    def give(self, who: str, topic: str, action: str, *more: str, giver: str = "owner", owner: str = "owner") -> str:
        """Give a right on a topic; return the certificate's id."""
        args = ("--from", giver, "--to", who, "--topic", f"{owner}/{topic}", "--action", action, *more)
        return str(self.command.do("topic", "grant", *args)["id"])

    def now(self) -> datetime:
        """Give an instant after the last one."""
        self._last = max(datetime.now(UTC), self._last + timedelta(milliseconds=1))
        return self._last

    def publish(self, topic: str, *prices: int, client: str = "ticker", **more: Any) -> int:
        """Publish quotes under a topic, without Spark; return how many were admitted."""
        rows = [{"price": price, "volume": 1} for price in prices]
        home = maia.open(self.command.home).home
        return publish_here(home, topic, rows, as_=client, at=self.now(), **more)

    def no_publish(self, topic: str, *, client: str = "ticker") -> str:
        """Let the command refuse to publish under a topic; return the code."""
        file = self.command.home / "nothing.csv"
        file.write_text("price\n")
        return self._refusal("publish", str(file), "--topic", topic, "--as", client)

    def no_read(self, topic: str, *more: str, client: str = "trader") -> str:
        """Let the command refuse to read a topic; return the code."""
        return self._refusal("subscribe", "--topic", topic, "--as", client, *more)

    def _refusal(self, *args: str) -> str:
        code, reason = self.command.refused(*args)
        assert code in (DENIED, NOT_FOUND)
        return reason

    def plans(self, topic: str, *, publish: str = "ticker", read: str = "") -> bool:
        """Let the library plan for a client; true unless it refuses."""
        domain = maia.open(self.command.home)
        if read:
            domain.deliver_plan(topic, client=domain.prove(read), commits=())
        else:
            domain.publish_plan(topic, client=domain.prove(publish), publication="p")
        return True

    def read(self, topic: str, *, client: str = "trader", where: str = "") -> list[tuple[str, int]]:
        """Read topics as a client."""
        frame = maia.open(self.command.home).client(client).read(topic=topic, where=where)
        return sorted((row["topic"], row["price"]) for row in frame.collect())

    def refused(self, client: str = "trader") -> dict[str, int]:
        """Count what a client was refused, by reason, from the audit."""
        found: dict[str, int] = {}
        for row in self.command.do("audit", "--as", client, "--kind", "refuse")["rows"]:
            found[row["reason"]] = found.get(row["reason"], 0) + row["events"]
        return found


def make_exchange(folder: Path) -> Path:
    """Make the home, the keys and the topics; return where it is, to be copied for each test."""
    command = Command(folder / "exchange")
    command.do("domain", "init", str(command.home), "--name", "exchange")
    command.keys("owner", "ticker", "trader", "evil")
    made = Exchange(command)
    for name in TOPICS:
        made.define(name)
    made.give("broker", "MarketQuotes", "publish", "--sub-topics")
    return command.home


def copied(home: Path, folder: Path) -> Exchange:
    """Give a copy of an exchange, for one test."""
    return Exchange(Command(Path(shutil.copytree(home, folder / "exchange"))))
