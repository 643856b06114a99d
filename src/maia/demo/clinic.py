"""A hospital's first day: its own CSV files, roles by shift, a second hospital, and rights that end on live streams.

Everything is done with the commands that a person types, in two homes that share a log and nothing else. What each
reader got comes from its streaming query, which runs the whole day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import maia
from maia.demo.live import Live
from maia.demo.typed import Organisation
from maia.demo.views import Cell, SceneView, refused, seen
from maia.errors import MaiaError
from maia.spark import spark_errors, start_spark

CLINIC_POLICY = """\
laboratory(self)   <-  employed(self, 'laboratory')*
doctor(self)       <-  employed(self, 'doctor')*
nurse(self, ward)  <-  employed(self, 'nurse')* , shift(self, ward)*
laboratory(self)   |-  publish Result
doctor(self)       |-  subscribe Result
nurse(self, ward)  |-  subscribe Result(patient, test, value, ward = ward)
"""
OFFER = "researcher |- subscribe Result(ward, test, value)"
COLUMNS = ("patient", "ward", "test", "value")
FILES: Mapping[str, str] = {
    "morning": "patient,ward,test,value\nAda,A,glucose,5.4\nBen,A,sodium,140.0\nCem,B,glucose,7.9\n",
    "afternoon": "patient,ward,test,value\nDee,A,glucose,6.1\nEve,B,sodium,138.5\nFay,B,glucose,high\n",
    "night": "patient,ward,test,value\nGus,A,sodium,141.2\nHal,B,glucose,5.0\n",
}
"""What the laboratory's machine wrote; the result `high` is no number, and is refused by itself."""
READERS: Mapping[str, tuple[str, str]] = {
    "dara": ("clinic", "doctor Dara"),
    "nora": ("clinic", "nurse Nora, ward A, early shift"),
    "omar": ("clinic", "nurse Omar, ward A, late shift"),
    "ann": ("st-marys", "researcher Ann of St Mary's"),
    "bob": ("st-marys", "Bob of St Mary's, without a role"),
}
_TYPES = {"clinic": "Result", "st-marys": "clinic/Result"}
Say = Callable[[str], None]


@dataclass(slots=True)
class ClinicFacts:
    """What happened, for people and for machines.

    Attributes:
        commands: What was typed, and by whom.
        published: How many events each file brought.
        refused_rows: How many rows each code refused, over all files.
        day: For each reader and part of the day, how many events its stream brought; or why there is no stream.
        again: For each reader, what happens when it asks once more at the end: how many events, or why none.
        rows: What each reader's stream brought first.
    """

    commands: list[str] = field(default_factory=list)
    published: dict[str, int] = field(default_factory=dict)
    refused_rows: dict[str, int] = field(default_factory=dict)
    day: dict[str, dict[str, int | str]] = field(default_factory=dict)
    again: dict[str, int | str] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def views(self) -> list[SceneView]:
        """Show what four readers got first, and the day of all five."""
        found = [
            seen(READERS[who][1], COLUMNS, rows, remark=f"first seen in the {self._first(who)}")
            for who, rows in self.rows.items()
        ]
        table: list[tuple[Cell, ...]] = []
        for who, (_, title) in READERS.items():
            cells = (*self.day[who].values(), self.again[who])
            table.append((title, *(refused(cell) if isinstance(cell, str) else cell for cell in cells)))
        remark = "events on live streams: the shift changes after the morning, the agreement ends before the night"
        columns = ("reader", *FILES, "asks again")
        return [*found, SceneView(title="the day", columns=columns, rows=tuple(table), remark=remark, wide=True)]

    def _first(self, who: str) -> str:
        return next(part for part, count in self.day[who].items() if isinstance(count, int) and count)

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "commands": self.commands, "published": self.published, "refused_rows": self.refused_rows,
            "day": self.day, "asks_again": self.again, "rows": self.rows,
        }  # fmt: skip


def play_clinic(folder: Path, *, say: Say) -> ClinicFacts:
    """Play the scenario in a folder.

    Args:
        folder: An empty folder; two homes and the shared log go there.
        say: Tells the person at the terminal what is going on.
    """
    facts = ClinicFacts(day={who: {} for who in READERS})
    for part, text in FILES.items():
        (folder / f"{part}.csv").write_text(text, "utf-8")
    clinic = Organisation(folder, "clinic", told=facts.commands, say=say)
    mary = Organisation(folder, "st-marys", told=facts.commands, say=say)
    say("the clinic makes a home, a type from its own file, and a policy")
    _found(clinic, folder)
    say("St Mary's connects: one file there, one file back")
    _connect(clinic, mary, folder)
    say("starting Spark")
    start_spark(octets=0)
    day = _Day(folder, {"clinic": clinic, "st-marys": mary}, facts)
    try:
        _live_through(day, clinic, say)
    finally:
        for stream in day.streams.values():
            stream.stop()
    for who in READERS:
        facts.again[who] = day.ask(who)
    return facts


