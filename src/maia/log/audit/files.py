"""The files of an audit: its journal, the head that the home remembers, and those of a former audit.

audit/journal/<number of its first entry>.jsonl     entries, one a line, see `entries`
audit/journal/torn-*                                pieces of lines that a crash left, put aside
audit/date=*/*.parquet                              rows of a former audit, which had no journal
audit-head                                          the newest head, remembered outside of the audit
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maia.errors import MaiaError
from maia.log.audit.entries import Open, is_end, row_from_json, row_to_json, without_result
from maia.log.audit.notes import Checkpoint, parse_checkpoint, verify_checkpoint
from maia.log.audit.tree import Frontier
from maia.principals import PublicKey

JOURNAL = "journal"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_MAX_HEAD = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest entry as the home remembers it.

    Attributes:
        number: Its number.
        digest: Its digest.
        signature: The broker's, that the journal ends there; no entry holds it.
        file: The file it is in.
        size: Where that file ended.
        waiting: The intents that had no result then.
        checkpoint: What was stated of the audit then, signed; nothing in a head of a Maia that stated nothing.
        edge: The right edge of the tree over the entries, which the checkpoint's root vouches for.
    """

    number: int
    digest: str
    signature: bytes
    file: str = ""
    size: int = 0
    waiting: dict[int, Open] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    edge: Frontier | None = None


def journal_files(folder: Path) -> list[Path]:
    """List the files of the journal of an audit, in order."""
    return sorted(path for path in (folder / JOURNAL).glob("*.jsonl") if path.stem.isdigit())


def earlier_files(folder: Path) -> list[Path]:
    """List the files of a former audit, which had no journal."""
    return sorted(folder.glob("date=*/*.parquet"))


def earlier_digest(folder: Path) -> tuple[int, str]:
    """Count the files of a former audit, and name them and what they hold by one digest."""
    found = hashlib.sha256()
    paths = earlier_files(folder)
    for path in paths:
        found.update(f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return len(paths), found.hexdigest()


def open_private(path: Path, flags: int) -> int:
    """Open a file that only its owner reads, from its first octet on."""
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_head(path: Path, key: PublicKey) -> Head | None:
    """Read the remembered head; nothing when there is none that the broker's key signed."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_MAX_HEAD))
        waiting = {
            int(number): Open(left=int(left, 16), process=process, row=row_from_json(row))
            for number, (left, process, row) in value["waiting"].items()
        }
        head = Head(
            number=int(value["n"]), digest=str(value["digest"]), signature=b64decode(value["sig"], validate=True),
            file=str(value["file"]), size=int(value["size"]), waiting=waiting, **_stated(value, key),
        )  # fmt: skip
        return head if is_end(head.number, head.digest, head.signature, key) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _stated(value: dict[str, Any], key: PublicKey) -> dict[str, Any]:
    """Read what was stated of the audit; nothing when the broker did not sign just that."""
    try:
        checkpoint = verify_checkpoint(parse_checkpoint(value["checkpoint"].encode()), key)
        edge = Frontier(int(value["n"]) + 1, tuple(bytes.fromhex(one) for one in value["edge"]))
        # SECURITY: the edge is not signed itself; were it believed, whoever writes files would choose what is signed.
        if checkpoint.size != edge.size or not edge.is_whole() or edge.root() != checkpoint.root:
            return {}
    except (KeyError, AttributeError, TypeError, ValueError, MaiaError):
        return {}
    return {"checkpoint": checkpoint, "edge": edge}


def write_head(path: Path, head: Head) -> None:
    """Remember a head, whole; a power cut may leave an older one, which the journal continues."""
    waiting = {
        str(number): [f"{item.left:x}", item.process, row_to_json(without_result(item.row, at=item.row.at))]
        for number, item in head.waiting.items()
    }
    value = {
        "v": 1, "n": head.number, "digest": head.digest, "sig": b64encode(head.signature).decode(), "file": head.file,
        "size": head.size, "waiting": waiting,
    }  # fmt: skip
    if head.checkpoint is not None and head.edge is not None:
        value |= {"checkpoint": head.checkpoint.text, "edge": [one.hex() for one in head.edge.nodes]}
    part = path.with_name(f".{path.name}.part")
    descriptor = open_private(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(descriptor, json.dumps(value).encode())
    finally:
        os.close(descriptor)
    part.replace(path)
