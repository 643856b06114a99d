"""The grammar of the filter language, and how large a text of it may be."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterLimits:
    """How large a filter text may be; whatever is larger is refused before it costs anything."""

    characters: int = 262_144
    constraints: int = 4_096
    values: int = 16_384
    literal_characters: int = 65_536
    name_characters: int = 1_024
    digits: int = 1_024


DEFAULT_LIMITS = FilterLimits()


def grammar() -> str:
    """The grammar of the filter language, as it is shipped and as the reference page shows it.

    >>> "constraint" in grammar()
    True
    """
    return resources.files("maia.filters").joinpath("grammar.lark").read_text(encoding="utf-8")
