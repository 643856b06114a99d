"""Random worlds for reasoning, and what everybody is really shown in them: every key, every row, by subscribing."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product

import pyarrow as pa

from maia.conformance.certificates import key_of
from maia.conformance.scenarios import Staged, stage
from maia.errors import MaiaError
from maia.events import arrow_type, type_id
from maia.kernel import Sessions
from maia.principals import PublicKey
from maia.reasoning import World

KEYS = ("a", "b", "c", "d", "e")
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
NUMBERS = (None, -1, 0, 1, 2, 3, 4)
TEXTS = (None, "x", "y", "xy", "ya", "yx")
ROWS = [
    {uid: value for uid, value in zip(("1", "2", "3"), values, strict=True) if value is not None}
    for values in product(NUMBERS, NUMBERS, TEXTS)
]
_CONDITIONS = (
    "event['1'] > 1", "event['2'] == 3", "now.hour('UTC') == 12", "now.hour('UTC') == 13", "no such condition",
)  # fmt: skip


def scenario(seed: int, *, certificates: int = 9) -> dict[str, object]:
    """Make up a type in two versions, certificates of all kinds among few keys, and statements about some."""
    chosen = random.Random(seed)
    made: list[dict[str, object]] = []
    for number in range(chosen.randrange(2, certificates + 1)):
        issuer = "o" if number < 3 else chosen.choice(("o", *KEYS))
        if chosen.random() < 0.2:
            name = {"issuer": issuer, "name": chosen.choice("nm"), "subject": _subject(chosen, thresholds=False)}
            made.append(_stated(chosen, name))
        else:
            made.append(_stated(chosen, _grant(chosen, issuer)))
    statements = []
    if chosen.random() < 0.7:
        listed = [number for number in range(len(made)) if chosen.random() < 0.4]
        statements.append({
            "kind": "crl", "signer": "o", "from": AT.isoformat()[:10], "to": "2026-06-02", "sequence": 1,
            "certificates": listed, "received": AT.isoformat(),
        })  # fmt: skip
    return {"types": [_version("1", "1 3"), _version("2", "1 2 3")], "certificates": made, "statements": statements}


def _version(version: str, uids: str) -> dict[str, object]:
    kinds = {"1": "integer", "2": "integer", "3": "string"}
    attributes = [{"name": f"n{uid}", "uid": uid, "type": kinds[uid]} for uid in uids.split()]
    return {"owner": "o", "name": "T", "version": version, "attributes": attributes, "signer": "o", "credentials": []}


def _subject(chosen: random.Random, *, thresholds: bool = True) -> object:
    kind = chosen.random()
    if kind < 0.15:
        return {"name": [chosen.choice(("o", *KEYS)), *chosen.sample("nm", chosen.choice((1, 1, 2)))]}
    if kind < 0.3 and thresholds:
        return {"threshold": {"k": chosen.choice((1, 2, 2, 3)), "of": chosen.sample(KEYS, 3)}}
    return chosen.choice(KEYS)


def _grant(chosen: random.Random, issuer: str) -> dict[str, object]:
    right: dict[str, object] = {
        "type": ["o", chosen.choice(("T", "*", "T", "U")), chosen.choice(("*", "*", "1", "2"))],
        "actions": ["*"] if chosen.random() < 0.2 else ["subscribe"],
        "attributes": "*" if chosen.random() < 0.5 else sorted(chosen.sample(("1", "2", "3"), chosen.choice((1, 2)))),
    }
    if chosen.random() < 0.4:
        right["rows"] = [_demand(chosen) for _ in range(chosen.choice((1, 1, 2)))]
    made: dict[str, object] = {
        "issuer": issuer, "subject": _subject(chosen), "delegate": chosen.random() < 0.7, "right": right,
    }  # fmt: skip
    if chosen.random() < 0.2:
        made["conditions"] = [chosen.choice(_CONDITIONS)]
    return made


def _demand(chosen: random.Random) -> list[object]:
    uid = chosen.choice("123")
    if uid == "3":
        return [uid, chosen.choice(("=", "prefix", "contains", "suffix", ">")), chosen.choice(("x", "y", "xy"))]
    return [uid, chosen.choice(("=", "!=", "<", "<=", ">", ">=")), chosen.randrange(0, 4)]


def _stated(chosen: random.Random, made: dict[str, object]) -> dict[str, object]:
    if chosen.random() < 0.2:
        made["tests"] = [{"kind": "crl", "signer": "o"}]
    if chosen.random() < 0.1:
        made["not_after"] = "2026-05-01"
    return made


def staged_world(made: dict[str, object]) -> tuple[World, Staged]:
    """Make the certificates and types of a scenario."""
    staged = stage(made, AT)
    return World(sessions=staged.sessions, pool=staged.pool, at=AT), staged


def really_shown(staged: Staged, who: PublicKey, rows: Sequence[Mapping[str, object]] = ROWS) -> set[tuple[str, int]]:
    """Subscribe as somebody, in each version, and publish rows: which cells (uid, row) have a value then?"""
    sessions: Sessions = staged.sessions
    place = type_id(key("o"), "T")
    kinds = sessions.kinds(place)
    columns = {
        uid: pa.array([row.get(uid) for row in rows], type=arrow_type(kind)) for uid, kind in kinds.items()
    }  # fmt: skip
    batch = pa.RecordBatch.from_pydict(columns)
    found: set[tuple[str, int]] = set()
    for version in ("1", "2"):
        try:
            sessions.subscribe("s", who, place, version, "", staged.pool, at=AT)
        except MaiaError:
            continue  # refused, for whatever reason
        event_type = sessions.event_type(place, version, at=AT)
        uids = {item.name: str(item.uid) for item in event_type.attributes}
        for delivery in sessions.plan(place, staged.pool, at=AT).deliver(batch):
            for number, row in zip(delivery.rows.tolist(), delivery.batch.to_pylist(), strict=True):
                found.update((uids[name], number) for name, value in row.items() if value is not None)
        sessions.unsubscribe("s")
    return found


def key(name: str) -> PublicKey:
    """Give the key that conformance uses for a name."""
    return key_of(name)


__all__ = ["AT", "KEYS", "ROWS", "key", "really_shown", "scenario", "staged_world"]
