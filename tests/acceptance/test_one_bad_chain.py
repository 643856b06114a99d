"""What somebody else writes about me costs me nothing: bad chains are left out, and what I hold stays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import maia
from maia.authority import Action, Verifier, ask_type, type_right
from maia.errors import DeniedError
from maia.principals import Certificate, KeySigner
from maia.testing import ATTRIBUTES, NumberplateHomes, at, grant, numberplate_homes
from maia.testing import TYPE_NAME as PLATE

NOW = at("2026-06-01")
UID = ATTRIBUTES["numberplate"].encode()


def globs(first: int) -> tuple[object, ...]:
    """Give a set of as many patterns as one right may have."""
    return (b"*", b"set", *((b"*", b"glob", b"*%d*%d*" % (first, n)) for n in range(128)))


ROWS: dict[str, object] = {
    "a pattern too many": (b"*", b"where", (UID, (*globs(1), (b"*", b"glob", b"one*more")))),
    "a row instead of a constraint": (b"row", (UID, b"x")),
    "a word instead of a constraint": b"foo",
    "a uid that is none": (b"*", b"where", (b"\xff\x00", b"x")),
    "more alternatives than a plan holds": (b"*", b"set", *((b"*", b"where", (UID, b"%d" % n)) for n in range(1001))),
    "many rights that are dear together": (b"*", b"set", *((b"*", b"where", (UID, globs(n))) for n in range(10, 22))),
}


@pytest.fixture
def homes(tmp_path: Path) -> NumberplateHomes:
    """Give homes of the number plate network."""
    return numberplate_homes(tmp_path)


def rights_of_smith(homes: NumberplateHomes) -> list[bytes]:
    """Plan a delivery for Smith; name what each of his rights says."""
    met = maia.open(homes.met)
    plan = met.deliver_plan(PLATE, client=met.prove("Smith"), commits=())
    return [clause.identity for clause in plan.subscriptions[0].clauses]


def sent_by_ccs(homes: NumberplateHomes, rows: object, *, to: str) -> Certificate:
    """Sign, as CCS, a right on number plates that nobody asked for."""
    people = homes.network.people
    tag = (b"maia-type", people["PITO"].public_key.key_id, PLATE.encode(), (b"*",), b"subscribe", (b"*",), rows)
    return grant(people["CCS"], people[to].public_key, tag)


@pytest.mark.threat("T50")
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_a_bad_right_takes_nothing_from_who_did_not_ask_for_it(homes: NumberplateHomes, rows: object) -> None:
    """Whatever a partner writes in Smith's name, the right that the Met gave him opens what it did."""
    before = rights_of_smith(homes)
    homes.add(homes.met, homes.network.certificates["Cap6"])
    homes.add(homes.met, sent_by_ccs(homes, rows, to="Smith"))
    assert set(before) <= set(rights_of_smith(homes))


@pytest.mark.threat("T50")
def test_a_thicket_of_chains_takes_nothing_from_who_did_not_ask_for_it(homes: NumberplateHomes) -> None:
    """Seven keys that all give to each other and to Smith use up their own share of the decision."""
    before = rights_of_smith(homes)
    people = homes.network.people
    everything = type_right(people["PITO"].public_key, PLATE, actions=[Action.SUBSCRIBE])
    keys = [KeySigner(bytes(31) + bytes((n,))) for n in range(1, 8)]
    pairs = [(people["CCS"], key) for key in keys] + [(a, b) for a in keys for b in keys if a is not b]
    homes.add(homes.met, homes.network.certificates["Cap6"])
    for issuer, subject in pairs:
        homes.add(homes.met, grant(issuer, subject.public_key, everything, delegate=True))
    for key in keys:
        homes.add(homes.met, grant(key, people["Smith"].public_key, everything))
    assert set(before) <= set(rights_of_smith(homes))


@pytest.mark.threat("T50")
@pytest.mark.parametrize(
    ("rows", "code"),
    [("a word instead of a constraint", "RIGHT_NOT_CELLS"), ("a pattern too many", "CLAUSE_TOO_COSTLY")],
)
def test_who_holds_only_bad_rights_is_told_why(homes: NumberplateHomes, rows: str, code: str) -> None:
    """An answer without rows never hides that rights were left out."""
    homes.add_key(homes.ccs, "spy", KeySigner(bytes(31) + b"s"))
    ccs = maia.open(homes.ccs)
    spy = ccs.prove("spy")
    tag = (
        b"maia-type", homes.network.people["PITO"].public_key.key_id, PLATE.encode(), (b"*",), b"subscribe", (b"*",),
        ROWS[rows],
    )  # fmt: skip
    homes.add(homes.ccs, grant(homes.network.people["CCS"], spy.key, tag))
    with pytest.raises(DeniedError) as refused:
        maia.open(homes.ccs).deliver_plan(PLATE, client=spy, commits=())
    assert refused.value.code == code


@pytest.mark.threat("T50")
def test_all_rights_of_a_principal_together_have_one_share_of_patterns(homes: NumberplateHomes) -> None:
    """Twelve alternatives of 128 patterns each cost as much as one: the others are left out."""
    smith = homes.network.people["Smith"].public_key
    homes.add(homes.met, homes.network.certificates["Cap6"])
    homes.add(homes.met, sent_by_ccs(homes, ROWS["many rights that are dear together"], to="Smith"))
    assert len(rights_of_smith(homes)) == 2, smith


@pytest.mark.threat("T50")
@pytest.mark.parametrize("size", [300, 1200])
def test_the_law_of_speech_draws_from_the_budget(size: int) -> None:
    """Patterns of a right times demands of the next link are steps of the decision."""
    owner, middle, last = (KeySigner(bytes(31) + bytes((n,))) for n in (1, 2, 3))
    head = (b"maia-type", owner.public_key.key_id, b"T", (b"*",), b"subscribe")
    uids = (b"*", b"set", *((b"*", b"glob", b"a%d*b" % n) for n in range(size)))
    demands = (b"*", b"where", *((b"%d" % n, b"x") for n in range(size + size // 2)))
    chain: Sequence[Certificate] = [
        grant(owner, middle.public_key, (*head, uids), delegate=True),
        grant(middle, last.public_key, (*head, (b"*",), demands)),
    ]
    decision = Verifier().decide(
        ask_type(Action.SUBSCRIBE, owner.public_key, "T", "1"), principal=last.public_key, evidence=chain, at=NOW
    )
    assert decision.reason == "LIMIT_EXCEEDED"
