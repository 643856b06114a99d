"""A process that runs a domain's service and is killed at a chosen step: before or after a commit, or while telling.

    python access_control_killing.py FOLDER sweep     lives the life of a court order whole, then killed at each step
    python access_control_killing.py URL lead         leads the service until it is killed

Each life runs in a process of its own over a database of its own. What was handed out or acknowledged is said only when
the call that gave it has returned; the sweep prints it as one JSON object a life.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from domain_world import ASSIGNED, PLATE, Force, Telling
from maia import database
from maia.access_control import Application, Invitation


class Steps:
    """Counts, and ends the process without a chance to clean up."""

    def __init__(self, kill: int) -> None:
        self.count, self.kill = 0, kill

    def step(self) -> None:
        self.count += 1
        if self.count == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)


class SteppedTelling(Telling):
    """Tells nobody, and may be killed before and after it did."""

    steps: Steps

    def _hear(self, kind: str, what: object) -> None:
        self.steps.step()
        super()._hear(kind, what)
        self.steps.step()


def say(*words: object) -> None:
    """Acknowledge something to the parent."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def work(url: str, kill: int) -> None:
    """Enrol, activate, take capabilities, withdraw twice; then two join together and leave together."""
    steps, telling = Steps(kill), SteppedTelling()
    telling.steps = steps
    met = Force(url, telling=telling)

    @contextmanager
    def transaction() -> Iterator[object]:
        with database.transaction(met.engine) as connection:
            yield connection
            steps.step()
        steps.step()

    met.service = met.open(transaction=transaction)
    smith = met.track()
    say("active", PLATE)
    for item in met.service.capabilities(smith, at=met.now).certificates:
        say("handed", item.certificate_id.hex())
    for item in met.service.retract(ASSIGNED, at=met.now).certificates:
        say("revoked", item.certificate_id.hex())
    say("fallen", PLATE)
    for item in met.service.revoke(principal="smith", at=met.now).certificates:
        say("revoked", item.certificate_id.hex())
    say("gone", "smith")
    pair = {"jones": met.prove("BO"), "kay": met.prove("CCS")}
    invited = [Invitation(name=name, appointments=(f"detective({name})", f"courtOrder(c2, {name})")) for name in pair]
    codes = met.service.invite_all(invited, at=met.now)
    for name in pair:
        met.service.observe(f"caseAssignment({name}, c2)", at=met.now)
    applying = [
        Application(who=who, invitation=code, roles=(f"npTracker({name})",))
        for (name, who), code in zip(pair.items(), codes, strict=True)
    ]
    for enrolled in met.service.enrol_all(applying, at=met.now):
        say("joined", enrolled.member.name)
        for item in enrolled.handed.certificates:
            say("handed", item.certificate_id.hex())
    for item in met.service.revoke(principals=pair, at=met.now).certificates:
        say("revoked", item.certificate_id.hex())
    for name in pair:
        say("gone", name)
    say("steps", steps.count)


def lead(url: str) -> None:
    """Lead, let Smith track, and wait to be killed."""
    met = Force(url)
    leadership = database.Leadership(met.engine, "access-control")
    assert leadership.try_lead()
    met.service = met.open(transaction=leadership.transaction)
    met.track()
    met.join("jones", "BO", appointments=["detective(jones)"])
    met.service.observe("caseAssignment(jones, c1)", at=met.now)
    say("leading")
    signal.pause()


def live(url: str, kill: int) -> tuple[int, list[str]]:
    """Run one life in a child; give the signal that ended it, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.close(reading)
        try:
            work(url, kill)
        except BaseException:  # noqa: BLE001 - whatever it is, the child must end here
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read().splitlines()
    return os.waitpid(child, 0)[1], said


def sweep(folder: Path) -> None:
    """Kill at each step in turn."""
    steps = 0
    number = 0
    while number <= steps:
        ended, said = live(str(folder / f"{number}.db"), number)
        if number == 0:
            steps = int(said[-1].split()[1])
        say(json.dumps({"kill": number, "ended": ended, "said": said}))
        number += 1


if __name__ == "__main__":
    if sys.argv[2] == "lead":
        lead(sys.argv[1])
    else:
        sweep(Path(sys.argv[1]))
