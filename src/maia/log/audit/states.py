"""What decisions stood on, kept beside the journal: the files of a home that decide, by the digest that a record names.

    audit/evidence/<SHA-256 of the file>.json
    {"base":<digest>|null,"depth":n,"drop":[path,…],"put":{path:<base64>|null,…},"v":1}

A state is what an earlier one was, but for what is put and dropped; after `_MOST_STEPS` of them one is written whole. A
path that is put without octets stands for a file that could not be read then.

Rules kept here:

- a state is whole and synced before its digest is given back, so that no record names one that is not there;
- what is read is what was written: each file is compared with the digest by which it was named, and a path that would
  leave the folder in which it is laid out is no path of a state.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

from maia.errors import EncodingError, NotFoundError, UnavailableError, VerificationError
from maia.log.audit.files import PRIVATE_FOLDER, open_private, write_all
from maia.log.numbered import named_errors, sync_folder

EVIDENCE = "evidence"
STATE_FORMAT = 1
StateFiles = Mapping[str, bytes | None]
"""The octets of files by path; nothing for one that was there and could not be read."""
_TIP = "tip"
_MOST_STEPS = 256
_MAX_FILE = 1 << 30
_PATH = re.compile(r"[^/.\x00-\x1f\x7f][^/\x00-\x1f\x7f]{0,199}(/[^/.\x00-\x1f\x7f][^/\x00-\x1f\x7f]{0,199}){0,4}")


class EvidenceStates:
    """The states of a home; whoever decides keeps one object, so that only what changed is written."""

    def __init__(self, audit: Path) -> None:
        """Keep them in the folder of an audit."""
        self._audit = audit
        self._folder = audit / EVIDENCE
        self._tip: tuple[str, int, dict[str, str]] | None = None

    def keep(self, files: StateFiles) -> str:
        """Keep what decides now; return the digest that names it.

        Raises:
            UnavailableError: It cannot be written, so nothing is decided: ``AUDIT_UNAVAILABLE``.
        """
        known = {path: _digest(data) for path, data in files.items() if is_state_path(path)}
        try:
            with named_errors(self._folder):
                for folder in (self._audit, self._folder):
                    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
                base = self._tip or self._read_tip()
                if base is not None and base[2] == known and self._path(base[0]).exists():
                    self._tip = base
                    return base[0]
                return self._write(files, known, base)
        except (UnavailableError, OSError) as error:
            # SECURITY: as with the journal, nothing is decided that cannot be told.
            reason = error.message if isinstance(error, UnavailableError) else "it is being removed"
            raise UnavailableError(
                f"what decides cannot be kept for the audit, so nothing is done: {reason}", code="AUDIT_UNAVAILABLE"
            ) from error

    def _write(self, files: StateFiles, known: dict[str, str], base: tuple[str, int, dict[str, str]] | None) -> str:
        if base is not None and (base[1] + 1 >= _MOST_STEPS or not self._path(base[0]).exists()):
            base = None
        before = {} if base is None else base[2]
        put = {path: digest for path, digest in known.items() if before.get(path) != digest}
        value = {
            "v": STATE_FORMAT, "base": None if base is None else base[0], "depth": 0 if base is None else base[1] + 1,
            "drop": sorted(path for path in before if path not in known),
            "put": {path: _text(files[path]) for path in put},
        }  # fmt: skip
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
        name = hashlib.sha256(data).hexdigest()
        _write_file(self._path(name), data)
        sync_folder(self._folder)
        self._tip = (name, 0 if base is None else base[1] + 1, known)
        _write_file(self._folder / _TIP, json.dumps(self._tip).encode("ascii"))
        return name

    def _read_tip(self) -> tuple[str, int, dict[str, str]] | None:
        """Read what was kept last; a note that is missing or wrong costs one whole state."""
        try:
            name, depth, known = json.loads((self._folder / _TIP).read_bytes())
            found = (str(name), int(depth), {str(path): str(digest) for path, digest in known.items()})
            # SECURITY: the note is not signed; were it believed, a state would leave out what it says is known.
            held = {path: _digest(data) for path, data in read_state(self._audit, found[0]).items()}
        except (OSError, ValueError, TypeError, AttributeError, VerificationError, NotFoundError, EncodingError):
            return None
        return found if held == found[2] else None

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def read_state(audit: Path, name: str) -> dict[str, bytes | None]:
    """Read the state of a digest.

    Raises:
        NotFoundError: It is not there, or one that it goes on from: ``EVIDENCE_MISSING``.
        VerificationError: It is not what was named: ``EVIDENCE_CHANGED``.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    steps: list[dict[str, object]] = []
    wanted: object = name
    while wanted is not None:
        if not isinstance(wanted, str) or re.fullmatch("[0-9a-f]{64}", wanted) is None or len(steps) > _MOST_STEPS:
            raise VerificationError("what a decision stood on is no state", code="EVIDENCE_CHANGED")
        steps.append(_read_step(audit / EVIDENCE / f"{wanted}.json", wanted))
        wanted = steps[-1]["base"]
    found: dict[str, bytes | None] = {}
    for step in reversed(steps):
        try:
            for path in step["drop"]:  # type: ignore[attr-defined]
                found.pop(path, None)
            put = {
                str(path): None if text is None else b64decode(text, validate=True)
                for path, text in step["put"].items()  # type: ignore[attr-defined]
            }
        except (ValueError, TypeError, AttributeError) as error:
            raise VerificationError("what a decision stood on is no state", code="EVIDENCE_CHANGED") from error
        if not all(map(is_state_path, put)):
            raise VerificationError("what a decision stood on has a path that is none", code="EVIDENCE_CHANGED")
        found |= put
    return found


def state_steps(audit: Path, name: str) -> tuple[str, ...]:
    """Name the files that a state is made of, itself first; each is checked.

    Raises:
        MaiaError: As `read_state`.
    """
    found: list[str] = []
    wanted: object = name
    while isinstance(wanted, str) and len(found) <= _MOST_STEPS:
        found.append(wanted)
        wanted = _read_step(audit / EVIDENCE / f"{wanted}.json", wanted)["base"]
    return tuple(found)


def is_state_path(path: str) -> bool:
    """Tell whether a path may stand in a state: within it, and nothing hidden.

    >>> is_state_path("types/ab/cd.type"), is_state_path("../keys/broker.key"), is_state_path("a/.x")
    (True, False, False)
    """
    return _PATH.fullmatch(path) is not None


def _read_step(path: Path, name: str) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE)
    except FileNotFoundError as error:
        raise NotFoundError(
            f"what the decision stood on is not here any more: `{name[:16]}`", code="EVIDENCE_MISSING"
        ) from error
    # SECURITY: the journal is signed, and names this file by its digest.
    if hashlib.sha256(data).hexdigest() != name:
        raise VerificationError(f"what the decision stood on was changed: `{name[:16]}`", code="EVIDENCE_CHANGED")
    try:
        value = json.loads(data)
        version = value["v"]
        if type(version) is int and version > STATE_FORMAT:
            raise UnavailableError(
                f"what the decision stood on is of format {version}, and this Maia knows {STATE_FORMAT}",
                code="FORMAT_NEWER",
            )
        return {key: value[key] for key in ("base", "drop", "put")}
    except (ValueError, TypeError, KeyError) as error:
        raise VerificationError("what a decision stood on is no state", code="EVIDENCE_CHANGED") from error


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _write_file(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    descriptor = open_private(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.replace(path)
