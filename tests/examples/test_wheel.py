"""The wheel that `make wheel` builds works by itself: installed into a fresh environment, without the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = ["-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]


def call(*command: str | Path, cwd: Path, check: bool = True) -> str:
    """Run a program without anything of the repository in its surroundings; give what it prints."""
    kept = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYSPARK_PYTHON", "MAIA_HOME"}}
    run = subprocess.run(
        command, cwd=cwd, env=kept | {"NO_COLOR": "1", "COLUMNS": "120"}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0 or not check, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as `make wheel` does."""
    folder = tmp_path_factory.mktemp("dist")
    call(
        sys.executable,
        *PIP,
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        folder,
        ROOT,
        cwd=folder,
    )
    [made] = folder.glob("maia-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it into a fresh environment, which borrows the pinned packages and nothing else; give its programs."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    call(python, *PIP, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    [packages] = folder.glob("lib/python*/site-packages")
    # A path in a .pth file is searched last, and .pth files over there (that of an editable Maia) are not read.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return folder / "bin"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_holds_the_whole_product_and_nothing_else(wheel: Path) -> None:
    """Every file of src is in it, grammars and the mark of types included; no tests, no keys."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == wanted


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_installed_program_plays_the_trust_part_of_the_demo(installed: Path, tmp_path: Path) -> None:
    """`maia` is there, is the installed one, and draws who gave what to whom."""
    where = call(installed / "python", "-c", "import maia; print(maia.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(installed.parent)
    assert re.search(r"\d+\.\d+\.\d+", call(installed / "maia", "--version", cwd=tmp_path))
    shown = call(installed / "maia", "demo", "trust", cwd=tmp_path)
    assert "Who may do what" in shown
    assert "BROKEN_CHAIN" in shown


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_installed_package_publishes_and_reads(installed: Path, tmp_path: Path) -> None:
    """A home is made with the installed command, and rows go through the installed data source."""
    maia = installed / "maia"
    call(maia, "domain", "init", "clinic", cwd=tmp_path)
    for name in ("owner", "lab", "ward"):
        call(maia, "key", "new", name, "--no-passphrase", "--home", "clinic", cwd=tmp_path)
    attributes = ["--attribute", "patient:string:1", "--attribute", "value:float:2"]
    call(maia, "type", "define", "owner/Result@1", *attributes, "--home", "clinic", cwd=tmp_path)
    grant = [maia, "grant", "--from", "owner", "--type", "owner/Result", "--home", "clinic"]
    call(*grant, "--to", "broker", "--action", "publish", cwd=tmp_path)
    call(*grant, "--to", "lab", "--action", "publish", cwd=tmp_path)
    call(*grant, "--to", "ward", "--action", "subscribe", "--attribute", "2", cwd=tmp_path)
    program = (
        "import maia, pyarrow as pa\n"
        "clinic = maia.open('clinic')\n"
        "print(clinic.client('lab').publish(pa.table({'patient': ['Ada'], 'value': [5.4]}), 'Result'))\n"
        "print([tuple(row) for row in clinic.client('ward').read('Result').collect()])\n"
    )
    shown = call(installed / "python", "-c", program, cwd=tmp_path)
    assert "published 1 event in commit 0" in shown
    assert "[(None, 5.4)]" in shown
