"""Run what the README and the other pages show; `snippets.py` says how."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from snippets import PAGES, ROOT, commands, missing_line, pages, run_page

OTHERS = sorted({page for page in PAGES if not page.startswith(("README.md", "docs/tutorials/", "docs/how-to/"))})


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(900)  # some pages start Spark more than once
@pytest.mark.parametrize("page", pages("README.md", *OTHERS))
def test_snippets_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Every example of a page runs as shown."""
    run_page(page, tmp_path, monkeypatch, request)


def test_every_python_block_of_the_readme_runs() -> None:
    """The README shows no Python in a block that is not run, and skips none."""
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    shows_python = re.compile(r"^(>>> |import |from \w+ import )|maia\.open\(", re.MULTILINE)
    unrun = [body for language, body in blocks if language not in {"python", "console"}]
    assert [body for body in unrun if shows_python.search(body)] == []
    assert sum(language == "python" for language, _ in blocks) >= 3
    assert "skip: next" not in text


CONSOLE = {
    "lines in order": (["a", "b"], "a\nx\nb\n", None),
    "lines out of order": (["b", "a"], "a\nb\n", "a"),
    "anything in between": (["key ... made"], "key ed25519:abc made\n", None),
    "a line that is not there": (["z"], "a\n", "z"),
}


@pytest.mark.parametrize("expected, output, missing", CONSOLE.values(), ids=CONSOLE)
def test_expected_lines_must_appear_in_order(expected: list[str], output: str, missing: str | None) -> None:
    """The comparison of outputs refuses a line that is missing or comes too early."""
    assert missing_line(expected, output) == missing


def test_console_blocks_split_into_commands() -> None:
    """A prompt starts a command, a backslash continues it, other lines are output."""
    assert commands("$ one \\\n  two\nout\n$ three  # exits 3\n") == [
        ("one \\\n  two", ["out"]),
        ("three  # exits 3", []),
    ]
