"""Names that look like others: what a person should be told before trusting a readable name.

Decisions never depend on this: the owner's key does (T35). The notes say which characters could fool an eye.
"""

from __future__ import annotations

import unicodedata

# Letters of other scripts that are drawn like ASCII ones. Not complete, and need not be: it only adds a note.
_CONFUSABLE = str.maketrans(
    "аеорсухіјѕһԁɡԛԝАВЕКМНОРСТХУЅІЈԌɑοονιΑΒΕΖΗΙΚΜΝΟΡΤΥΧꓐꓑ",
    "aeopcyxijshdgqwABEKMHOPCTXYSIJGaoovıABEZHIKMNOPTYXBP",
)


def skeleton(name: str) -> str:
    r"""Reduce a name to what an eye remembers: compatible forms, look-alike letters and case folded together.

    >>> skeleton("uk.gov.pito.Numberpl\u0430te") == skeleton("uk.gov.pito.numberplate")
    True
    """
    plain = unicodedata.normalize("NFKC", name).translate(_CONFUSABLE)
    without_marks = (c for c in unicodedata.normalize("NFD", plain) if unicodedata.category(c) not in {"Mn", "Cf"})
    return "".join(without_marks).casefold().replace("ı", "i").replace("0", "o").replace("1", "l").replace("rn", "m")


def lookalikes(name: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    r"""Say what about a name could mislead a reader.

    Args:
        name: The readable name.
        known: Names that the reader may take it for.

    Returns:
        One sentence for each finding; none for a plain name.

    >>> lookalikes("uk.gov.pito.Numberplate")
    ()
    >>> lookalikes("uk.gov.pito.Numberpl\u0430te")
    ('mixes LATIN and CYRILLIC letters',)
    """
    notes = []
    if unicodedata.normalize("NFKC", name) != name:
        notes.append("holds characters that have a plainer form (NFKC)")
    if any(unicodedata.category(character) == "Cf" for character in name):
        notes.append("holds invisible characters")
    scripts = sorted({_script(c) for c in name if c.isalpha()}, key=lambda script: (script != "LATIN", script))
    if len(scripts) > 1:
        notes.append(f"mixes {' and '.join(scripts)} letters")
    elif name.translate(_CONFUSABLE) != name:
        notes.append(f"holds {scripts[0]} letters that look like LATIN ones")
    twins = sorted({other for other in known if other != name and skeleton(other) == skeleton(name)})
    notes.extend(f"looks like `{other}`" for other in twins)
    return tuple(notes)


def _script(character: str) -> str:
    """Guess the script from the character's Unicode name; good enough for a note."""
    words = unicodedata.name(character, "UNKNOWN").split(" ", 1)
    return words[0] if words[0] not in {"FULLWIDTH", "MATHEMATICAL"} else "LATIN"
