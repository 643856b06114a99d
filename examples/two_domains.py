"""Two domains over one log: of a clinic's prescriptions a pharmacy reads drug and dose, and never the diagnosis."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

import maia

MAIA = [sys.executable, "-m", "maia.cli", "-q"]
ATTRIBUTES = "--attribute drug:string:1 --attribute dose:string:2 --attribute diagnosis:string:3"
PART = "--attribute 1 --attribute 2"


def run(home: Path, command: str) -> None:
    """Run a command of `maia` in a home."""
    subprocess.run([*MAIA, *command.split(), "--home", home], check=True)


with tempfile.TemporaryDirectory() as folder:
    clinic, pharmacy = Path(folder, "clinic"), Path(folder, "pharmacy")
    for home, person in ((clinic, "doctor"), (pharmacy, "ann")):
        subprocess.run([*MAIA, "domain", "init", home, "--key"], check=True)
        run(home, f"key new {person} --no-passphrase")
        run(home, "name add brokers --from domain --to broker")  # whom the domain trusts with keys
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # What the two exchange is public: keys, type, certificates, lists, the log; and the address of the key manager.
    settings = (pharmacy / "maia.toml").read_text().replace('log = "log"', 'log = "../clinic/log"')
    (pharmacy / "maia.toml").write_text(f'{settings}\n[services]\nkey_manager = "http://127.0.0.1:{port}"\n')
    shutil.copy(pharmacy / "keys/domain.pub", clinic / "keys/pharmacy.pub")
    for name in ("clinic", "key-manager"):  # the owner of a type manages its keys, unless it names somebody else
        shutil.copy(clinic / "keys/domain.pub", pharmacy / f"keys/{name}.pub")
    run(clinic, f"type define domain/Prescription@1 {ATTRIBUTES}")
    for who in ("broker", "doctor"):
        run(clinic, f"grant --from domain --to {who} --type domain/Prescription --action publish")
    run(clinic, "name add domains --from domain --to pharmacy")  # the pharmacy may have brokers of its own
    run(clinic, f"grant --from domain --to pharmacy --type domain/Prescription --action subscribe {PART} --delegate")
    for public in ("types", "certificates"):
        shutil.copytree(clinic / public, pharmacy / public, dirs_exist_ok=True)
    shutil.copy(clinic / "statements", pharmacy / "statements")
    run(pharmacy, "grant --from domain --to broker --type * --blanket")
    run(pharmacy, f"grant --from domain --to ann --type clinic/Prescription --action subscribe {PART}")
    service = subprocess.Popen([*MAIA, "serve", "key-manager", "--home", clinic, "--port", str(port)])
    while service.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break  # it listens
    run(pharmacy, "keys join Prescription")
    service.terminate()
    time.sleep(6)  # a key is announced five seconds before it is used
    rows = pa.table({"drug": ["aspirin"], "dose": ["100 mg"], "diagnosis": ["angina"]})
    print(maia.open(clinic).client("doctor").publish(rows, "Prescription"))
    maia.open(pharmacy).client("ann").read("Prescription").show()
