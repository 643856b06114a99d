"""The command line as people use it: real processes, from fresh keys to a revoked capability."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TYPE = "pito/uk.gov.pito.Numberplate"


@pytest.fixture
def run(tmp_path: Path):
    """Give a function that runs `maia` in a process of its own, in an empty folder."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAIA", "COV_", "FORCE_COLOR"))}

    def call(*args: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        program = "from maia.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, *args],
            cwd=tmp_path, env=environment | more, input=stdin, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    return call


def test_from_keys_to_a_revoked_capability(run, tmp_path):
    """PITO lets Met delegate, Met gives Smith one plate, Smith proves it to a stranger, Met revokes it."""
    for name in ("pito", "met", "smith"):
        assert run("key", "new", name, "--no-passphrase").returncode == 0
    right = ("--type", f"{TYPE}@*", "--action", "subscribe")
    assert run("grant", "--from", "pito", "--to", "met", *right, "--delegate", "--until", "+90d").returncode == 0
    given = run("grant", "--from", "met", "--to", "smith", *right, "--attribute", "3265='AE05 XYZ'",
                "--test", "crl:met", "--json")  # fmt: skip
    identity = json.loads(given.stdout)["id"]
    assert run("statement", "crl", "--from", "met").returncode == 0
    asked = ("--type", f"{TYPE}@8516", "--action", "subscribe")
    assert run("prove", "--as", "smith", *asked, "--out", "smith.proof").returncode == 0
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    seen = run("verify", "smith.proof", "--home", str(stranger), "--json")
    assert (seen.returncode, json.loads(seen.stdout)["allowed"]) == (0, True)
    assert run("grant", "--from", "smith", "--to", "pito", *right).returncode == 3
    assert run("revoke", identity[:10], "--yes").returncode == 0
    denied = run("explain", "--as", "smith", *asked, "--json")
    assert (denied.returncode, json.loads(denied.stdout)["error"]) == (3, "REVOKED")
    assert run("verify", "smith.proof").returncode == 4


def test_sealed_keys_work_with_passphrases_from_file_and_environment(run, tmp_path):
    """A key that was sealed signs with its passphrase and with no other."""
    (tmp_path / "secret").write_text("correct horse battery\n")
    assert run("key", "new", "pito", "--passphrase-file", "secret").returncode == 0
    assert run("key", "new", "met", MAIA_PASSPHRASE="another").returncode == 0
    grant = ("grant", "--from", "pito", "--to", "met", "--network", "pito/UK Police Network", "--action", "connect")
    assert run(*grant, MAIA_PASSPHRASE="correct horse battery").returncode == 0
    wrong = run(*grant, "--until", "+1d", MAIA_PASSPHRASE="another")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error: [KEY_PASSPHRASE] ")
    assert "Traceback" not in wrong.stderr


def test_a_closed_pipe_is_no_traceback(run, tmp_path):
    """`maia … | head` ends quietly."""
    run("key", "new", "pito", "--no-passphrase")
    script = f"{sys.executable} -c 'from maia.cli import main; main()' demo trust --json 2>err | head -c 1 >/dev/null"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=False, timeout=60)
    assert "Traceback" not in (tmp_path / "err").read_text()


@pytest.mark.parametrize("verb", ["--help", "--version", "grant --help", "type --help", "filter --help"])
def test_help_loads_nothing_heavy(verb):
    """Help and version stay quick: no Arrow, numpy, lark or cryptography behind them."""
    heavy = ("pyarrow", "numpy", "pandas", "pyspark", "cryptography", "lark", "rich")
    program = (
        "import sys\nfrom maia.cli import main\n"
        f"try:\n    sys.argv[1:] = {verb.split()!r}\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_deciding_loads_no_arrow(run, tmp_path):
    """The verbs of trust do their work without Arrow and numpy."""
    run("key", "new", "pito", "--no-passphrase")
    program = (
        "import sys\nfrom maia.cli import main\n"
        "sys.argv[1:] = ['explain', '--as', 'pito', '--network', 'pito/N', '--action', 'connect']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print([name for name in ('pyarrow', 'numpy', 'pandas', 'pyspark', 'lark') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines()[-1] == "[]"
