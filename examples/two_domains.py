"""Two domains over one log: of a clinic's prescriptions a pharmacy reads drug and dose, and never the diagnosis."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import maia

MAIA = [sys.executable, "-m", "maia.cli", "-q"]
ATTRIBUTES = "--attribute drug:string --attribute dose:string --attribute diagnosis:string"


def run(home: Path, command: str) -> None:
    """Run a command of `maia` in a home."""
    subprocess.run([*MAIA, *command.split(), "--home", home], check=True)


with tempfile.TemporaryDirectory() as folder:
    clinic, pharmacy, shared = Path(folder, "clinic"), Path(folder, "pharmacy"), Path(folder, "shared")
    subprocess.run([*MAIA, "domain", "init", clinic, "--key", "--log", shared], check=True)
    subprocess.run([*MAIA, "domain", "init", pharmacy, "--key"], check=True)
    run(clinic, "key new doctor --no-passphrase")
    run(pharmacy, "key new ann --no-passphrase")
    run(clinic, f"type define domain/Prescription@1 {ATTRIBUTES}")
    run(clinic, "grant --from domain --to doctor --type domain/Prescription --action publish")

    # One file goes there, one comes back; the rights and keys follow over the log.
    invitation, answer = Path(folder, "peer.maia"), Path(folder, "answer.maia")
    offered = "pharmacist |- subscribe Prescription(drug, dose)"
    maia.open(clinic).invite_peer("the pharmacy", give=offered).save(invitation)
    answer.write_text(maia.open(pharmacy).connect(invitation, readers="ann").text)
    maia.open(clinic).connect(answer)

    rows = pa.table({"drug": ["aspirin"], "dose": ["100 mg"], "diagnosis": ["angina"]})
    print(maia.open(clinic).client("doctor").publish(rows, "Prescription"))
    maia.open(pharmacy).client("ann").read("clinic/Prescription").show()
