"""A hospital that labels its pathology reports: the seven parts of the seed, its readers, sinks and components."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import maia
from maia.testing import Command

REPORT, COMMENT, COUNT = "uk.nhs.path_report", "uk.nhs.comment", "uk.nhs.count"
PARTS = (
    "patient-ID", "patient-name", "hospital-ID", "lab-number", "sample-receipt-date", "path-report-text",
    "SNOMED-CT-codes",
)  # fmt: skip
PATTERSON, SMITH = "1234567768", "9876543210"
ROWS = [
    (PATTERSON, "Roger John Patterson", "RGT01", "A10/21367", "2010-02-04", "Large solid tumour", "302512001"),
    (SMITH, "Jane Smith", "RGT01", "A10/21368", "2010-02-05", "No abnormality", "302513006"),
    ("5555555555", "Ann Other", "RGT02", "A10/21369", "2010-02-06", "Papillary elements", "302512001"),
]
LABELS = f"""
[types."{REPORT}"]
patient-ID = {{ S = ["identifiable"] }}
patient-name = {{ S = ["identifiable"] }}
lab-number = {{ I = ["pathlab"] }}
sample-receipt-date = {{ I = ["pathlab"] }}
path-report-text = {{ S = ["clinical(patient-ID)"], I = ["pathlab"] }}
SNOMED-CT-codes = {{ S = ["clinical(patient-ID)"], I = ["pathlab"] }}

[types."{COMMENT}"]
patient-ID = {{ S = ["identifiable"] }}
comment = {{ S = ["clinical(patient-ID)"] }}

[readers.ali]
S = ["identifiable", "clinical({PATTERSON})"]

[readers.both]
S = ["identifiable", "clinical({PATTERSON})", "clinical({SMITH})"]

[readers.chen]
S = ["clinical(*)"]

[readers.strict]
S = ["identifiable", "clinical(*)"]
I = ["pathlab"]

[readers.monitor]
frames = ["clinical(*)"]

[components.counter]
does = "count"
declassify = ["clinical(*)"]
clients = ["monitor"]

[components.bridge]
does = "pass"
declassify = ["identifiable"]
clients = ["ali"]
"""
READERS = ("ali", "brown", "chen", "both", "strict", "monitor", "nobody")


def hospital(home: Path) -> Command:
    """Make the home, its types, rights and labels; everybody may read every attribute, so labels alone decide."""
    made = Command(home)
    made.do("domain", "init", str(home), "--key")
    made.keys("lab", *READERS)
    define(made, REPORT, PARTS)
    define(made, COMMENT, ("patient-ID", "comment"))
    define(made, COUNT, ("hospital-ID", "SNOMED-CT-codes"), ("count",))
    label(made, LABELS)
    return made


def define(made: Command, name: str, texts: tuple[str, ...], numbers: tuple[str, ...] = ()) -> None:
    """Define a type, and let everybody read and publish it."""
    kinds = [f"{item}:string" for item in texts] + [f"{item}:integer" for item in numbers]
    made.do("type", "define", f"domain/{name}@1", *(flag for kind in kinds for flag in ("--attribute", kind)))
    for who in ("broker", "lab", *READERS):
        made.grant("--from", "domain", "--to", who, "--type", f"domain/{name}", "--action", "publish,subscribe")


def label(made: Command, policy: str) -> None:
    """Put a label policy in force."""
    folder = made.home / "policy"
    folder.mkdir(exist_ok=True)
    (folder / "labels.toml").write_text(policy, "utf-8")


def publish_reports(made: Command) -> None:
    """Let the laboratory publish three reports."""
    table = pa.table({name: [row[index] for row in ROWS] for index, name in enumerate(PARTS)})
    done: Any = maia.open(made.home).client("lab").publish(table, REPORT, publication="reports")
    assert done.events == len(ROWS)
