"""The documents stay true: generated pages are current, links lead somewhere, decisions are numbered without gaps."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"])
    if path.is_file()
}
LINK = re.compile(r"(?<!`)!?\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
# Spelt in pieces, so that this file does not trip over itself.
MACHINE = re.compile(
    r"(?<!\w)/(?:" + "work|farm|root|home|opt|tmp" + ")/"
    "|https?:" + "//[a-z0-9.-]*(?:" + "pypi|hosted|npm|maven|debian|crates" + ")[a-z0-9.-]*"
    "|bash" + "_jobs"
)


def tracked_files() -> list[Path]:
    """List the files under version control."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git working tree")
    run = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        pytest.skip("git does not trust this working tree")
    return [ROOT / name for name in run.stdout.split("\0") if name and (ROOT / name).is_file()]


def anchors(text: str) -> set[str]:
    """List the anchors of a page's headings, as Markdown viewers make them."""
    headings = re.findall(r"^#+ +(.*?)\s*$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_errors_page_is_current(script: Callable[[str], ModuleType]) -> None:
    """docs/reference/errors.md is exactly what the code says; `make fmt` renews it."""
    errors = script("errors")
    assert errors.TARGET.read_text("utf-8") == errors.render()


def test_a_code_stands_for_one_family_of_errors(script: Callable[[str], ModuleType]) -> None:
    """Who reads a code knows who must act."""
    assert script("errors").conflicts() == []


def test_errors_page_knows_literal_conditional_and_built_codes(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader of the source finds a plain code, both arms of a conditional, and a code given to a local builder."""
    (tmp_path / "maia").mkdir()
    (tmp_path / "maia" / "errors.py").write_text(
        "class MaiaError(Exception):\n    default_code = 'MAIA'\n"
        "class UsageError(MaiaError):\n    '''Wrong.'''\n    default_code = 'USAGE'\n"
    )
    (tmp_path / "maia" / "use.py").write_text(
        "def _no(text, code):\n    return UsageError(text, code=code)\n"
        "def f(x):\n    if x:\n        raise UsageError(f'no `{x}`', code='A_A' if x > 1 else 'B_B')\n"
        "    raise _no('c', code='C_C')\n"
    )
    errors = script("errors")
    monkeypatch.setattr(errors, "SOURCE", tmp_path / "maia")
    found = {(use.code, use.error, use.says) for use in errors.uses()}
    assert {("A_A", "UsageError", "no `…`"), ("B_B", "UsageError", "no `…`"), ("C_C", "UsageError", "c")} <= found


def test_readme_says_what_the_program_prints_and_the_tests_show(script: Callable[[str], ModuleType]) -> None:
    """The README holds what `maia --help` prints, and counts the rows that tests are marked with."""
    assert script("readme").main(["--check"]) == 0


def test_decisions_are_numbered_without_gaps() -> None:
    """docs/adr holds 0001, 0002, … each once, each with the parts of a decision."""
    files = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert [path.name[:4] for path in files] == [f"{n:04d}" for n in range(1, len(files) + 1)]
    for path in files:
        text = path.read_text("utf-8")
        assert text.startswith(f"# {path.name[:4]} ")
        for part in ("Status:", "## Question", "## Options", "## Decision", "## Cost"):
            assert part in text, f"{path.name} lacks {part}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every relative link of a page names a file that exists, and an anchor that exists in it."""
    text = PAGES[page].read_text("utf-8")
    broken = []
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (PAGES[page].parent / name).resolve() if name else PAGES[page]
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8"))):
            broken.append(target)
    assert broken == []


def test_every_page_is_in_the_contents() -> None:
    """zensical.toml lists every page of docs, so that none is lost."""
    contents = (ROOT / "zensical.toml").read_text("utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in sorted(pages) if f'"{page}"' not in contents] == []


def test_requirement_rows_are_complete_and_unique(script: Callable[[str], ModuleType]) -> None:
    """The project keeps all 328 rows in 24 groups, 51 choices, 75 threats and 26 faults, each id once."""
    requirements = script("requirements")
    rows = requirements.read_rows(requirements.REFERENCE / "requirements.md", r"\d+\.\d+")
    choices = requirements.read_rows(requirements.REFERENCE / "requirements.md", r"C\d+")
    threats = requirements.read_rows(requirements.REFERENCE / "threats.md", r"T\d+")
    faults = requirements.read_rows(requirements.REFERENCE / "threats.md", r"F\d+")
    assert [len({row.id for row in part}) for part in (rows, choices, threats, faults)] == [328, 51, 75, 26]
    assert [len(part) for part in (rows, choices, threats, faults)] == [328, 51, 75, 26]
    assert len({row.group for row in rows}) == 24


def test_requirement_rows_are_those_of_the_reference(script: Callable[[str], ModuleType], shared: Path) -> None:
    """No row of the reference documents is missing here, and none is invented."""
    requirements = script("requirements")
    for page, source, form in (
        ("requirements.md", "requirements.md", r"(?:\d+\.\d+|C\d+)"),
        ("threats.md", "reliability.md", r"[TF]\d+"),
    ):
        ours = {row.id for row in requirements.read_rows(requirements.REFERENCE / page, form)}
        theirs = {row.id for row in requirements.read_rows(shared / source, form)}
        assert ours == theirs


OUTCOMES = {
    "one passes": ({"a": "passed"}, "shown"),
    "one passes, one is skipped": ({"a": "passed", "b": "skipped"}, "shown"),
    "one fails beside a pass": ({"a": "passed", "b": "failed"}, "failing"),
    "only skipped": ({"a": "skipped"}, "not shown"),
    "no test": ({}, "not shown"),
}


@pytest.mark.parametrize("outcomes, state", OUTCOMES.values(), ids=OUTCOMES)
def test_a_row_is_shown_only_by_a_passing_test(
    script: Callable[[str], ModuleType], outcomes: dict[str, str], state: str
) -> None:
    """One failing test makes its row failing; skipped tests show nothing."""
    requirements = script("requirements")
    row = requirements.Row(id="1.01", group="g", text="t")
    assert [result.state for result in requirements.judge([row], {"1.01": outcomes}, {})] == [state]
    missed = requirements.judge([row], {"1.01": outcomes}, {"1.01": "2 instead of 1"})
    assert [result.state for result in missed] == ["failing" if state == "failing" else "missed"]


def test_change_notes_have_a_known_kind() -> None:
    """Every fragment in changes/ is called <name>.<kind>.md with one of the five kinds."""
    kinds = {"wire", "security", "feature", "fix", "doc"}
    names = [path.name for path in (ROOT / "changes").glob("*.md") if path.name != "README.md"]
    assert [name for name in names if len(name.split(".")) != 3 or name.split(".")[1] not in kinds] == []


def test_no_machine_path_or_registry_host_is_tracked() -> None:
    """The repository speaks of Maia alone: no path of one machine, no address of one registry."""
    found = []
    for path in tracked_files():
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        if path.suffix == ".svg":
            continue
        found += [
            f"{path.relative_to(ROOT)}:{n}: {line[:80]}" for n, line in enumerate(lines, 1) if MACHINE.search(line)
        ]
    assert found == []
