"""Where output goes: data to standard output, everything else to standard error; text of strangers made harmless."""

from __future__ import annotations

import json as json_text
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from maia.encoding import printable
from maia.errors import MaiaError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "State",
    "answer",
    "current_state",
    "draw",
    "logging_to_stderr",
    "note",
    "printable",
    "report_error",
    "screen",
    "set_level",
    "stands",
    "write_json",
    "write_line",
]

_log = logging.getLogger(__name__)
_WIDTH_OF_FILES = 160  # a pipe has no width; lines stay whole up to here


@dataclass(slots=True)
class State:
    """What the options in front of the verb said, and whether the verb was told to write JSON."""

    verbosity: int = 0
    json: bool = False
    passphrase_fd: int | None = None
    passphrase: str | None = field(default=None, repr=False)
    stands: str = "what was done before stands"
    closing: ExitStack = field(default_factory=ExitStack, repr=False)
    """What is closed when the command ends."""


_state: ContextVar[State] = ContextVar("maia_command")


def current_state() -> State:
    """Return the state of the command that runs; a fresh one where none does."""
    return _state.get(State())


def stands(text: str) -> None:
    """Say what is true when the command is interrupted from here on."""
    current_state().stands = text


def write_json(data: dict[str, object], *, code: int = 0) -> None:
    """Print one object to standard output, with the exit code in it."""
    print(json_text.dumps({"code": int(code), **data}, ensure_ascii=True, allow_nan=False), flush=True)


def write_line(text: str = "") -> None:
    """Print one line of data, before any later note."""
    print(text, flush=True)


def answer(data: dict[str, object], *lines: str, json: bool, code: int = 0) -> None:
    """Print an answer: one object for machines, or its lines for people, made harmless."""
    if json:
        write_json(data, code=code)
        return
    for line in lines:
        write_line(printable(line))


def note(text: str) -> None:
    """Say something to the person at the terminal, on standard error; `-q` silences it."""
    _log.info("%s", printable(text))


@contextmanager
def logging_to_stderr(state: State) -> Iterator[logging.Handler]:
    """Send Maia's log to standard error while a command runs; its level follows `set_level`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    root = logging.getLogger("maia")
    before = root.level, root.propagate
    root.addHandler(handler)
    root.propagate = False
    set_level(state)
    token = _state.set(state)
    try:
        yield handler
    finally:
        _state.reset(token)
        root.removeHandler(handler)
        root.setLevel(before[0])  # loggers remember what they are enabled for until this is called
        root.propagate = before[1]


def set_level(state: State) -> None:
    """Choose what is logged: notes by default, only errors when quiet, everything when verbose."""
    level = {-1: logging.ERROR, 0: logging.INFO}.get(max(-1, min(state.verbosity, 1)), logging.DEBUG)
    logging.getLogger("maia").setLevel(level)


def screen() -> Console:
    """Make a Rich console on standard output that honours NO_COLOR, FORCE_COLOR and COLUMNS."""
    from rich.console import Console

    terminal = sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))
    fixed = os.environ.get("COLUMNS", "")
    width = None if terminal or fixed.isdigit() else _WIDTH_OF_FILES
    return Console(file=sys.stdout, highlight=False, emoji=False, markup=False, width=width)


def draw(renderable: RenderableType) -> None:
    """Draw a tree or a table on standard output."""
    screen().print(renderable)
    sys.stdout.flush()


def report_error(error: MaiaError, *, code: int, as_json: bool, hint: str | None = None) -> None:
    """Say what went wrong: for people on standard error, and for machines on standard output when they asked."""
    advice = hint or error.hint or ("try `maia --help`" if error.code == "USAGE" else None)
    if as_json:
        data: dict[str, object] = {"error": error.code, "message": error.message}
        write_json(data | ({"hint": advice} if advice else {}), code=code)
    print(f"error: [{error.code}] {printable(error.message)}", file=sys.stderr)
    if advice:
        print(f"hint: {advice}", file=sys.stderr)
