"""The reference pages that the code fills in are current, and the first page leads to every other."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def navigation() -> list[str]:
    """List the pages of zensical.toml in their order."""
    return list(_pages(tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]))


def _pages(items: list[dict[str, object]]) -> Iterator[str]:
    for item in items:
        for value in item.values():
            yield from _pages(value) if isinstance(value, list) else [str(value)]


@pytest.mark.parametrize("page", ["python.md", "spark.md", "settings.md"])
def test_generated_part_is_current(script: Callable[[str], ModuleType], page: str) -> None:
    """Signatures, options and settings on the page are those of the code; `make fmt` renews it."""
    api = script("api")
    path = api.REFERENCE / page
    assert api.BLOCK.search(path.read_text("utf-8"))
    assert path.read_text("utf-8") == api.filled(path)


def test_check_says_which_page_is_stale(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A page with an old text between the markers fails the check, and is mended without it."""
    api = script("api")
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- api -->\nold\n<!-- /api -->\n", "utf-8")
    monkeypatch.setattr(api, "PAGES", {page: lambda: "new"})
    monkeypatch.setattr(api, "ROOT", tmp_path)
    assert api.main(["--check"]) == 1
    assert "page.md is out of date" in capsys.readouterr().err
    assert api.main([]) == 0
    assert api.main(["--check"]) == 0
    assert "new" in page.read_text("utf-8")


def test_every_public_member_of_the_api_is_on_the_page(script: Callable[[str], ModuleType]) -> None:
    """Whatever a user can call on a Domain or a Client is described, unless it is listed as inner."""
    from maia.domain import Client, Domain

    api = script("api")
    text = (DOCS / "reference" / "python.md").read_text("utf-8")
    for kind in (Domain, Client):
        names = [name for name in vars(kind) if not name.startswith("_") and name not in api.INNER | {"open"}]
        assert [name for name in names if f"`{name}`" not in text and f"### {kind.__name__}.{name}\n" not in text] == []


def test_every_option_has_a_user(script: Callable[[str], ModuleType]) -> None:
    """The page of the data source says of each option where it is used."""
    from maia.spark import options

    text = (DOCS / "reference" / "spark.md").read_text("utf-8").partition("<!-- /api -->")[2]
    assert [name for name in options._SPELLINGS if f"`{name}`" not in text] == []


def test_packages_of_the_page_can_be_imported() -> None:
    """Each package that the page of packages shows is there, in the order of the floors."""
    names = re.findall(r"^::: (\S+)$", (DOCS / "reference" / "packages.md").read_text("utf-8"), re.MULTILINE)
    assert len(names) > 10
    for name in names:
        assert importlib.import_module(name).__doc__
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    order = [part.strip("() ") for layer in reversed(layers) for part in layer.split("|")]
    shown = [name.removeprefix("maia.") for name in names]
    assert shown == sorted(shown, key=order.index)


def test_the_first_page_equals_the_navigation() -> None:
    """docs/index.md links to every page of the contents in the same order; decisions through their index."""
    wanted = [page for page in navigation() if page != "index.md" and not re.match(r"adr/\d", page)]
    text = (DOCS / "index.md").read_text("utf-8")
    assert re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", text) == wanted


def test_the_readme_leads_to_every_tutorial_and_how_to() -> None:
    """Each task that has a page is named in the README, in the order of the contents; so are the tutorials."""
    linked = re.findall(r"\]\(docs/([^)#]+)\)", (ROOT / "README.md").read_text("utf-8"))
    wanted = [page for page in navigation() if page.startswith("how-to/")]
    assert [page for page in dict.fromkeys(linked) if page.startswith("how-to/")] == wanted
    assert {page for page in navigation() if page.startswith("tutorials/")} <= set(linked)


def test_the_navigation_lists_each_page_once_and_no_other() -> None:
    """No page is in the contents twice, and none that is not there."""
    found = navigation()
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(found) == sorted(pages)


def test_no_page_speaks_of_floors_that_are_gone() -> None:
    """Module paths in the documents are those of the house as it is; decisions may speak of the past."""
    gone = re.compile(r"maia\.(?:stores|pipeline|broker)\b|src/maia/(?:stores|pipeline|broker)/|as_=\"")
    pages = [path for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")] if path.parent.name != "adr"]
    assert [path.name for path in pages if path.name != "CHANGELOG.md" and gone.search(path.read_text("utf-8"))] == []


WORD = re.compile(r"^\| `?([^|`]+?)`? \| (.+) \|$", re.MULTILINE)


def glossary() -> list[tuple[str, str]]:
    """Give the words of the first table of the glossary."""
    text = (DOCS / "reference" / "glossary.md").read_text("utf-8").partition("\n## ")[0]
    return [(word, meaning) for word, meaning in WORD.findall(text) if word not in {"word", "---"}]


def test_the_glossary_is_sorted_and_says_each_word_once() -> None:
    """One line a word, found where one looks for it."""
    words = [word for word, _ in glossary()]
    assert len(words) > 80
    assert words == sorted(words, key=str.casefold)
    assert len(set(words)) == len(words)


WORDS_OF_THE_API = (
    "home", "domain", "Domain", "plan", "session", "commit", "notice", "outbox", "stamp", "keyring", "pool", "clause",
    "snapshot", "engine", "client", "publication", "Published", "parcel", "segment", "lane", "log", "floor", "door",
    "register", "registry", "revoke", "grant", "audit", "subscription", "statement", "worker", "kernel",
)  # fmt: skip


WORDS_OF_PEOPLE = (
    ROOT / "README.md",
    *(path for part in ("tutorials", "how-to", "explanation") for path in (DOCS / part).glob("*.md")),
)


@pytest.mark.parametrize("page", WORDS_OF_PEOPLE, ids=lambda page: page.name)
def test_pages_and_messages_say_revoke(page: Path) -> None:
    """Rights are revoked, never withdrawn; names of functions in code may say otherwise."""
    prose = re.sub(r"`[^`]*`|^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r".*\bwithdr(?:aw|ew).*", prose) == []


def test_messages_of_errors_say_revoke() -> None:
    """The codes stay as they are; what people read says revoke."""
    table = (DOCS / "reference" / "errors.md").read_text("utf-8")
    messages = [line.split(" | ")[-1] for line in table.splitlines() if line.startswith("| `")]
    assert [text for text in messages if re.search(r"withdr(aw|ew)|retract", text)] == []


@pytest.mark.parametrize("word", WORDS_OF_THE_API)
def test_the_glossary_has_the_words_of_the_api_and_the_layout(word: str) -> None:
    """A reader who meets the word in code finds what it means."""
    assert word in {found for found, _ in glossary()}
