"""The emergency flag: declared and ended by somebody who may, for a reason, and every change of it kept.

The file holds one line a change, each signed by whoever made it over the hash of the line before, so that a line that
was removed, altered or made by somebody else shows. A file whose lines do not follow from each other declares nothing.
What a key said that may not declare, or may no longer, does not count.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.errors import DeniedError, MaiaError, UnavailableError, UsageError
from maia.home.files import PUBLIC_FILE, PUBLIC_FOLDER, locked, make_folder, read_file, write_file
from maia.policy import Atom, Predicate
from maia.principals import Kind, PublicKey, Signer, verify_signature

_MAX_FILE = 4 << 20
_MAX_REASON = 1_000
_VERSION = 1
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
    by: PublicKey
    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyFlag:
    """A flag in a file; the fact is true while it is declared.

    Attributes:
        path: The file.
        by: Whose word counts.
        name: Of the fact.
    """

    path: Path
    by: frozenset[PublicKey]
    name: str = "emergency"

    @property
    def predicate(self) -> Predicate:
        """A fact without parameters."""
        return Predicate(self.name, 0)

    def declare(self, signer: Signer, *, reason: str, at: datetime, until: datetime | None = None) -> None:
        """Declare an emergency.

        Raises:
            DeniedError: This key may not: ``EMERGENCY_DENIED``.
            UsageError: There is no reason, or it would lie before the last change.
            UnavailableError: The file is damaged or cannot be written.
        """
        self._append(EmergencyChange(at=at, declared=True, by=signer.public_key, reason=reason, until=until), signer)

    def end(self, signer: Signer, *, reason: str, at: datetime) -> None:
        """End it; raises what `declare` does."""
        self._append(EmergencyChange(at=at, declared=False, by=signer.public_key, reason=reason), signer)

    def history(self) -> tuple[EmergencyChange, ...]:
        """List every change, the oldest first, also those that do not count.

        Raises:
            UnavailableError: The file is damaged.
        """
        return tuple(change for change, _ in self._lines())

    def ask(self, fact: Atom, *, at: datetime) -> bool:  # noqa: ARG002 - there is one fact only
        """Tell whether an emergency is declared at an instant."""
        changes = [change for change in self.history() if change.at <= at and change.by in self.by]
        if not changes or not changes[-1].declared:
            return False
        until = changes[-1].until
        return until is None or at < until

    def facts(self, *, at: datetime) -> frozenset[Atom]:
        """Give the fact while it holds."""
        fact = Atom(self.name)
        return frozenset((fact,)) if self.ask(fact, at=at) else frozenset()

    def _append(self, change: EmergencyChange, signer: Signer) -> None:
        if change.by not in self.by:
            raise DeniedError(
                f"`{change.by.fingerprint}` is not among those who may declare `{self.name}` (`by` in "
                "`policy/providers.toml`)",
                code="EMERGENCY_DENIED",
            )
        if not 0 < len(change.reason.strip()) <= _MAX_REASON:
            raise UsageError("an emergency is declared and ended for a reason", code="EMERGENCY_REASON")
        make_folder(self.path.parent, mode=PUBLIC_FOLDER)
        with locked(self.path):
            lines = self._lines()
            if lines and change.at < lines[-1][0].at:
                raise UsageError("a change that lies before the last one", code="EMERGENCY_ORDER")
            body = _body(change, lines[-1][1] if lines else _START)
            data = read_file(self.path, limit=_MAX_FILE) if self.path.exists() else b""
            line = _line(body, signer.sign(Kind.EMERGENCY, body))
            write_file(self.path, data + line, mode=PUBLIC_FILE)

    def _lines(self) -> list[tuple[EmergencyChange, str]]:
        """Read the changes with the hash of each line."""
        if not self.path.exists():
            return []
        found: list[tuple[EmergencyChange, str]] = []
        before = _START
        try:
            for raw in read_file(self.path, limit=_MAX_FILE).splitlines(keepends=True):
                change, signature = _read(raw)
                body = _body(change, before)
                if _line(body, signature) != raw:
                    break
                verify_signature(Kind.EMERGENCY, body, signature, change.by)
                before = hashlib.sha256(raw).hexdigest()
                found.append((change, before))
            else:
                return found
        except (MaiaError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnavailableError("the emergency flag cannot be read", code="EMERGENCY_DAMAGED") from error
        raise UnavailableError("the emergency flag is damaged", code="EMERGENCY_DAMAGED")


def _read(raw: bytes) -> tuple[EmergencyChange, bytes]:
    value = json.loads(raw)
    body = value["change"]
    until, declared = body["until"], body["declared"]
    if type(declared) is not bool or body["v"] != _VERSION:
        raise TypeError
    change = EmergencyChange(
        at=datetime.fromisoformat(body["at"]),
        declared=declared,
        by=PublicKey.import_(bytes.fromhex(body["by"])),
        reason=body["reason"],
        until=None if until is None else datetime.fromisoformat(until),
    )
    return change, bytes.fromhex(value["signature"])


def _body(change: EmergencyChange, before: str) -> bytes:
    """Write what is signed: the change, and the hash of the line before."""
    until = None if change.until is None else change.until.isoformat()
    value = {
        "v": _VERSION, "at": change.at.isoformat(), "declared": change.declared, "by": change.by.raw.hex(),
        "reason": change.reason, "until": until, "before": before,
    }  # fmt: skip
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _line(body: bytes, signature: bytes) -> bytes:
    return b'{"change": %s, "signature": "%s"}\n' % (body, signature.hex().encode("ascii"))
