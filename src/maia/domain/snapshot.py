"""What a domain knows of its own files, kept while they stay as they are.

Rules kept here:

- a file that is new, gone or changed is seen at the next look: names, sizes, times and inodes are compared, and nothing
  is read again that is as it was;
- what time decides is not remembered beyond its time: sessions ask by the phases of certificates and statements, and a
  definition that holds no longer, or did not verify yet, is verified again;
- signatures are checked once, whatever else changes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_ISDIR
from typing import TypeAlias

from maia.authority import CertificatePool, SignatureCache, VerifiedEventType, Verifier
from maia.domain.types import check_types, why_refused
from maia.events import TypeId, TypeName
from maia.home import OWNERS_FOLDER, CertificateFolder, Home
from maia.kernel import Sessions

FileState: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""Name, inode, time and size of files."""
_TRY_AGAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The evidence of a home at one moment, and the sessions that stand on it.

    Attributes:
        pool: Its certificates.
        sessions: With its statements, its network and every type that verifies.
        types: Those types, with the bytes that were verified.
        names: Of all that the home keeps, verified or not.
        failed: Whether there were definitions that did not verify.
        at: When it was made.
    """

    pool: CertificatePool
    sessions: Sessions
    types: tuple[tuple[VerifiedEventType, bytes], ...]
    names: tuple[TypeName, ...]
    failed: bool
    at: datetime

    @property
    def verifier(self) -> Verifier:
        """Proves rights with the statements of this moment."""
        return self.sessions.verifier

    def holds_at(self, at: datetime) -> bool:
        """Tell whether the same definitions verify at another moment."""
        retry = self.failed and abs(at - self.at) >= _TRY_AGAIN
        return not retry and all(verified.holds_at(at) for verified, _ in self.types)

    def versions(self, type_id: TypeId) -> tuple[VerifiedEventType, ...]:
        """Return the verified versions of a type."""
        return tuple(verified for verified, _ in self.types if verified.event_type.type_id == type_id)

    def read_as(self, type_id: TypeId, home: Home) -> frozenset[str]:
        """Name all that is read as a type, it and those that extend it, by the ids that they have in the log."""
        types = (type_id, *self.sessions.children(type_id))
        return frozenset(identity.hex() for one in types for identity in home.wire_ids(one))

    def definition(self, type_id: TypeId, version: str) -> bytes:
        """Return the bytes of a version, as they were verified."""
        return next(
            raw
            for verified, raw in self.types
            if (verified.event_type.type_id, verified.event_type.name.version.text) == (type_id, version)
        )

    def parents(self, type_id: TypeId, version: str) -> tuple[bytes, ...]:
        """Return the bytes of the definitions that a version extends, as they were verified, the nearest first."""
        for verified, _ in self.types:
            if (verified.event_type.type_id, verified.event_type.name.version.text) == (type_id, version):
                return tuple(item.raw for item in verified.lineage[1:])
        return ()


class Snapshots:
    """Gives the snapshot of now, anew only when files or the time have changed it."""

    def __init__(self, home: Home) -> None:
        """Look at a home."""
        self._home = home
        self._signatures = SignatureCache()
        self._folder: CertificateFolder = home.certificates
        self._verifier: tuple[FileState, Verifier] | None = None
        self._kept: tuple[FileState, Snapshot] | None = None

    def now(self, *, at: datetime) -> Snapshot:
        """Give the snapshot for an instant.

        Raises:
            MaiaError: Certificates or statements cannot be read; nothing is known then.
        """
        path = self._home.path
        pool = self._folder.current_pool()
        verifier = self._verify_with(file_state(path / "statements") + file_state(path / OWNERS_FOLDER))
        state = file_state(path / "types", depth=2) + file_state(path / "keys")
        kept = self._kept
        if kept is None or kept[0] != state or kept[1].verifier is not verifier or not kept[1].holds_at(at):
            kept = self._kept = (state, self._make(pool, verifier, at))
        elif kept[1].pool is not pool:
            kept = self._kept = (state, replace(kept[1], pool=pool))
        return kept[1]

    def _verify_with(self, state: FileState) -> Verifier:
        if self._verifier is None or self._verifier[0] != state:
            book = self._home.statements.load()
            self._verifier = (state, Verifier(statements=book, signatures=self._signatures, clock=time.monotonic))
        return self._verifier[1]

    def _make(self, pool: CertificatePool, verifier: Verifier, at: datetime) -> Snapshot:
        home = self._home
        known = home.public_path(home.config.domain).exists()
        sessions = Sessions(
            verifier, network=home.network, domain=home.key(home.config.domain).key_id if known else None,
            broker=home.key(home.config.broker), surroundings=home.surroundings,
        )  # fmt: skip
        found: list[tuple[VerifiedEventType, bytes]] = []
        failed = False
        names: list[TypeName] = []
        installed: set[TypeName] = set()
        for unverified, verified in check_types(self._home, verifier=verifier, at=at):
            names.append(unverified.definition.name)
            if verified is None:
                failed = True
                sessions.refuse(
                    unverified.definition.name, why_refused(self._home, unverified, verifier=verifier, at=at)
                )
            else:
                # INVARIANT: what sessions judge by is what plans carry, byte for byte.
                name = verified.event_type.name
                if name not in installed:
                    installed.add(name)
                    sessions.install(verified)
                    found.append((verified, unverified.raw))
        return Snapshot(pool, sessions, tuple(found), tuple(dict.fromkeys(names)), failed, at)


def file_state(path: Path, *, depth: int = 1) -> FileState:
    """Sum up what a file, or the files of a folder, look like, to see that they changed."""
    found: list[tuple[str, int, int, int]] = []
    try:
        seen = path.stat()
        found.append((str(path), seen.st_ino, seen.st_mtime_ns, seen.st_size))
        if depth and S_ISDIR(seen.st_mode):
            for item in sorted(path.iterdir()):
                found += file_state(item, depth=depth - 1)
    except OSError:
        pass  # gone since it was listed, which is a state as well
    return tuple(found)
