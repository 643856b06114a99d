"""The emergency flag: declared and ended by somebody, for a reason, and every change of it kept.

The file holds one line per change, each with the hash of the line before it, so that a line that was removed or altered
shows. A file whose lines do not follow from each other declares nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.errors import MaiaError, UnavailableError, UsageError
from maia.home.files import PUBLIC_FILE, PUBLIC_FOLDER, locked, make_folder, read_file, write_file
from maia.policy import Atom, Predicate

_MAX_FILE = 4 << 20
_MAX_TEXT = 1_000
_START = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyChange:
    """One change of the flag.

    Attributes:
        at: When.
        declared: Whether the emergency began, or ended.
        by: Who said so.
        reason: Why.
        until: When it ends by itself, if it does.
    """

    at: datetime
    declared: bool
    by: str
    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EmergencyFlag:
    """A flag in a file; the fact ``emergency`` is true while it is declared."""

    path: Path
    name: str = "emergency"

    @property
    def predicate(self) -> Predicate:
        """A fact without parameters."""
        return Predicate(self.name, 0)

    def declare(self, *, by: str, reason: str, at: datetime, until: datetime | None = None) -> None:
        """Declare an emergency.

        Raises:
            UsageError: Nobody, or no reason, is named.
            UnavailableError: The file is damaged or cannot be written.
        """
        self._append(EmergencyChange(at=at, declared=True, by=by, reason=reason, until=until))

    def end(self, *, by: str, reason: str, at: datetime) -> None:
        """End it."""
        self._append(EmergencyChange(at=at, declared=False, by=by, reason=reason))

    def history(self) -> tuple[EmergencyChange, ...]:
        """List every change, the oldest first.

        Raises:
            UnavailableError: The file is damaged.
        """
        return tuple(change for change, _ in self._lines())

    def ask(self, fact: Atom, *, at: datetime) -> bool:  # noqa: ARG002 - there is one fact only
        """Tell whether an emergency is declared at an instant."""
        changes = [change for change in self.history() if change.at <= at]
        if not changes or not changes[-1].declared:
            return False
        until = changes[-1].until
        return until is None or at < until

    def facts(self, *, at: datetime) -> frozenset[Atom]:
        """Give the fact while it holds."""
        fact = Atom(self.name)
        return frozenset((fact,)) if self.ask(fact, at=at) else frozenset()

    def _append(self, change: EmergencyChange) -> None:
        if not all(0 < len(text.strip()) <= _MAX_TEXT for text in (change.by, change.reason)):
            raise UsageError("an emergency is somebody's word, and has a reason", code="EMERGENCY_REASON")
        make_folder(self.path.parent, mode=PUBLIC_FOLDER)
        with locked(self.path):
            lines = self._lines()
            if lines and change.at < lines[-1][0].at:
                raise UsageError("a change that lies before the last one", code="EMERGENCY_ORDER")
            before = lines[-1][1] if lines else _START
            data = read_file(self.path, limit=_MAX_FILE) if self.path.exists() else b""
            write_file(self.path, data + _line(change, before), mode=PUBLIC_FILE)

    def _lines(self) -> list[tuple[EmergencyChange, str]]:
        """Read the changes with the hash of each line."""
        if not self.path.exists():
            return []
        found: list[tuple[EmergencyChange, str]] = []
        before = _START
        try:
            for raw in read_file(self.path, limit=_MAX_FILE).splitlines(keepends=True):
                change = _read(raw)
                if _line(change, before) != raw:
                    break
                before = hashlib.sha256(raw).hexdigest()
                found.append((change, before))
            else:
                return found
        except (MaiaError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnavailableError("the emergency flag cannot be read", code="EMERGENCY_DAMAGED") from error
        raise UnavailableError("the emergency flag is damaged", code="EMERGENCY_DAMAGED")


def _read(raw: bytes) -> EmergencyChange:
    value = json.loads(raw)
    until, declared = value["until"], value["declared"]
    if type(declared) is not bool:
        raise TypeError
    return EmergencyChange(
        at=datetime.fromisoformat(value["at"]),
        declared=declared,
        by=value["by"],
        reason=value["reason"],
        until=None if until is None else datetime.fromisoformat(until),
    )


def _line(change: EmergencyChange, before: str) -> bytes:
    until = None if change.until is None else change.until.isoformat()
    value = {
        "at": change.at.isoformat(), "declared": change.declared, "by": change.by, "reason": change.reason,
        "until": until, "before": before,
    }  # fmt: skip
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
