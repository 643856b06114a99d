"""Run what the documents show.

``python`` blocks run in order, one namespace a page; a block with ``>>>`` is a doctest. In a ``console`` block each
line that starts with ``$`` is run by bash in a directory of its own for the page, with `maia` on the path and a home of
its own; it must exit with 0, or with n when the line ends in ``# exits n``. The lines below it must appear in the
output, in this order; ``...`` stands for anything. Other languages (``sh``, ``text``, ``toml``) are not run.
``<!-- skip: next -->`` before a block skips it, with a reason: ``<!-- skip: next "needs a second machine" -->``.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

from maia.spark.session import forget_dead_java

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if re.search(r"^ *```(python|console)", path.read_text("utf-8"), re.MULTILINE)
}

NEEDS_KAFKA = re.compile(r"kafka://\$NODE")
NEEDS_SPARK = re.compile(r"^\$ maia (?:publish|subscribe|demo)\b|^>>> .*\.client\(", re.MULTILINE)


def pages(*folders: str) -> list[object]:
    """Give the pages below some folders as cases of a test; a file of tests a folder lets workers share them."""
    return [_marked(page) for page in PAGES if page.startswith(folders)]


def _marked(page: str) -> object:
    """Say of a page that moves rows that it needs Spark."""
    text = PAGES[page].read_text("utf-8")
    if NEEDS_KAFKA.search(text):
        return pytest.param(page, marks=pytest.mark.slow)
    always = (pytest.mark.always,) if page == "README.md" else ()
    moves = NEEDS_SPARK.search(text)
    return pytest.param(page, marks=(pytest.mark.spark, pytest.mark.slow, *always) if moves else always)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Split a console block into commands and the output lines expected of each."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line.removeprefix('> ')}", [])
        elif found and line.strip():
            found[-1][1].append(line.strip())
    return found


def missing_line(expected: list[str], output: str) -> str | None:
    """Give the first expected line that does not appear in the output in its turn."""
    rest = iter(re.sub(r"[ \t]+", " ", line).strip() for line in output.splitlines())
    for line in expected:
        if line == "...":
            continue
        wanted = re.compile(".*".join(re.escape(re.sub(r"[ \t]+", " ", part)) for part in line.split("...")))
        if not any(wanted.search(found) for found in rest):
            return line
    return None


class Console:
    """Runs console blocks of one page in one directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        bin_folder = str(Path(sys.executable).parent)
        kept = {
            key: os.environ[key]
            for key in ("LANG", "LC_ALL", "SSL_CERT_FILE", "NODE", "KAFKA_SECURITY_PROTOCOL")
            if key in os.environ
        }
        self.environment = kept | {
            "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", "")]),
            "HOME": str(folder),
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONPATH": str(ROOT / "src"),  # the pages speak of this tree, whatever is installed
            "COLUMNS": "120",
        }

    def __call__(self, example: Example) -> None:
        """Run one block."""
        for command, expected in commands(example.parsed):
            wanted = re.search(r"# exits (\d+)$", command)
            run = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=120,
            )
            assert run.returncode == (int(wanted[1]) if wanted else 0), f"$ {command}\n{run.stdout}"
            missing = missing_line(expected, run.stdout)
            assert missing is None, f"$ {command}\ndoes not print `{missing}` in its turn:\n{run.stdout}"


@contextmanager
def own_spark() -> Iterator[None]:
    """Leave no Spark session behind that a page started, and none before it that a page would take up."""
    _stop_spark()
    try:
        yield
    finally:
        _stop_spark()


def _stop_spark() -> None:
    if "pyspark.sql" in sys.modules:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        forget_dead_java()
        context = SparkContext._active_spark_context  # a session is active in its own thread alone
        if context is not None:
            SparkSession(context).stop()
        _end_java()
        gc.collect()  # pyspark leaves pipes and sockets open


def _end_java() -> None:
    """End the Java process too: relative paths of a page are relative to where it was started."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None


def run_page(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Run every example of a page in a folder of its own, as shown."""
    text = PAGES[page].read_text("utf-8")
    if NEEDS_KAFKA.search(text):
        monkeypatch.setenv("NODE", request.getfixturevalue("kafka").address)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    parsers = [SkipParser(), PythonCodeBlockParser(), CodeBlockParser("console", Console(folder))]
    examples = list(Document.parse(str(PAGES[page]), *parsers, encoding="utf-8").examples())
    assert examples
    with own_spark():
        for example in examples:
            try:
                example.evaluate()
            except pytest.skip.Exception:  # one skipped block does not skip the page
                continue
            except Exception as error:
                raise AssertionError(f"{page}, line {example.line}: {error}") from error
