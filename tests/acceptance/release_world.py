"""A hospital with pathology reports, and those who get something of them: homes, rules and rows for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.parquet as pq

import maia
from maia.encryption import parse_parcel
from maia.testing import Command, publish_here, read_here

TYPE = "uk.nhs.path_report"
PARTS = (
    "patient-ID", "patient-name", "hospital-ID", "lab-number", "sample-receipt-date", "path-report-text",
    "SNOMED-CT-codes",
)  # fmt: skip
REPORT = {
    "patient-ID": "1234567768", "patient-name": "Roger John Patterson", "hospital-ID": "RGT01",
    "lab-number": "A10/21367", "sample-receipt-date": date(2010, 2, 4),
    "path-report-text": "CASE HISTORY: Large solid tumour with some papillary elements",
    "SNOMED-CT-codes": "302512001",
}  # fmt: skip

STUDY = 'study("bladder-7")'
RESEARCH = """\
release uk.nhs.path_report to study("bladder-7")
  keep    hospital-ID, SNOMED-CT-codes
  coarsen sample-receipt-date to month
  add     anonymised-ID = pseudonym(patient-ID, scope = study)

release uk.nhs.path_report to study("lung-1")
  add     anonymised-ID = pseudonym(patient-ID, scope = study)

release uk.nhs.path_report to pharmacy
  keep    hospital-ID, lab-number
"""


def report(**changes: object) -> dict[str, object]:
    """Make a report like the one of the chapter, with some parts changed; `_` stands for `-`."""
    return REPORT | {name.replace("_", "-"): value for name, value in changes.items()}


class Hospital:
    """A home whose laboratory publishes reports, and whose registrar releases some of them."""

    def __init__(self, folder: Path, *more: str, options: Sequence[str] = ()) -> None:
        """Make the home, the type, the people and their rights."""
        self.maia = Command(folder)
        self.maia.do("domain", "init", str(folder), "--name", "hospital", "--key", *more)
        self.maia.keys("lab", "registrar", "chen")
        kinds = {"sample-receipt-date": "date"}
        attributes = [word for name in PARTS for word in ("--attribute", f"{name}:{kinds.get(name, 'string')}")]
        self.maia.do("type", "define", f"domain/{TYPE}@1", *attributes, *options)
        for who, action in (("broker", "publish"), ("lab", "publish"), ("registrar", "subscribe")):
            self.grant(who, action)

    def grant(self, who: str, action: str, *attributes: str, type_: str = TYPE) -> str:
        """Let the domain's key give a right."""
        chosen = [word for name in attributes for word in ("--attribute", name)]
        return self.maia.grant(
            "--from", "domain", "--to", who, "--type", f"domain/{type_}", "--action", action, *chosen
        )

    def rules(self, text: str, name: str = "research") -> None:
        """Write release rules into the home."""
        folder = self.maia.home / "policy"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.release").write_text(text, "utf-8")

    def publish(self, *rows: Mapping[str, object], type_: str = TYPE) -> int:
        """Let the laboratory publish reports."""
        return publish_here(maia.open(self.maia.home).home, type_, rows, as_="lab", at=datetime.now(UTC))

    def define(self, to: str) -> list[str]:
        """Define what is released to a destination; name the types."""
        made = self.maia.do("release", "define", "--type", TYPE, "--to", to, "--as", "registrar")
        return [str(item["type"]) for item in made["types"]]

    def apply(self, to: str, *more: str) -> list[dict]:
        """Let the registrar release what is new."""
        done = self.maia.do("release", "apply", "--type", TYPE, "--to", to, "--as", "registrar", *more)
        return list(done["releases"])

    def read(self, type_: str, *, as_: str) -> list[dict[str, object]]:
        """Read a type as a client of the hospital."""
        return read_here(maia.open(self.maia.home).home, type_, as_=as_)


def blocks(segment: Path) -> set[int]:
    """Tell how many sealed blocks the parcels of a file have."""
    return {len(parse_parcel(raw).blocks) for raw in pq.read_table(segment, partitioning=None)["parcel"].to_pylist()}
