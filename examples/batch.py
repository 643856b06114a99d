"""Batch: a laboratory publishes a table once; a doctor and a researcher read it, each with other eyes."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

import maia

ROWS = pd.DataFrame(
    {
        "patient": ["Ada", "Ben", "Cem"],
        "test": ["glucose", "sodium", "glucose"],
        "value": [5.4, 140.0, 7.9],
    }
)


def run(home: Path, command: str) -> None:
    """Run a command of `maia` in a home."""
    subprocess.run([sys.executable, "-m", "maia.cli", "-q", *command.split(), "--home", home], check=True)


with tempfile.TemporaryDirectory() as folder:
    home = Path(folder, "clinic")
    subprocess.run([sys.executable, "-m", "maia.cli", "-q", "domain", "init", home], check=True)
    for name in ("owner", "lab", "doctor", "researcher"):
        run(home, f"key new {name} --no-passphrase")
    attributes = "--attribute patient:string:1 --attribute test:string:2 --attribute value:float:3"
    run(home, f"type define owner/Result@1 {attributes}")
    for name in ("broker", "lab"):
        run(home, f"grant --from owner --to {name} --type owner/Result --action publish")
    run(home, "grant --from owner --to doctor --type owner/Result --action subscribe")
    part = "--attribute 2=glucose --attribute 3"  # no names of patients, and glucose only
    run(home, f"grant --from owner --to researcher --type owner/Result --action subscribe {part}")

    clinic = maia.open(home)
    lab = clinic.client("lab")  # proves its key; a name alone opens nothing
    print(lab.publish(ROWS, "Result", publication="monday"))
    print(lab.publish(ROWS, "Result", publication="monday"))  # the same name counts once

    for name in ("doctor", "researcher"):
        print(f"\n{name} sees")
        clinic.client(name).read("Result").orderBy("value").show()
    print(clinic.explain("Result", principal="researcher", attribute="patient"))
    clinic.audit().groupBy("kind", "subject", "code").sum("events").orderBy("kind", "subject").show()
