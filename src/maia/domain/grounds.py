"""On what a client's right stood when it was last proven here: its key, and the certificates behind it.

    grounds/<hash of client and type>.json

Rules kept here:

- a denial is proven only while all of that is at hand. When the client's key is another one, or a certificate is gone
  before its end, nobody knows what it would have allowed: whoever asks waits until it is back;
- a certificate that ended, that was revoked, or that the home let go of itself, leaves no doubt. One that was lost is
  let go of when somebody says so, which is told by the audit: then less is proven, and readers go on with what is;
- losing these notes makes a doubt a denial again, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import CertificatePool
from maia.domain.operations import audit_of
from maia.errors import EncodingError, MaiaError, UnavailableError
from maia.events import TypeId
from maia.home import PRIVATE_FILE, Home, list_files, make_folder, read_file, write_file
from maia.log import AuditRow
from maia.principals import CertificateId, KeyId, PublicKey, fingerprint

_FOLDER = "grounds"
_FORMAT = 1
_MAX_FILE = 16 << 20
_MAX_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class Ground:
    """A client's key, in hex, and the certificates behind its right with their ends, in ISO form; empty without one."""

    key: str
    certificates: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingCertificate:
    """A certificate that is not here any more, and whose right stood on it.

    Attributes:
        identity: Which.
        clients: What the keys are called here that held a right by it, or their fingerprints.
    """

    identity: CertificateId
    clients: tuple[str, ...]


def missing_certificates(home: Home, pool: CertificatePool, *, at: datetime) -> tuple[MissingCertificate, ...]:
    """List the certificates that readers of a home wait for."""
    names = home.folder.names
    found: dict[CertificateId, set[str]] = {}
    for file in list_files(home.path / _FOLDER, suffix=".json"):
        ground = _read(file)
        if ground is not None:
            key = KeyId(bytes.fromhex(ground.key))
            for identity in _gone(home, ground, pool, at):
                found.setdefault(identity, set()).add(names.get(key, fingerprint(key)))
    return tuple(
        MissingCertificate(identity=identity, clients=tuple(sorted(found[identity]))) for identity in sorted(found)
    )


def let_go_of(home: Home, missing: MissingCertificate, *, at: datetime) -> None:
    """Wait for a certificate no longer, and say so in the audit: what stood on it alone is a denial from now on."""
    row = AuditRow(
        at=at, kind="notice", principal=home.broker.public_key.fingerprint, type_id="",
        source=missing.identity.hex(), subject=", ".join(missing.clients), code="CERTIFICATE_LET_GO", events=0,
    )  # fmt: skip
    audit_of(home).note([row])  # INVARIANT: before it counts; what is told and not done can be done again
    home.certificates.give_up(missing.identity)


def _gone(home: Home, ground: Ground, pool: CertificatePool, at: datetime) -> Iterator[CertificateId]:
    """Give the certificates of a ground that are not here, have not ended, and were not let go of."""
    for text, ends in ground.certificates.items():
        identity = CertificateId(bytes.fromhex(text))
        if identity in pool or (ends and datetime.fromisoformat(ends) < at):
            continue
        if not home.certificates.let_go(identity):
            yield identity


def _read(path: Path) -> Ground | None:
    with suppress(MaiaError, ValueError, TypeError, KeyError):
        value = json.loads(read_file(path, limit=_MAX_FILE))
        if value.pop("format") == _FORMAT:
            return Ground(**value)
    return None


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
        return "CERTIFICATE_MISSING" if any(_gone(self._home, ground, pool, at)) else ""

    def known(self, client: str, type_id: TypeId) -> dict[str, object] | None:
        """Give what is noted of a client's right, for the record of a decision."""
        ground = self._read(client, type_id)
        return None if ground is None else asdict(ground)

    def recall(self, client: str, type_id: TypeId, known: Mapping[str, object]) -> None:
        """Take up again what was noted of a client's right when a decision was made that is repeated now.

        Raises:
            EncodingError: It is no such note: ``DECISION_SHAPE``.
        """
        key, certificates = known.get("key"), known.get("certificates")
        if not isinstance(key, str) or not isinstance(certificates, dict):
            raise EncodingError("this is no decision", code="DECISION_SHAPE")
        self._keep(client, type_id, Ground(key, {str(one): str(end) for one, end in certificates.items()}))

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
            self._keep(client, type_id, _read(self._path(client, type_id)))
        return self._known[client, type_id]

    def _keep(self, client: str, type_id: TypeId, ground: Ground | None) -> None:
        if len(self._known) >= _MAX_KEPT:
            self._known.clear()
        self._known[client, type_id] = ground

    def _path(self, client: str, type_id: TypeId) -> Path:
        name = hashlib.sha256(type_id + client.encode()).hexdigest()[:32]
        return self._home.path / _FOLDER / f"{name}.json"