def _found(clinic: Organisation, folder: Path) -> None:
    """Begin with nothing but a CSV file."""
    clinic.do("domain", "init", str(clinic.home), "--key", "--log", str(folder / "log"))
    clinic.do("type", "from-schema", str(folder / "morning.csv"), "domain/Result@1")
    clinic.write("policy/clinic.rules", CLINIC_POLICY)
    clinic.do("policy", "apply")
    for who, profession in (("lab", "laboratory"), ("dara", "doctor"), ("nora", "nurse"), ("omar", "nurse")):
        clinic.join(who, f"employed({who}, {profession})")
    clinic.do("role", "activate", "laboratory(lab)", "--as", "lab")
    clinic.do("role", "activate", "doctor(dara)", "--as", "dara")
    clinic.do("role", "appoint", "shift(nora, A)", "--until", "+8h")
    clinic.do("role", "activate", "nurse(nora, A)", "--as", "nora")


def _connect(clinic: Organisation, mary: Organisation, folder: Path) -> None:
    """Let another hospital read some columns."""
    mary.do("domain", "init", str(mary.home), "--key", "--name", "St Mary's")
    for who in ("ann", "bob"):
        mary.do("key", "new", who, "--no-passphrase")
    peer, answer = folder / "peer.maia", folder / "answer.maia"
    invited = clinic.do("domain", "invite-peer", "--for", "St Mary's", "--give", OFFER, more=" > peer.maia")
    peer.write_text(str(invited["invitation"]), "utf-8")
    answered = mary.do("domain", "connect", str(peer), "--reader", "ann", "--yes", more=" > answer.maia")
    answer.write_text(str(answered["answer"]), "utf-8")
    clinic.do("domain", "connect", str(answer), "--yes")


def _live_through(day: _Day, clinic: Organisation, say: Say) -> None:
    facts = day.facts
    for who in ("dara", "nora", "ann"):
        day.follow(who)
    facts.day["omar"]["morning"] = str(clinic.attempt("role", "activate", "nurse(omar, A)", "--as", "omar"))
    facts.day["bob"]["morning"] = str(day.ask("bob"))
    day.publish("morning", clinic)
    say("the shift changes: Omar comes, Nora goes")
    clinic.do("role", "appoint", "shift(omar, A)", "--until", "+8h")
    clinic.do("role", "activate", "nurse(omar, A)", "--as", "omar")
    day.follow("omar")
    clinic.do("role", "revoke", "shift(nora, A)")
    facts.day["bob"]["afternoon"] = str(day.ask("bob"))
    day.publish("afternoon", clinic)
    say("the clinic ends the agreement, and asks nobody")
    clinic.do("domain", "disconnect", "St Mary's", "--yes")
    facts.day["bob"]["night"] = str(day.ask("bob"))
    day.publish("night", clinic)


@dataclass(slots=True)
class _Day:
    """The streams that run, and what they brought."""

    folder: Path
    homes: Mapping[str, Organisation]
    facts: ClinicFacts
    streams: dict[str, Live] = field(default_factory=dict)

    def follow(self, who: str) -> None:
        """Start a reader's stream."""
        place = READERS[who][0]
        with spark_errors():
            self.streams[who] = Live(self.homes[place].home, who, _TYPES[place], self.folder / "checkpoints")

    def publish(self, part: str, clinic: Organisation) -> None:
        """Let the laboratory publish a file, and every stream take what it may."""
        done = clinic.do("publish", str(self.folder / f"{part}.csv"), "--type", "Result", "--as", "lab")
        self.facts.published[part] = int(done["events"])
        for row in done["refused"]:
            self.facts.refused_rows[row["code"]] = self.facts.refused_rows.get(row["code"], 0) + int(row["rows"])
        for who, stream in self.streams.items():
            rows = sorted(stream.settle(), key=lambda row: (str(row["ward"]), str(row["test"]), str(row["value"])))
            self.facts.day[who][part] = len(rows)
            if rows and who not in self.facts.rows:
                self.facts.rows[who] = rows

    def ask(self, who: str) -> int | str:
        """Read everything as somebody: how many events, or the code of the refusal."""
        place = READERS[who][0]
        try:
            with spark_errors():
                return maia.open(self.homes[place].home).client(who).read(_TYPES[place]).count()
        except MaiaError as error:
            return error.code
