"""Changing ``maia.toml`` by a program: the lines that change, and nothing else of what a person wrote there."""

from __future__ import annotations

import re
from dataclasses import replace

from maia.home.config import CONFIG_FILE, MAX_CONFIG, HomeConfig
from maia.home.files import PUBLIC_FILE, locked, read_file, write_file
from maia.home.home import Home

_TABLE = re.compile(r"^\[", re.MULTILINE)


def change_config(
    home: Home,
    *,
    log: str | None = None,
    network: tuple[str, str] | None = None,
    key_manager: str | None = None,
) -> Home:
    """Change settings of a home; what is ``None`` stays as it is. Comments and everything else stay.

    Returns:
        The home with its new settings.
    """
    path = home.path / CONFIG_FILE
    with locked(path):
        text = read_file(path, limit=MAX_CONFIG).decode("utf-8")
        before = HomeConfig.from_toml(text.encode())
        wanted = replace(
            before, log=log or before.log, network=network or before.network,
            key_manager=key_manager or before.key_manager,
        )  # fmt: skip
        if wanted == before:
            return Home(home.path, before)
        edited = text
        if wanted.log != before.log:
            edited = _set_top(edited, _line(wanted, "log"))
        if wanted.network != before.network:
            edited = _set_table(edited, "network", [_line(wanted, "owner"), _line(wanted, "name", last=True)])
        if wanted.key_manager != before.key_manager:
            edited = _set_table(edited, "services", [_line(wanted, "key_manager")])
        # INVARIANT: the file says what is wanted, whatever the person wrote; else it is written anew.
        if HomeConfig.from_toml(edited.encode()) != wanted:
            edited = wanted.to_toml()
        write_file(path, edited.encode(), mode=PUBLIC_FILE)
    return Home(home.path, wanted)


def _line(config: HomeConfig, setting: str, *, last: bool = False) -> str:
    """Write one setting as `HomeConfig.to_toml` does."""
    lines = [line for line in config.to_toml().splitlines() if line.startswith(f"{setting} = ")]
    return lines[-1 if last else 0]


def _set_top(text: str, line: str) -> str:
    """Put a setting at the top, in place of the one that is there."""
    begins = _TABLE.search(text)
    top, rest = (text, "") if begins is None else (text[: begins.start()], text[begins.start() :])
    name = line.partition(" ")[0]
    kept = re.sub(rf"^{name}[ \t]*=[^\n]*\n?", "", top, flags=re.MULTILINE)
    return f"{kept.rstrip()}\n{line}\n\n{rest}" if rest else f"{kept.rstrip()}\n{line}\n"


def _set_table(text: str, table: str, lines: list[str]) -> str:
    """Put settings into a table, which is made when there is none."""
    head = f"[{table}]\n"
    added = "\n".join(lines)
    if head in text:
        return text.replace(head, f"{head}{added}\n", 1)
    return f"{text.rstrip()}\n\n{head}{added}\n"
