"""Which definition of each version a home accepted first: one small file a version, written once and never changed.

Rules kept here:

- there is one definition for each owner, name and version: what was accepted first is what the version means here, and
  stays so when the owner signs another one later, whatever files come to lie beside it;
- a version of which nothing was accepted yet, since its file was laid here by hand, means what verifies; when two that
  contradict each other verify, it means neither.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from maia.errors import EncodingError, NotFoundError, UncheckedError
from maia.events import TypeName
from maia.home.files import PUBLIC_FILE, read_file, write_file

_FORMAT = b"maia/1 accepted "
_DIGITS = 64


def accepted_meaning(folder: Path, name: TypeName) -> bytes | None:
    """Tell what a version means here, by the hash of what was accepted first; ``None`` when nothing was.

    Raises:
        UncheckedError: The note is damaged: nothing is known of the version until it is brought back or removed.
    """
    path = _path(folder, name)
    try:
        line = read_file(path, limit=256).removesuffix(b"\n")
    except NotFoundError:
        return None
    except EncodingError as error:
        raise UncheckedError(f"`{path}` is no note of what was accepted", code="ACCEPTED_FILE") from error
    digits = line.removeprefix(_FORMAT)
    if not line.startswith(_FORMAT) or len(digits) != _DIGITS or digits.strip(b"0123456789abcdef"):
        raise UncheckedError(f"`{path}` is no note of what was accepted", code="ACCEPTED_FILE")
    return bytes.fromhex(digits.decode("ascii"))


def accept_meaning(folder: Path, name: TypeName, meaning: bytes) -> None:
    """Note what a version means, unless that is known."""
    write_file(_path(folder, name), _FORMAT + meaning.hex().encode() + b"\n", mode=PUBLIC_FILE, replace=False)


def _path(folder: Path, name: TypeName) -> Path:
    version = hashlib.sha256(name.version.text.encode()).hexdigest()
    return folder / name.type_id.hex() / f"{version}.accepted"
