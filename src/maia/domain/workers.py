"""The workers of a domain: who may run its tasks on other machines, and what they are given for it.

A worker is a principal. Its broker says so by a name certificate, ``workers``, which ends, and which the broker's list
may revoke. Rules kept here:

- a worker counts only while the name verifies, on lists that are in force, when a plan is made;
- once a broker has named a worker, every plan that leaves this process is sealed, also when nobody is in the group any
  more: a group that emptied is no reason to hand out the home;
- the private key of a worker leaves in a file for its machine, and is kept nowhere here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import CertificatePool, Verifier
from maia.domain.grants import draft_revocation, sign_revocation
from maia.domain.lists import assure_list
from maia.errors import NotFoundError, UsageError
from maia.home import Folder, Home, WorkerKey, check_key_name, write_public_key, write_worker_key
from maia.kernel import WORKERS, MemberNames
from maia.principals import (
    Certificate,
    KeySigner,
    Naming,
    OnlineTest,
    Period,
    PublicKey,
    TestKind,
    UnverifiedCertificate,
    issue,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWorker:
    """Somebody whom the broker named as a worker.

    Attributes:
        name: What its key is called here.
        key: Its key.
        until: When the name ends.
        in_force: Whether plans are sealed to it now.
        certificate: The certificate that names it.
    """

    name: str
    key: PublicKey
    until: datetime | None
    in_force: bool
    certificate: UnverifiedCertificate

    def to_json(self) -> dict[str, object]:
        """Describe it for machines."""
        return {
            "name": self.name, "fingerprint": self.key.fingerprint, "in_force": self.in_force,
            "until": None if self.until is None else self.until.isoformat(),
            "certificate": self.certificate.certificate_id.hex(),
        }  # fmt: skip


def new_worker(home: Home, name: str, out: Path, *, until: datetime, at: datetime) -> Certificate:
    """Make a key for a worker, write it out for its machine, and name it in the broker's group.

    Args:
        home: Whose worker.
        name: What it is called here.
        out: Where its key file goes; it is not kept here.
        until: When it ceases to be one.
        at: Now.

    Raises:
        UsageError: There is a key of this name or a file (``KEY_EXISTS``), or the end is not ahead (``WORKER_UNTIL``).
    """
    folder, broker = home.folder, home.broker
    check_key_name(name)
    if folder.key_path(name).exists() or folder.public_path(name).exists():
        raise UsageError(f"there is a key `{name}` already", code="KEY_EXISTS")
    if until <= at:
        raise UsageError("a worker is named until a moment that is to come", code="WORKER_UNTIL")
    signer = KeySigner.generate()
    write_worker_key(out, WorkerKey(name, signer, broker.public_key))
    write_public_key(folder.public_path(name), signer.public_key)
    body = Naming(
        issuer=broker.public_key, name=WORKERS, subject=signer.public_key,
        period=Period(not_before=at.replace(microsecond=0), not_after=until.replace(microsecond=0)),
        tests=(OnlineTest(TestKind.CRL, broker.public_key),),
    )  # fmt: skip
    made = issue(body, broker)
    folder.certificates.add(made)
    assure_list(folder, broker, at=at)  # without a list nobody could say that it was not revoked
    return made


def list_workers(home: Home, *, at: datetime) -> tuple[NamedWorker, ...]:
    """List all whom the broker named, by name; also those whom it does not count any more."""
    folder = home.folder
    pool = folder.pool()
    members = _members(home, pool, home.verifier(), at=at)
    found = []
    for certificate in pool:
        body, keys = certificate.body, folder.keys.items()
        if isinstance(body, Naming) and body.issuer == home.key(home.config.broker) and body.name == WORKERS:
            for name, key in keys:
                if isinstance(body.subject, PublicKey) and key == body.subject:
                    found.append(NamedWorker(
                        name=name, key=key, until=body.period.not_after, in_force=key in members,
                        certificate=certificate,
                    ))  # fmt: skip
    return tuple(sorted(found, key=lambda worker: worker.name))


def revoke_worker(home: Home, name: str, *, at: datetime) -> NamedWorker:
    """Put a worker's name on the broker's list: the next plan is not for it.

    Raises:
        NotFoundError: The broker named no such worker: ``NO_SUCH_WORKER``.
        UsageError: It is on the list already: ``REVOKED_BEFORE``.
    """
    found = [worker for worker in list_workers(home, at=at) if worker.name == name]
    if not found:
        raise NotFoundError(f"there is no worker `{name}`; `maia worker list` shows them", code="NO_SUCH_WORKER")
    folder = Folder(home.path)
    for worker in found:
        draft = draft_revocation(folder, worker.certificate, at=at)
        sign_revocation(folder, draft, home.broker, at=at)
    return found[0]


def has_workers(home: Home, pool: CertificatePool) -> bool:
    """Tell whether the broker ever named a worker, as far as is known here."""
    return (home.key(home.config.broker).key_id, WORKERS) in pool.namings


def workers_of(home: Home, pool: CertificatePool, verifier: Verifier, *, at: datetime) -> tuple[PublicKey, ...]:
    """List the keys of those who are workers now."""
    return tuple(sorted(_members(home, pool, verifier, at=at), key=lambda key: key.key_id))


def _members(home: Home, pool: CertificatePool, verifier: Verifier, *, at: datetime) -> set[PublicKey]:
    broker = home.key(home.config.broker).key_id
    members = MemberNames(pool, verifier=verifier, at=at).members(broker, WORKERS)
    return {key for key in home.folder.keys.values() if key.key_id in members}
