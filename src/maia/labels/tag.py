"""Flow tags by name: single ones, and families with a value in each, such as ``clinical(1234567768)``.

A family is a parametrised privilege of a policy: ``clinical(patient)`` gives each patient a flow tag. The whole family
is written ``clinical(*)``: as secret as all its tags together.

Rules kept here:

- a value can never be mistaken for the whole family, nor for another value: what is ``*``, or begins with a quote, is
  quoted;
- a name is text of 1 to 512 characters without control characters.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from maia.errors import EncodingError

MAX_TAG_LENGTH = 512
WHOLE = "*"
_FAMILY = re.compile(r"([^()]+)\((.*)\)", re.DOTALL)


def check_tag(tag: str) -> str:
    """Give a tag back when it is a name.

    Raises:
        EncodingError: It is empty or too long: ``LABEL_TAGS``.
    """
    if not tag or len(tag) > MAX_TAG_LENGTH:
        raise EncodingError(f"a flow tag has 1 to {MAX_TAG_LENGTH} characters", code="LABEL_TAGS")
    return tag


def tag_of(family: str, value: str) -> str:
    """Name the tag that a family has for a value.

    >>> tag_of("clinical", "1234567768"), tag_of("clinical", "*"), tag_of("clinical", "'x'")
    ('clinical(1234567768)', "clinical('*')", "clinical('''x''')")
    """
    if value == WHOLE or value.startswith("'"):
        value = "'" + value.replace("'", "''") + "'"
    return check_tag(f"{family}({value})")


def whole_family(family: str) -> str:
    """Name a family as a whole.

    >>> whole_family("clinical")
    'clinical(*)'
    """
    return check_tag(f"{family}({WHOLE})")


def common_tags(ones: Collection[str], others: Collection[str]) -> frozenset[str]:
    """Give the tags that both sides have, by themselves or as a part of a whole family.

    >>> sorted(common_tags({"a", "f(*)", "g(1)"}, {"a", "f(7)", "g(2)", "h"}))
    ['a', 'f(7)']
    """
    return frozenset(tag for tag in ones if _covered(tag, others)) | frozenset(
        tag for tag in others if _covered(tag, ones)
    )


def values_by_family(tags: Collection[str]) -> dict[str, frozenset[str] | None]:
    """Sort the tags of families: the values of each that are there, or ``None`` where the whole family is.

    >>> found = values_by_family({"clinical(7)", "ward(*)", "ward(3)", "pathlab"})
    >>> sorted(found["clinical"]), found["ward"], "pathlab" in found
    (['7'], None, False)
    """
    known: dict[str, set[str]] = {}
    whole = set()
    for tag in tags:
        found = family_of(tag)
        if found is None:
            continue
        family, value = found
        if value is None:
            whole.add(family)
        else:
            known.setdefault(family, set()).add(value)
    return {family: frozenset(values) for family, values in known.items()} | dict.fromkeys(whole)


def _covered(tag: str, tags: Collection[str]) -> bool:
    found = family_of(tag)
    return tag in tags or (found is not None and whole_family(found[0]) in tags)


def family_of(tag: str) -> tuple[str, str | None] | None:
    """Read a tag of a family: its name and value, no value for the whole family; nothing for a single tag.

    >>> family_of("clinical(7)"), family_of("clinical(*)"), family_of("clinical('*')"), family_of("pathlab")
    (('clinical', '7'), ('clinical', None), ('clinical', '*'), None)
    """
    found = _FAMILY.fullmatch(tag)
    if found is None:
        return None
    family, value = found[1], found[2]
    if value == WHOLE:
        return family, None
    if len(value) > 1 and value.startswith("'") and value.endswith("'"):
        value = value[1:-1].replace("''", "'")
    return family, value
