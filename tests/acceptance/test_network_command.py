"""`maia network` with a clinic and its courier: what is refused, who stays down, and that nobody is left behind."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from network_world import lives, network_up
from processes import free_port

from maia.testing import Command

FILE = '[domains.clinic]\nlog = {port}\n[domains.courier]\n[[links]]\nfrom = "clinic"\nto = "courier"\nevery = 0.2\n'


def until(true: Callable[[], object]) -> None:
    """Wait; the test's own limit of time ends an endless wait."""
    while not true():
        time.sleep(0.2)


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Make the two homes and the file; the clinic gave the courier no right yet."""
    clinic, courier = Command(tmp_path / "clinic"), Command(tmp_path / "courier")
    clinic.do("domain", "init", str(clinic.home), "--name", "clinic", "--network", "domain/Wards", "--key")
    courier.do("domain", "init", str(courier.home), "--name", "courier", "--network", "clinic/Wards")
    shutil.copy(clinic.home / "keys" / "domain.pub", courier.home / "keys" / "clinic.pub")
    shutil.copy(courier.home / "keys" / "broker.pub", clinic.home / "keys" / "courier.pub")
    clinic.grant("--from", "domain", "--to", "broker", "--network", "domain/Wards", "--action", "connect")
    file = tmp_path / "lab.toml"
    file.write_text(FILE.format(port=free_port()), "utf-8")
    return file


def let_connect(lab: Path) -> None:
    """Let the courier's broker connect."""
    clinic = Command(lab.parent / "clinic")
    clinic.grant("--from", "domain", "--to", "courier", "--network", "domain/Wards", "--action", "connect")


@pytest.mark.slow
def test_a_network_gives_nobody_a_right(lab: Path) -> None:
    """The courier may not connect: its link is refused by the clinic, stays down after its bound, and is named."""
    with network_up(lab, "--restarts", "1", well=False) as running:
        until(lambda: any(item.get("change") == "failed" for item in running.said))
        [failed] = [item for item in running.said if item.get("change") == "failed"]
        assert (failed["domain"], failed["part"]) == ("courier", "link clinic")
        assert (failed["exit"], failed["restarts"]) == (3, 1)
        assert "[DENIED]" in failed["said"]
        found = Command(lab.parent)("network", "status", str(lab), "--json")
        assert (found.code, found.data["links"][0]["error"], found.data["links"][0]["records"]) == (1, "DENIED", 0)
        assert found.data["links"][0]["lag"] > 0
        assert running.end() == 1
        assert running.said[-1]["failed"] == ["courier link clinic"]
    assert not list((lab.parent / "courier" / "log").rglob("*.record"))


@pytest.mark.slow
def test_one_process_runs_a_network_and_its_death_ends_the_others(lab: Path) -> None:
    """A second `up` is refused. Killed with -9 it leaves nobody behind, and the next one goes on; Ctrl-C ends all."""
    let_connect(lab)
    command = Command(lab.parent)

    def pids() -> list[int]:
        found = command("network", "status", str(lab), "--json").data
        return [part["pid"] for domain in found["domains"] for part in domain["parts"] if part["pid"]]

    with network_up(lab) as running:
        assert command.refused("network", "up", str(lab)) == (2, "NETWORK_RUNS")
        children = pids()
        assert len(children) == 2
        running.end(signal.SIGKILL)
    until(lambda: not any(map(lives, children)))
    assert command("network", "status", str(lab), "--json").code == 1
    with network_up(lab) as running:
        until(lambda: not command("network", "status", str(lab), "--json").data["links"][0]["lag"])
        children = pids()
        assert running.end() == 0
        assert running.said[-1]["change"] == "over"
        assert (running.said[-1]["ended"], running.said[-1]["killed"], running.said[-1]["behind"]) == (2, [], {})
    assert not any(map(lives, children))


WRONG = {
    "no domain": "",
    "not TOML": "[domains",
    "a name that is a path": '[domains."../x"]\n',
    "a word that is none": "[domains.clinic]\ngatway = 5\n",
    "no port": "[domains.clinic]\nlog = 0\n",
    "a port twice": "[domains.clinic]\nlog = 5000\ngateway = 5000\n",
    "a home twice": '[domains.clinic]\n[domains.other]\nhome = "clinic"\n',
    "half of TLS": '[domains.clinic]\nlog = 5000\ntls-cert = "c.pem"\n',
    "a link to nobody": '[domains.clinic]\nlog = 5000\n[[links]]\nfrom = "clinic"\nto = "nobody"\n',
    "a link to itself": '[domains.clinic]\nlog = 5000\n[[links]]\nfrom = "clinic"\nto = "clinic"\n',
    "a link from who serves nothing": FILE.format(port=5000).replace("log = 5000", ""),
    "a link twice": FILE.format(port=5000) + '[[links]]\nfrom = "clinic"\nto = "courier"\n',
    "too often": FILE.format(port=5000).replace("0.2", "0.001"),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_file_that_describes_no_network_is_refused(tmp_path: Path, text: str) -> None:
    """Nothing is started, whatever is wrong."""
    file = tmp_path / "lab.toml"
    file.write_text(text, "utf-8")
    for verb in ("up", "status", "graph"):
        assert Command(tmp_path).refused("network", verb, str(file))[1] == "NETWORK_FILE"


def test_homes_are_made_before(tmp_path: Path) -> None:
    """A domain without a home starts nothing; a file that is not there is not found."""
    file = tmp_path / "lab.toml"
    assert Command(tmp_path).refused("network", "up", str(file)) == (5, "NO_SUCH_FILE")
    file.write_text("[domains.clinic]\nlog = 5000\n", "utf-8")
    assert Command(tmp_path).refused("network", "up", str(file)) == (5, "NO_HOME")


@pytest.mark.parametrize("kept", ["a link elsewhere", "a link with another key", "another key of that name"])
def test_what_a_home_has_is_not_replaced(lab: Path, kept: str) -> None:
    """Whom a home believes to be its neighbour stays as it was told; the file does not change it."""
    courier = Command(lab.parent / "courier")
    port = lab.read_text("utf-8").split("log = ")[1].splitlines()[0]
    if kept == "a link elsewhere":
        shutil.copy(lab.parent / "clinic" / "keys" / "broker.pub", courier.home / "keys" / "its-broker.pub")
        courier.do("link", "add", "clinic", "http://127.0.0.1:1", "--key", "its-broker")
    elif kept == "a link with another key":
        courier.do("link", "add", "clinic", f"http://127.0.0.1:{port}", "--key", "clinic")
    else:
        shutil.copy(courier.home / "keys" / "broker.pub", courier.home / "keys" / "clinic-broker.pub")
    before = {path: path.read_bytes() for path in courier.home.rglob("*") if path.is_file() and "links" in path.parts}
    assert Command(lab.parent).refused("network", "up", str(lab), "--seconds", "0") == (2, "NETWORK_LINK")
    after = {path: path.read_bytes() for path in courier.home.rglob("*") if path.is_file() and "links" in path.parts}
    assert after == before
