"""The plaintext hunt in memory: a process that must hold no key holds no value; one that does is the control."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import hunting
import pytest
from network import Network, publish_here, sightings

HERE = Path(__file__).parent


def look_into(network: Network, target: Path, needles: list[bytes], *more: str) -> int:
    """Run a relay, and count what its memory and what it wrote hold."""
    target.mkdir()
    command = [sys.executable, str(HERE / "relay_process.py"), str(network.log.path), str(target), *more]
    # Memory that is used, and not what libraries set aside: there is less of it to search.
    sparing = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    environment = {**os.environ, **sparing, "PYTHONPATH": str(HERE)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as relay:
        assert relay.stdout is not None
        assert relay.stdin is not None
        try:
            assert relay.stdout.readline().startswith("carried")
            found = hunting.hunt_memory(relay.pid, needles)
        except PermissionError:
            pytest.skip("this system does not let a process be looked into")
        finally:
            relay.stdin.close()
    assert relay.returncode == 0
    return found + len(hunting.hunt(target, needles))


@pytest.mark.fault("F20")
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="this system shows no memory of processes")
def test_memory_of_a_relay_holds_no_value(network: Network, tmp_path: Path) -> None:
    """All that a core of the relay would hold is searched; the broker with the keys, searched alike, is found."""
    word = f"canary{secrets.token_hex(8)}"
    publish_here(network, "a", [sightings([f"{word}-{number}" for number in range(20)])])
    needles = hunting.forms(word)[:4]  # as it is, in both wide forms, and in hex
    assert look_into(network, tmp_path / "relay", needles) == 0
    assert look_into(network, tmp_path / "control", needles, str(network.ccs)) > 0
