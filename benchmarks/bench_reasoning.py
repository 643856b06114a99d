"""What questions about everybody cost: who reads a cell, everybody's rights, what ends with a certificate.

    python benchmarks/bench_reasoning.py [--certificates 10000] [--attributes 25] [--ends 20] [--output FOLDER]

Writes ``reasoning.md`` into the output folder, docs/reference/benchmarks by default. The world is a random tree of
delegation: a twentieth of the certificates are the owner's, the others pass attributes on among a third as many keys.
Beside each answer stands what a user would do instead: the decision for every key, one by one.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from maia.authority import Action, CertificatePool, Verifier, type_right, verify_event_type
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.kernel import Sessions
from maia.principals import Authorisation, KeySigner, Period, issue
from maia.reasoning import Cell, World, ends, matrix, who_can

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
AIMS = {"loaded": 1.0, "cold": 10.0, "matrix": 2.0, "ends": 2.0}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Measured:
    """Processor time in seconds, and how large the answers were."""

    loading: float
    cold: float
    loaded: float
    naive: float
    matrix: float
    ends: float
    principals: int
    readers: int
    cells: int
    ended: int


def made_up(certificates: int, attributes: int) -> tuple[list[bytes], list[KeySigner], EventType, KeySigner]:
    """Make certificates that pass attributes of one type on."""
    chosen = random.Random(7)
    owner, *keys = (KeySigner(number.to_bytes(32, "big")) for number in range(1, certificates // 3 + 2))
    name = TypeName(owner.public_key, "Numberplate", parse_version("1"))
    event_type = EventType(
        name=name, attributes=tuple(attribute(f"a{uid}", uid, "string") for uid in range(1, attributes + 1))
    )
    uids = [str(item.uid) for item in event_type.attributes]
    made = []
    for number in range(certificates):
        if chosen.random() < 0.05:
            giver, taker, delegate = owner, keys[chosen.randrange(max(1, len(keys) // 10))], True
        else:
            place = chosen.randrange(len(keys) // 2)
            giver, taker = keys[place], keys[chosen.randrange(place, len(keys))]
            delegate = chosen.random() < 0.6
        some = chosen.sample(uids, chosen.randint(1, len(uids)))
        tag = type_right(owner.public_key, name.name, "1", actions=[Action.SUBSCRIBE], attributes=some).to_sexp()
        body = Authorisation(
            issuer=giver.public_key, subject=taker.public_key, delegate=delegate, tag=tag,
            period=Period(None, END + timedelta(seconds=number)),
        )  # fmt: skip
        made.append(issue(body, giver).raw)
    return made, keys, event_type, owner


def timed(work: Callable[[], _T]) -> tuple[float, _T]:
    """Give the processor time of some work, and what it gave."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def measure(certificates: int, attributes: int, tried: int) -> Measured:
    """Ask everything once."""
    raws, keys, event_type, owner = made_up(certificates, attributes)
    sessions = Sessions(Verifier())
    sessions.install(verify_event_type(sign_event_type(event_type, owner), verifier=sessions.verifier, at=NOW))
    loading, pool = timed(lambda: CertificatePool(raws))
    world = World(sessions=sessions, pool=pool, at=NOW)
    cell = Cell(type_id=event_type.type_id, uid="1")
    cold, _ = timed(lambda: who_can(world, cell))
    fresh = World(sessions=Sessions(sessions.verifier), pool=pool, at=NOW)
    fresh.sessions.install(verify_event_type(sign_event_type(event_type, owner), verifier=sessions.verifier, at=NOW))
    loaded, answer = timed(lambda: who_can(fresh, cell))
    sample = random.Random(1).sample(keys, min(50, len(keys)))
    apart = Sessions(sessions.verifier)
    naive, _ = timed(lambda: [
        apart.clauses(one.public_key, Action.SUBSCRIBE, event_type, pool, at=NOW) for one in sample
    ])  # fmt: skip
    whole, table = timed(lambda: matrix(world, event_type.type_id))
    identities = random.Random(2).sample([one.certificate_id for one in pool], min(tried, len(pool)))
    spent, gone = timed(lambda: [ends(world, [identity]) for identity in identities])
    return Measured(
        loading=loading, cold=loading + cold, loaded=loaded, naive=naive / len(sample) * len(keys), matrix=whole,
        ends=spent / len(identities), principals=len(keys), readers=len(answer.holders),
        cells=sum(len(uids) for rights in table.rights.values() for uids in rights.values()),
        ended=sum(len(one.ended) for one in gone),
    )  # fmt: skip


def page(certificates: int, attributes: int, tried: int, found: Measured, load: float) -> str:
    """Write the page."""

    def verdict(seconds: float, aim: float) -> str:
        return f"{aim:g} s, {'kept' if seconds <= aim else '**missed**'}"

    every = found.ends * certificates
    rows = (
        (f"who reads one cell, all read and verified ({found.readers:,} readers)", found.loaded, AIMS["loaded"]),
        ("the same from octets, signatures included", found.cold, AIMS["cold"]),
        (f"instead: a decision for every key, from {min(50, found.principals)} of them", found.naive, None),
        (f"everybody's rights on all attributes ({found.cells:,} cells)", found.matrix, AIMS["matrix"]),
        (f"what one certificate ends, mean of {tried} ({found.ended:,} rights ended)", found.ends, None),
        ("what every certificate ends, one by one, by that mean", every, AIMS["ends"]),
    )
    table = "\n".join(
        f"| {what} | {seconds:,.2f} | {'' if aim is None else verdict(seconds, aim)} |" for what, seconds, aim in rows
    )
    return f"""# Benchmark: questions about everybody

Written by `benchmarks/bench_reasoning.py`; run it again to renew it.

{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, load {load:.1f} when it began.
Processor time, each asked once. {certificates:,} certificates, {found.principals:,} principals, {attributes} attributes
of one type. Every answer is made of the broker's own decisions, one for each principal that some chain leads to
([decision 0042](../../adr/0042-reasoning-asks-the-decisions.md)).

| question | seconds | aim |
|---|---:|---|
{table}
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--certificates", type=int, default=10_000)
    parser.add_argument("--attributes", type=int, default=25)
    parser.add_argument("--ends", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("docs/reference/benchmarks"))
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    found = measure(asked.certificates, asked.attributes, asked.ends)
    asked.output.mkdir(parents=True, exist_ok=True)
    written = page(asked.certificates, asked.attributes, asked.ends, found, load)
    (asked.output / "reasoning.md").write_text(written, "utf-8")


if __name__ == "__main__":
    main()
