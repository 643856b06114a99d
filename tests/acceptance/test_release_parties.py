"""Releases and others: agreements keep to the rules, what goes direct stays, receivers apply their own rights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from release_world import REPORT, RESEARCH, STUDY, TYPE, Hospital, blocks

import maia
from maia.errors import DeniedError, MaiaError
from maia.testing import Command, read_here

# ---------------------------------------------------------------- agreements


@pytest.mark.requirement("20.06")
def test_the_stricter_of_rule_and_right_wins_and_what_left_is_listed(tmp_path: Path) -> None:
    """An agreement gives no more than the rules keep whole; a reader's right gives no more than it opens."""
    hospital = Hospital(tmp_path / "home")
    hospital.publish(*[REPORT] * 3)
    hospital.rules(f"release {TYPE} to pharmacy keep hospital-ID, SNOMED-CT-codes coarsen sample-receipt-date to year")
    invite = ("domain", "invite-peer", "--for", "pharmacy", "--give")
    domain = maia.open(hospital.maia.home)
    given = domain.invite_peer("pharmacy", give=f"pharmacist |- subscribe {TYPE}(hospital-ID, path-report-text)")
    assert [row.words for row in given.invitation.rows] == [f"subscribe {TYPE}(hospital-ID)"]
    whole = domain.invite_peer("pharmacy", give=f"pharmacist |- subscribe {TYPE}")
    assert [row.words for row in whole.invitation.rows] == [f"subscribe {TYPE}(SNOMED-CT-codes, hospital-ID)"]
    refused = f"pharmacist |- subscribe {TYPE}(path-report-text, sample-receipt-date)"
    assert hospital.maia.refused(*invite, refused) == (3, "RELEASE_FORBIDS")
    # A demand on what stays would choose rows by it.
    choosing = f"pharmacist |- subscribe {TYPE}(hospital-ID, patient-ID = '999')"
    assert hospital.maia.refused(*invite, choosing) == (3, "RELEASE_FORBIDS")
    other = ("domain", "invite-peer", "--for", "gp", "--give", f"doctor |- subscribe {TYPE}(hospital-ID)")
    assert hospital.maia.refused(*other) == (3, "RELEASE_FORBIDS")
    # The other way round: the rules keep the codes, and the right of whoever releases does not open them.
    hospital.maia.keys("clerk")
    hospital.grant("clerk", "subscribe", "hospital-ID", "sample-receipt-date")
    out = hospital.maia.home / "out.jsonl"
    said = ("release", "apply", "--type", TYPE, "--to", "pharmacy", "--as", "clerk", "--out", str(out))
    (done,) = hospital.maia.do(*said)["releases"]
    assert done["withheld"] == ["SNOMED-CT-codes"]
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert rows == [{"hospital-ID": "RGT01", "SNOMED-CT-codes": None, "sample-receipt-date": "2010"}] * 3
    (listed,) = hospital.maia.do("release", "list", "--to", "pharmacy")["releases"]
    assert (listed["to"], listed["type"], listed["rows"]) == ("pharmacy", f"domain/{TYPE}@1", 3)
    assert listed["attributes"] == ["hospital-ID", "SNOMED-CT-codes", "sample-receipt-date"]
    (row,) = hospital.maia.do("audit", "--kind", "release")["rows"]
    assert (row["subject"], row["source"], row["events"], row["attributes"], row["closed"]) == (
        "clerk", "pharmacy", 3, listed["attributes"], ["SNOMED-CT-codes"]
    )  # fmt: skip


# ---------------------------------------------------------------- what has to stay secret for a life


