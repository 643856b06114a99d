"""The grammar of the rule language, and how large a text of it may be."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLimits:
    """How large a policy text may be; whatever is larger is refused before it costs anything."""

    characters: int = 1_048_576
    rules: int = 5_000
    premises: int = 64
    arguments: int = 64
    depth: int = 16
    word_characters: int = 4_096


DEFAULT_POLICY_LIMITS = PolicyLimits()


def grammar() -> str:
    """The grammar of the rule language, as it is shipped and as the reference page shows it.

    >>> "premise" in grammar()
    True
    """
    return resources.files("maia.policy").joinpath("grammar.lark").read_text(encoding="utf-8")
