"""Run what the tutorials show; `snippets.py` says how."""

from __future__ import annotations

from pathlib import Path

import pytest
from snippets import pages, run_page


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(900)  # some pages start Spark more than once
@pytest.mark.parametrize("page", pages("docs/tutorials/"))
def test_snippets_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Every example of a page runs as shown."""
    run_page(page, tmp_path, monkeypatch, request)
