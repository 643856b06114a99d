"""The key file of a worker: all that a machine which runs tasks needs of a domain.

    (worker-key (version 1) (name <name>) (giver <the broker's public key>) (seed <32>))

Rules kept here:

- the file is closed to others from its first octet and never replaces another, as key files are (`keys`);
- it names the broker whose work the worker does, so that nobody else's plans are opened with it;
- the path comes from the environment of the task, ``MAIA_WORKER_KEY``; the key itself from nowhere but the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, KeyFormatError, NotFoundError, UsageError
from maia.home.files import PRIVATE_FILE, open_file, read_descriptor, write_file
from maia.home.keys import MAX_KEY_FILE, check_key_name, forbid_cores
from maia.principals import KeySigner, PublicKey, public_key

WORKER_KEY = "MAIA_WORKER_KEY"
"""The variable that names the worker's key file, where tasks run."""
_LIMITS = SexpLimits(max_bytes=MAX_KEY_FILE, max_depth=3, max_atom=1024)


@dataclass(frozen=True, slots=True)
class WorkerKey:
    """A worker: its name at home, its key, and the broker whose work it does."""

    name: str
    signer: KeySigner = field(repr=False)
    giver: PublicKey

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: a private key never travels in a pickle."""
        raise TypeError("a worker's key cannot be pickled")


def write_worker_key(path: Path, key: WorkerKey) -> None:
    """Write a worker's key to a new file.

    Raises:
        UsageError: There is a file already: ``KEY_EXISTS``.
        UnavailableError: The system refused.
    """
    data = encode(
        (
            b"worker-key",
            (b"version", b"1"),
            (b"name", key.name.encode()),
            (b"giver", key.giver.raw),
            (b"seed", key.signer.export_seed()),
        )
    )
    if os.path.lexists(path) or not write_file(path, data, mode=PRIVATE_FILE, replace=False):
        raise UsageError(f"`{path}` is there already; a key is never overwritten", code="KEY_EXISTS")


def read_worker_key(path: Path) -> WorkerKey:
    """Read a worker's key.

    Raises:
        KeyFormatError: Others may touch the file or own it (``KEY_FILE_MODE``), or it is no worker's key
            (``WORKER_KEY_SHAPE``).
        NotFoundError: There is no such file.
    """
    forbid_cores()
    with open_file(path) as descriptor:
        status = os.fstat(descriptor)
        # SECURITY: asked of the open file, so that it cannot be exchanged between the question and the reading.
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise KeyFormatError(
                f"`{path}` must belong to whoever runs the tasks and be closed to others; check it, then run "
                "`chmod 600`",
                code="KEY_FILE_MODE",
            )
        data = read_descriptor(descriptor, path, limit=MAX_KEY_FILE)
    try:
        return _parsed(data)
    except (EncodingError, KeyFormatError, UsageError, UnicodeDecodeError) as error:
        raise KeyFormatError(f"`{path}` is no key of a worker", code="WORKER_KEY_SHAPE") from error


def _parsed(data: bytes) -> WorkerKey:
    match parse_canonical(data, limits=_LIMITS):
        case (
            b"worker-key",
            (b"version", b"1"),
            (b"name", bytes(name)),
            (b"giver", bytes(giver)),
            (b"seed", bytes(seed)),
        ):
            return WorkerKey(check_key_name(name.decode()), KeySigner(seed), public_key(giver))
        case _:
            raise EncodingError("not a worker's key", code="WORKER_KEY_SHAPE")


def find_worker_key(environment: Mapping[str, str]) -> WorkerKey | None:
    """Read the worker's key that an environment names; nothing where it names none.

    Raises:
        NotFoundError: There is no such file: ``NO_WORKER_KEY``.
        KeyFormatError: It is not closed to others, or no worker's key.
    """
    path = environment.get(WORKER_KEY)
    if not path:
        return None
    try:
        return read_worker_key(Path(path))
    except NotFoundError as error:
        raise NotFoundError(
            f"{WORKER_KEY} names `{path}`, and there is no such file on this machine", code="NO_WORKER_KEY"
        ) from error
