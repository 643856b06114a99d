"""On what a client's right stood when it was last proven here: its key, and the certificates behind it.

    grounds/<hash of client and type>.json

Rules kept here:

- a denial is proven only while all of that is at hand. When the client's key is another one, or a certificate is gone
  before its end, nobody knows what it would have allowed: whoever asks waits until it is back;
- a certificate that ended, that was revoked, or that the home let go of itself, leaves no doubt;
- losing these notes makes a doubt a denial again, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import CertificatePool
from maia.errors import MaiaError, UnavailableError
from maia.events import TypeId
from maia.home import PRIVATE_FILE, Home, make_folder, read_file, write_file
from maia.principals import CertificateId, PublicKey

_FOLDER = "grounds"
_FORMAT = 1
_MAX_FILE = 16 << 20
_MAX_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class Ground:
    """A client's key, in hex, and the certificates behind its right with their ends, in ISO form; empty without one."""

    key: str
    certificates: dict[str, str]


class Grounds:
    """The notes of a home; each is read once and written when it changed."""

    def __init__(self, home: Home) -> None:
        """Keep them in a home."""
        self._home = home
        self._known: dict[tuple[str, TypeId], Ground | None] = {}

    def lost(self, client: str, type_id: TypeId, key: PublicKey, pool: CertificatePool, *, at: datetime) -> str:
        """Tell why a denial would be a doubt: ``CLIENT_KEY_CHANGED`` or ``CERTIFICATE_MISSING``; empty when it is none.

        Args:
            client: What its key is called here.
            type_id: Of which type.
            key: The key that it has now.
            pool: The certificates that are here now.
            at: Now.
        """
        ground = self._read(client, type_id)
        if ground is None:
            return ""
        if ground.key != key.key_id.hex():
            return "CLIENT_KEY_CHANGED"
        gone = (
            identity
            for identity, ends in ground.certificates.items()
            if CertificateId(bytes.fromhex(identity)) not in pool and (not ends or datetime.fromisoformat(ends) >= at)
        )
        held = self._home.certificates
        missing = any(not held.let_go(CertificateId(bytes.fromhex(identity))) for identity in gone)
        return "CERTIFICATE_MISSING" if missing else ""

    def note(
        self, client: str, type_id: TypeId, key: PublicKey, chains: Iterable[CertificateId], pool: CertificatePool
    ) -> None:
        """Note on what a right stands that was proven now."""
        ends = {identity: pool.get(identity).body.period.not_after for identity in sorted(set(chains))}
        found = Ground(
            key.key_id.hex(),
            {identity.hex(): "" if end is None else end.isoformat() for identity, end in ends.items()},
        )
        if found == self._read(client, type_id):
            return
        self._keep(client, type_id, found)
        with suppress(UnavailableError):  # a disk that is full or closed to writing stops no reader
            make_folder(self._home.path / _FOLDER, mode=0o700)
            data = json.dumps({"format": _FORMAT, **asdict(found)}).encode()
            write_file(self._path(client, type_id), data, mode=PRIVATE_FILE)

    def _read(self, client: str, type_id: TypeId) -> Ground | None:
        if (client, type_id) not in self._known:
            ground = None
            with suppress(MaiaError, ValueError, TypeError, KeyError):
                value = json.loads(read_file(self._path(client, type_id), limit=_MAX_FILE))
                if value.pop("format") == _FORMAT:
                    ground = Ground(**value)
            self._keep(client, type_id, ground)
        return self._known[client, type_id]

    def _keep(self, client: str, type_id: TypeId, ground: Ground | None) -> None:
        if len(self._known) >= _MAX_KEPT:
            self._known.clear()
        self._known[client, type_id] = ground

    def _path(self, client: str, type_id: TypeId) -> Path:
        name = hashlib.sha256(type_id + client.encode()).hexdigest()[:32]
        return self._home.path / _FOLDER / f"{name}.json"
