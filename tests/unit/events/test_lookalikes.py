"""What a reader is told about names that could mislead."""

from __future__ import annotations

import pytest

from maia.events import lookalikes, skeleton

REAL = "uk.gov.pito.Numberplate"
NOTES = {
    "a plain name": (REAL, ()),
    "a Cyrillic a": ("uk.gov.pito.Numberpl\u0430te", ("mixes LATIN and CYRILLIC letters", f"looks like `{REAL}`")),
    "another case": ("uk.gov.pito.NumberPlate", (f"looks like `{REAL}`",)),
    "a wide letter": (
        "uk.gov.pito.\uff2eumberplate",
        ("holds characters that have a plainer form (NFKC)", f"looks like `{REAL}`"),
    ),
    "an invisible character": ("uk.gov.pito.Number\u200bplate", ("holds invisible characters", f"looks like `{REAL}`")),
    "Cyrillic throughout": ("\u0430\u0435\u043e", ("holds CYRILLIC letters that look like LATIN ones",)),
    "a zero for an o": ("uk.g0v.pito.Numberplate", (f"looks like `{REAL}`",)),
    "an honest Greek name": ("\u03b4\u03b7\u03bb", ()),
    "a name of digits": ("123", ()),
}


@pytest.mark.threat("T35")
@pytest.mark.parametrize("name, notes", NOTES.values(), ids=NOTES)
def test_lookalike_names_are_noted(name: str, notes: tuple[str, ...]) -> None:
    """Homoglyphs, case, compatible forms and invisible characters get a note; plain names none."""
    assert lookalikes(name, (REAL,)) == notes


def test_skeletons_of_different_names_differ() -> None:
    """The note about a twin is not given for just any name."""
    assert skeleton("Numberplate") != skeleton("Location")
    assert lookalikes("Location", ("Numberplate", "Location")) == ()
