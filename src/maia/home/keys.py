"""Key files: private ones sealed and for their owner's eyes alone, public ones as text.

Rules kept here:

- a private key file has mode 0600 from its first octet, and never replaces another file;
- one that group or others may touch, or that belongs to somebody else, is not read: its key may be known or planted;
- the passphrase is asked for only when the file is sealed, and comes from a function, never from an argument list;
- a process that reads a private key leaves no core behind when it dies, nor do the programs it starts.
"""

from __future__ import annotations

import os
import re
import resource
import secrets
from collections.abc import Callable
from pathlib import Path

from maia.encoding import SexpLimits, format_advanced, parse_advanced, parse_canonical
from maia.errors import EncodingError, KeyFormatError, UsageError
from maia.home.files import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    PUBLIC_FILE,
    make_folder,
    open_file,
    read_descriptor,
    read_file,
    write_file,
)
from maia.home.formats import newer_format
from maia.principals import (
    KeySigner,
    PublicKey,
    is_sealed,
    open_private_key,
    parse_principal,
    plain_private_key,
    seal_private_key,
)

MAX_KEY_FILE = 4096
KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What names a key: it becomes a file's name, so nothing in it may lead elsewhere."""
_SALT, _NONCE = 16, 12
_KEY_ITSELF = re.compile(r"[0-9a-fA-F]{64}|[a-zA-Z2-7]{4}(-[a-zA-Z2-7]{4}){3}")


def check_key_name(name: str) -> str:
    """Refuse a name that would not stay in its folder.

    Raises:
        UsageError: It has other characters than letters, digits, dots, dashes and underscores, or too many of them; or
            it is written as a key itself is, by its digits or its fingerprint.
    """
    # SECURITY: whoever names a key by its fingerprint must never get the key of somebody who took that for a name.
    if is_key_itself(name):
        raise UsageError(f"`{name}` cannot name a key: it is written as a key's own fingerprint is", code="KEY_NAME")
    if not KEY_NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` cannot name a key; use letters, digits, `.`, `-` and `_`, at most 64", code="KEY_NAME"
        )
    return name


def is_key_itself(text: str) -> bool:
    """Tell whether a text has the form of a key's digits or fingerprint, which no name may have.

    >>> is_key_itself("abcd-efgh-ijkl-mnop"), is_key_itself("st-marys")
    (True, False)
    """
    return _KEY_ITSELF.fullmatch(text) is not None


def write_key(path: Path, signer: KeySigner, *, passphrase: str | None) -> None:
    """Write a private key to a new file.

    Args:
        path: Where; folders that are missing are made for the owner alone.
        signer: The key.
        passphrase: What to seal it under; ``None`` writes it unsealed, and the file says so.

    Raises:
        UsageError: There is a file already (``KEY_EXISTS``), or the passphrase is empty.
        UnavailableError: The system refused.
    """
    if os.path.lexists(path):
        raise _exists(path)
    seed = signer.export_seed()
    if passphrase is None:
        data = plain_private_key(seed)
    else:
        data = seal_private_key(seed, passphrase, salt=secrets.token_bytes(_SALT), nonce=secrets.token_bytes(_NONCE))
    make_folder(path.parent, mode=PRIVATE_FOLDER)
    if not write_file(path, data, mode=PRIVATE_FILE, replace=False):
        raise _exists(path)


def read_key(path: Path, *, passphrase: Callable[[], str] | None = None) -> KeySigner:
    """Read a private key.

    Args:
        path: A file that `write_key` wrote.
        passphrase: Called once, and only when the file is sealed.

    Raises:
        KeyFormatError: ``KEY_FILE_MODE`` when others may touch the file or own it, ``KEY_PASSPHRASE`` when the
            passphrase is wrong or missing or the file is damaged, other codes when it is no key file.
        NotFoundError: There is no such file.
        UnavailableError: A newer Maia wrote it: ``FORMAT_NEWER``.
    """
    forbid_cores()
    with open_file(path) as descriptor:
        status = os.fstat(descriptor)
        # SECURITY: asked of the open file, so that it cannot be exchanged between the question and the reading.
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise KeyFormatError(
                f"`{path}` must belong to you and be closed to others; check it, then run `chmod 600`",
                code="KEY_FILE_MODE",
            )
        data = read_descriptor(descriptor, path, limit=MAX_KEY_FILE)
    try:
        secret = passphrase() if is_sealed(data) and passphrase is not None else None
        return KeySigner(open_private_key(data, secret))
    except KeyFormatError as error:
        if error.code == "KEY_FILE_VERSION":
            raise newer_format(str(path), found=_format_of(data), known=1) from error
        raise


def _format_of(data: bytes) -> int:
    match parse_canonical(data):
        case (b"private-key", (b"version", bytes() as number), *_) if number.isdigit():
            return int(number)
        case _:
            return 0


def forbid_cores() -> None:
    """Let this process and those it starts leave no image of their memory when they die, for good."""
    # SECURITY: what a process holds, keys and opened values, must not come to rest because it crashed.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def write_public_key(path: Path, key: PublicKey) -> None:
    """Write a public key as text that people can read, mode 0644, in place of what was there."""
    make_folder(path.parent, mode=PRIVATE_FOLDER)
    write_file(path, f"{format_advanced(key.to_sexp())}\n".encode("ascii"), mode=PUBLIC_FILE)


def read_public_key(path: Path) -> PublicKey:
    """Read a public key, with the full test of its point.

    Raises:
        KeyFormatError: The file holds no public key, or one that is refused.
        NotFoundError: There is no such file.
    """
    data = read_file(path, limit=MAX_KEY_FILE)
    try:
        key = parse_principal(parse_advanced(data.decode("ascii"), limits=SexpLimits(max_bytes=MAX_KEY_FILE)))
    except (EncodingError, UnicodeDecodeError) as error:
        raise KeyFormatError(f"`{path}` is no public key file", code="KEY_FILE_SHAPE") from error
    if not isinstance(key, PublicKey):
        raise KeyFormatError(f"`{path}` is no public key file", code="KEY_FILE_SHAPE")
    return PublicKey.import_(key.raw)


def _exists(path: Path) -> UsageError:
    return UsageError(f"`{path}` is there already; a key is never overwritten", code="KEY_EXISTS")