@pytest.mark.requirement("20.07")
def test_data_with_lifelong_confidentiality_is_not_shipped_even_sealed(tmp_path: Path) -> None:
    """What goes direct is not put where others read, is given to nobody, and leaves by a release to a file alone."""
    shared = Hospital(tmp_path / "shared", "--log", str(tmp_path / "log"), options=("--release", "direct"))
    with pytest.raises(DeniedError, match="DIRECT_SHARED"):
        shared.publish(REPORT)
    assert not list((tmp_path / "log").rglob("*.parquet"))
    own = Hospital(tmp_path / "own", options=("--release", "direct"))
    own.rules(f"release {TYPE} to pharmacy keep hospital-ID")
    own.maia.do("type", "define", "domain/Ward@1", "--attribute", "ward:string")
    invite = ("domain", "invite-peer", "--for", "pharmacy", "--give")
    assert own.maia.refused(*invite, f"pharmacist |- subscribe {TYPE}(hospital-ID)") == (3, "DIRECT_SHARED")
    assert own.publish(REPORT) == 1
    # The log holds it now, so nobody is invited to that log, whatever for.
    assert own.maia.refused(*invite, "pharmacist |- subscribe Ward(ward)") == (3, "DIRECT_SHARED")
    (type_,) = own.define("pharmacy")
    assert maia.open(own.maia.home).event_type(type_).options.release == "direct"
    out = tmp_path / "out.jsonl"
    own.apply("pharmacy", "--out", str(out))
    assert json.loads(out.read_text("utf-8")) == {"hospital-ID": "RGT01"}
    # Once others read the log, nothing more of it is put there.
    other = Hospital(tmp_path / "other", options=("--release", "direct"))
    other.maia.do("type", "define", "domain/Ward@1", "--attribute", "ward:string")
    other.maia.do(*invite, "pharmacist |- subscribe Ward(ward)")
    with pytest.raises(DeniedError, match="DIRECT_SHARED"):
        other.publish(REPORT)


@pytest.mark.requirement("20.07")
def test_short_lived_data_takes_the_shared_log_sealed_attribute_by_attribute(tmp_path: Path) -> None:
    """What is not said to go direct is there for all who share the log, each attribute under its own key."""
    hospital = Hospital(tmp_path / "home", "--log", str(tmp_path / "log"))
    assert hospital.publish(REPORT) == 1
    (segment,) = (tmp_path / "log").rglob("*.parquet")
    assert blocks(segment) == {7}
    assert b"Patterson" not in segment.read_bytes()


# ---------------------------------------------------------------- the other side


@pytest.mark.requirement("20.05")
def test_the_receiving_broker_applies_its_own_rights_again(tmp_path: Path) -> None:
    """What the registry legally received is null for its clerk, and closed to its visitor."""
    hospital = Hospital(tmp_path / "hospital", "--log", str(tmp_path / "log"))
    hospital.rules(RESEARCH)
    (type_,) = hospital.define(STUDY)
    name = f"{TYPE}.study.bladder-7"
    registry = Command(tmp_path / "registry")
    registry.do("domain", "init", str(registry.home), "--name", "registry", "--key")
    registry.keys("chen", "clerk", "visitor")
    given = f"researcher |- subscribe {name}(hospital-ID, anonymised-ID)"
    made = hospital.maia.do("domain", "invite-peer", "--for", "registry", "--give", given)
    (tmp_path / "invitation").write_text(str(made["invitation"]), "utf-8")
    answer = registry.do("domain", "connect", str(tmp_path / "invitation"), "--yes", "--reader", "chen")
    (tmp_path / "answer").write_text(str(answer["answer"]), "utf-8")
    hospital.maia.do("domain", "connect", str(tmp_path / "answer"), "--yes")
    hospital.publish(REPORT)
    assert [done["rows"] for done in hospital.apply(STUDY)] == [1]
    here = maia.open(registry.home)
    here.follow()
    assert {group.label for group in here.home.keyring().groups()} == uids(
        hospital, type_, "hospital-ID", "anonymised-ID"
    )
    (seen,) = read_here(here.home, name, as_="chen")
    assert (seen["hospital-ID"], seen["SNOMED-CT-codes"], len(str(seen["anonymised-ID"]))) == ("RGT01", None, 32)
    # The clerk gets a part of it from the hospital; the broker could open more, and does not.
    hospital.maia.do("key", "import", "clerk", str(registry.home / "keys" / "clerk.pub"))
    file = hospital.maia.do(
        "grant", "--from", "domain", "--to", "clerk", "--type", f"domain/{name}", "--action", "subscribe",
        "--attribute", "hospital-ID", "--irrevocable", "--yes",
    )["file"]  # fmt: skip
    shutil.copy(file, registry.home / "certificates")
    for who in ("clerk", "visitor"):
        registry.do("name", "add", "clients", "--from", "domain", "--to", who)
    (less,) = read_here(here.home, name, as_="clerk")
    assert (less["hospital-ID"], less["anonymised-ID"]) == ("RGT01", None)
    with pytest.raises(MaiaError, match="NO_EVIDENCE"):
        read_here(here.home, name, as_="visitor")


def uids(hospital: Hospital, type_: str, *names: str) -> set[bytes]:
    """Give the uids of attributes."""
    known = {item.name: item.uid for item in maia.open(hospital.maia.home).event_type(type_).attributes}
    return {known[name].encode() for name in names}
