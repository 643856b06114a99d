"""The directory of a home: unique names for objects and principals, found by anyone, changed by right.

    directory/<digest of the name>.cert      an entry: the domain says what the name stands for

Rules kept here:

- a name stands for one thing. Whoever comes second is refused, also where both come at once, and also where the two
  names differ by case alone;
- to add or remove an entry takes the right ``register`` on the directory, proven like any other; to look one up takes
  nothing;
- an entry is signed by the domain's key. One that is not, or stands under another name, is as if it were not there,
  and looking it up says so.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import ObjectDescriptor, ObjectKind
from maia.domain.chains import explain_chains
from maia.domain.operations import refusals
from maia.domain.possession import ProvenClient
from maia.domain.questions import RightQuestion
from maia.encoding import Sexp, printable
from maia.errors import DamagedError, DeniedError, MaiaError, NotFoundError, UncheckedError, UsageError
from maia.home import Folder, Home, list_files, make_folder, read_file, words, write_file
from maia.principals import (
    Authorisation,
    Certificate,
    KeyHash,
    KeyId,
    PublicKey,
    Signer,
    issue,
    parse_certificate,
    verify_certificate,
)

ENTRY = b"maia-directory"
DIRECTORY_NAME = "directory"
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PRINCIPAL = b"principal"
_MAX_ENTRY, _MAX_ENTRIES = 1 << 16, 100_000
_FOLDER, _SUFFIX = "directory", ".cert"
_PUBLIC_FILE, _PUBLIC_FOLDER = 0o644, 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryEntry:
    """What a name stands for: an object, or the key of a principal."""

    name: str
    target: ObjectDescriptor | PublicKey

    def to_json(self, folder: Folder) -> dict[str, object]:
        """Give it for machines."""
        if isinstance(self.target, PublicKey):
            return {"name": self.name, "principal": self.target.raw.hex(), "object": None}
        return {"name": self.name, "principal": None, "object": words.show_object(self.target, folder)}


def directory_of(home: Home) -> ObjectDescriptor:
    """Give the descriptor on which rights to change the directory are given."""
    owner = home.key(home.config.domain).key_id
    return ObjectDescriptor(kind=ObjectKind.DIRECTORY, owner=owner, name=DIRECTORY_NAME)


def prove_object_right(home: Home, client: ProvenClient, named: ObjectDescriptor, right: str, *, at: datetime) -> None:
    """Prove a right of a client on an object of this home, with its conditions.

    Raises:
        DeniedError: It lacks it: ``OBJECT_DENIED``.
    """
    folder = home.folder
    question = RightQuestion(
        home=folder, request=named.request(right), principal=client.key, pool=folder.pool(), book=folder.book(),
        roots=(), at=at,
    )  # fmt: skip
    found = question.decide().grant
    if found is None or not explain_chains(question, found).usable:
        told = f"`{printable(client.name)}` lacks the right {right} on the {named.kind.value}"
        raise DeniedError(told, code="OBJECT_DENIED")


def add_entry(home: Home, client: ProvenClient, entry: DirectoryEntry, signer: Signer, *, at: datetime) -> None:
    """Register a name.

    Raises:
        DeniedError: The client may not: ``OBJECT_DENIED``.
        UsageError: The name is none (``DIRECTORY_NAME``), or stands for something already (``DIRECTORY_TAKEN``).
    """
    if not _NAME.fullmatch(entry.name):
        raise UsageError("a name has letters, digits, `.`, `_` and `-`, 128 at most", code="DIRECTORY_NAME")
    with refusals(home, client, f"{DIRECTORY_NAME}:{entry.name}", at=at):
        prove_object_right(home, client, directory_of(home), "register", at=at)
    path = _path(home.folder, entry.name)
    make_folder(path.parent, mode=_PUBLIC_FOLDER)
    # SECURITY: put only where nothing is, in one step, so that of two at once one is refused.
    if not write_file(path, issue(_body(entry, signer.public_key), signer).raw, mode=_PUBLIC_FILE, replace=False):
        raise UsageError(f"`{entry.name}` stands for something already", code="DIRECTORY_TAKEN")


def remove_entry(home: Home, client: ProvenClient, name: str, *, at: datetime) -> None:
    """Take a name out of the directory.

    Raises:
        DeniedError: The client may not: ``OBJECT_DENIED``.
        NotFoundError: There is none: ``DIRECTORY_NONE``.
    """
    with refusals(home, client, f"{DIRECTORY_NAME}:{name}", at=at):
        prove_object_right(home, client, directory_of(home), "register", at=at)
    try:
        _path(home.folder, name).unlink()
    except FileNotFoundError as error:
        raise NotFoundError(f"the directory has no `{printable(name)}`", code="DIRECTORY_NONE") from error


def find_entry(home: Home, name: str) -> DirectoryEntry:
    """Look a name up.

    Raises:
        NotFoundError: There is none: ``DIRECTORY_NONE``.
        DamagedError: What lies there is no entry of this domain: ``DIRECTORY_ENTRY``.
    """
    try:
        raw = read_file(_path(home.folder, name), limit=_MAX_ENTRY)
    except NotFoundError as error:
        raise NotFoundError(f"the directory has no `{printable(name)}`", code="DIRECTORY_NONE") from error
    found = _read(raw, home.key(home.config.domain))
    if found is None or found.name.casefold() != name.casefold():
        raise DamagedError(f"what lies under `{printable(name)}` was not signed for it", code="DIRECTORY_ENTRY")
    return found


def list_entries(home: Home) -> tuple[DirectoryEntry, ...]:
    """List the directory by name; files that are no entries of this domain are left out.

    Raises:
        UncheckedError: There are too many.
    """
    paths = list_files(home.folder.path / _FOLDER, suffix=_SUFFIX)
    if len(paths) > _MAX_ENTRIES:
        raise UncheckedError(f"more than {_MAX_ENTRIES} entries in one directory", code="LIMIT_EXCEEDED")
    key = home.key(home.config.domain)
    read = [(path, _read(read_file(path, limit=_MAX_ENTRY), key)) for path in paths]
    found = [entry for path, entry in read if entry is not None and path == _path(home.folder, entry.name)]
    return tuple(sorted(found, key=lambda entry: entry.name))


def _path(folder: Folder, name: str) -> Path:
    return folder.path / _FOLDER / f"{hashlib.sha256(name.casefold().encode('utf-8')).hexdigest()}{_SUFFIX}"


def _body(entry: DirectoryEntry, domain: PublicKey) -> Authorisation:
    """Write an entry as a certificate that gives nothing: nobody asks for a right of this form."""
    target, name = entry.target, entry.name.encode()
    if isinstance(target, PublicKey):
        return Authorisation(issuer=domain, subject=target, delegate=False, tag=(ENTRY, name, _PRINCIPAL))
    version = () if target.version is None else (target.version.encode(),)
    tag: Sexp = (ENTRY, name, target.kind.value.encode(), target.name.encode(), *version)
    return Authorisation(issuer=domain, subject=KeyHash(target.owner), delegate=False, tag=tag)


def _read(raw: bytes, domain: PublicKey) -> DirectoryEntry | None:
    try:
        certificate: Certificate = verify_certificate(parse_certificate(raw))
        body = certificate.body
        # SECURITY: only what the domain signed; a file that somebody put there names nothing.
        if not isinstance(body, Authorisation) or body.issuer != domain:
            return None
        return _entry(body)
    except (MaiaError, ValueError):
        return None


def _entry(body: Authorisation) -> DirectoryEntry | None:
    match body.tag, body.subject:
        case (b"maia-directory", bytes() as name, b"principal"), PublicKey() as key:
            return DirectoryEntry(name=name.decode(), target=key)
        case (b"maia-directory", bytes() as name, bytes() as kind, bytes() as instance, *rest), KeyHash(owner):
            version = rest[0].decode() if rest and isinstance(rest[0], bytes) else None
            named = ObjectDescriptor(
                kind=ObjectKind(kind.decode()), owner=KeyId(owner), name=instance.decode(), version=version
            )
            return DirectoryEntry(name=name.decode(), target=named)
        case _:
            return None
