"""Rows on the other side: what a partner reads, from when on, and that it ends; two homes and a shared log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from peer_world import Peers

import maia
from maia.errors import MaiaError

pytestmark = pytest.mark.slow
SCHEMA = pa.schema([("patient", pa.string()), ("ward", pa.string()), ("value", pa.float64())])


@pytest.fixture
def world(tmp_path: Path, spark: Any) -> Peers:
    """Give the two homes."""
    return Peers(tmp_path)


def publish(world: Peers, ward: str) -> None:
    """Let the clinic's laboratory publish one result."""
    row = pa.Table.from_pylist([{"patient": "Ada", "ward": ward, "value": 5.4}], schema=SCHEMA)
    maia.open(world.clinic.home).client("lab").publish(row, "Result")


def read(world: Peers, who: str = "ann") -> list[tuple[object, ...]]:
    """List what somebody at St Mary's sees."""
    frame = maia.open(world.mary.home).client(who).read("clinic/Result")
    return sorted((row["patient"], row["ward"], row["value"]) for row in frame.collect())


def test_a_partner_reads_what_was_agreed_until_that_is_revoked(world: Peers) -> None:
    """The offered columns, from its admission on; somebody without the role sees nothing; disconnected, nobody does."""
    world.clinic.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
    world.clinic.grant("--from", "domain", "--to", "broker", "--type", "*", "--blanket")
    publish(world, "before")
    world.connect()
    publish(world, "A")
    assert read(world) == [(None, "A", 5.4)]
    with pytest.raises(MaiaError) as refused:
        read(world, "bob")
    assert refused.value.code in ("NO_EVIDENCE", "NOT_PERMITTED", "NO_CHAIN")
    world.clinic.do("domain", "disconnect", "st-marys", "--yes")
    publish(world, "after")
    with pytest.raises(MaiaError) as ended:
        read(world)
    assert ended.value.code in ("REVOKED", "CERTIFICATE_REVOKED")


def test_history_is_open_as_far_as_the_owner_grants_it(world: Peers) -> None:
    """With `--history all` the keys of earlier epochs come along, those of before there was a manager included."""
    world.clinic.grant("--from", "domain", "--to", "broker", "--type", "domain/Result", "--action", "publish")
    publish(world, "early")
    world.connect("--history", "all")
    publish(world, "late")
    assert read(world) == [(None, "early", 5.4), (None, "late", 5.4)]


@pytest.mark.requirement("12.10")
def test_a_role_of_the_other_domain_reads_what_the_table_says_and_no_more(world: Peers) -> None:
    """Pharmacy: {drug, dose}; the pharmacist asks for the diagnosis, and it is withheld; all ends with the role."""
    clinic, pharmacy = world.clinic, world.mary
    define = ("--attribute", "drug:string:1", "--attribute", "dose:string:2", "--attribute", "diagnosis:string:3")
    clinic.do("type", "define", "domain/Prescription@1", *define)
    clinic.grant("--from", "domain", "--to", "lab", "--type", "domain/Prescription", "--action", "publish")
    world.admit(world.answer(world.invite(give="pharmacist |- subscribe Prescription(drug, dose)")))
    maia.open(pharmacy.home).follow()
    (pharmacy.home / "policy" / "staff.rules").write_text("pharmacist(self) <- registered(self)*\n", "utf-8")
    pharmacy.do("policy", "apply")
    code = world.root / "code"
    code.write_text(str(pharmacy.do("domain", "invite", "ann", "--appoint", "registered(ann)")["invitation"]), "utf-8")
    joining = ("domain", "join", str(pharmacy.home), "--as", "ann", "--invitation-file", str(code))
    pharmacy.do(*joining)
    row = {"drug": "aspirin", "dose": "500 mg", "diagnosis": "migraine"}
    maia.open(clinic.home).client("lab").publish(pa.Table.from_pylist([row]), "Prescription")

    def seen() -> list[dict[str, object]]:
        return [item.asDict() for item in maia.open(pharmacy.home).client("ann").read("Prescription").collect()]

    with pytest.raises(MaiaError):
        seen()
    pharmacy.do("role", "activate", "pharmacist(ann)", "--as", "ann")
    assert seen() == [row | {"diagnosis": None}]
    pharmacy.do("role", "revoke", "registered(ann)")
    with pytest.raises(MaiaError):
        seen()
