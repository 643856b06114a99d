"""Commands as a person types them, in this process: a scenario that is played with them is also a way to do it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maia.testing import Command

Say = Callable[[str], None]


class Organisation:
    """One home and whoever types there; every command is said aloud before it runs.

    Attributes:
        home: The home's folder.
        name: The prompt.
        told: What was typed, in order; organisations of one scenario share the list.
    """

    def __init__(self, folder: Path, name: str, *, told: list[str], say: Say) -> None:
        """Work in ``folder/name``, which need not exist yet."""
        self.home = folder / name
        self.name = name
        self.told = told
        self._say = say
        self._folder = f"{folder}/"
        self._command = Command(self.home)

    def do(self, *words: str, more: str = "") -> dict[str, Any]:
        """Type a command that must succeed; return what it says for machines.

        Args:
            words: After `maia`.
            more: What a person would type behind it, such as where the output goes.

        Raises:
            AssertionError: It was refused, which this scenario does not expect.
        """
        self._tell(words, more)
        return self._command.do("-q", *words)

    def attempt(self, *words: str) -> str | None:
        """Type a command that may be refused; return the code when it was."""
        ran = self._command("-q", *words, "--json")
        code = None if ran.code == 0 else str(ran.data["error"])
        self._tell(words, "" if code is None else f"  # {code}")
        return code

    def write(self, path: str, text: str) -> Path:
        """Write a file of this organisation, as an editor does."""
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        self._line(f"edit {path}")
        return target

    def join(self, who: str, *appointments: str) -> None:
        """Make a key for a member, and let it join with an invitation that appoints it."""
        self.do("key", "new", who, "--no-passphrase")
        facts = [word for fact in appointments for word in ("--appoint", fact)]
        code = self.home / f"{who}.code"
        code.write_text(str(self.do("domain", "invite", who, *facts)["invitation"]) + "\n", "utf-8")
        self.do("domain", "join", str(self.home), "--as", who, "--invitation-file", str(code))

    def _tell(self, words: tuple[str, ...], more: str) -> None:
        shown = [word.replace(self._folder, "") for word in words]
        self._line(f"maia {' '.join(_quoted(word) for word in shown)}{more}")

    def _line(self, text: str) -> None:
        line = f"{self.name}$ {text}"
        self.told.append(line)
        self._say(line)


def _quoted(word: str) -> str:
    """Quote a word for a shell as a person would; none here has both kinds of quotes, or a dollar."""
    if re.fullmatch(r"[\w@%+=:,./-]+", word):
        return word
    return f'"{word}"' if "'" in word else f"'{word}'"
