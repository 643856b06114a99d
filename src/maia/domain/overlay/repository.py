"""The code repository of a home: pieces of code by their digest, handed out for credentials that name them.

    code/<digest>.wasm|.wat|.py

Rules kept here:

- code is known by the digest of its octets, and what is handed out has that digest;
- to put code there takes the right ``put`` on the repository;
- a credential of the repository, with the right ``exchange``, is exchanged for one of a single piece of code: by its
  owner, once, and only where the security manager's policy gives that piece to it. The old one is void then;
- code is handed out to the owner of a credential that names it, and to nobody for anything else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import ClientDescriptor, ClientKind, ObjectDescriptor, ObjectKind, OverlayCredential
from maia.domain.operations import refusals
from maia.domain.overlay.directory import find_entry, prove_object_right
from maia.domain.overlay.presented import SignerOf, check_own, replace_credential
from maia.domain.overlay.security_manager import decide_gift, period_of
from maia.domain.possession import ProvenClient
from maia.errors import DamagedError, DeniedError, NotFoundError, UsageError
from maia.home import Home, list_files, locked, make_folder, read_file, words, write_file
from maia.principals import Certificate, OnlineTest, TestKind

REPOSITORY_NAME = "code"
CODE_SUFFIXES = (".wasm", ".wat", ".py")
MAX_CODE = 1 << 24
_FOLDER = "code"
_PUBLIC_FILE, _PUBLIC_FOLDER = 0o644, 0o755
_DIGEST = "sha256:"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePiece:
    """A piece of code in the repository: ``sha256:`` and the digest, its ending, and its octets' number."""

    name: str
    suffix: str
    octets: int


def repository_of(home: Home) -> ObjectDescriptor:
    """Give the descriptor of a home's repository, which its credentials name."""
    owner = home.key(home.config.domain).key_id
    return ObjectDescriptor(kind=ObjectKind.REPOSITORY, owner=owner, name=REPOSITORY_NAME)


def put_code(home: Home, client: ProvenClient, file: Path, *, at: datetime) -> CodePiece:
    """Put a handler into the repository; one that is there already stays.

    Raises:
        DeniedError: The client may not: ``OBJECT_DENIED``.
        UsageError: It has none of the endings of code: ``HANDLER_NAME``.
        MalformedError: It is no handler: ``HANDLER_CODE``.
    """
    from maia.domain.handlers import open_handler  # noqa: PLC0415 - brings the engine of WebAssembly

    repository = repository_of(home)
    with refusals(home, client, words.show_object(repository, home.folder), at=at):
        prove_object_right(home, client, repository, "put", at=at)
    if file.suffix not in CODE_SUFFIXES:
        raise UsageError(f"code is a file that ends in {', '.join(CODE_SUFFIXES)}", code="HANDLER_NAME")
    handler = open_handler(str(file))
    handler.prepare()
    name, data = handler.name, read_file(file, limit=MAX_CODE)
    if name != _name(data):
        raise DamagedError(f"`{file.name}` changed while it was read", code="CODE_DAMAGED")
    path = home.folder.path / _FOLDER / f"{name.removeprefix(_DIGEST)}{file.suffix}"
    make_folder(path.parent, mode=_PUBLIC_FOLDER)
    write_file(path, data, mode=_PUBLIC_FILE, replace=False)
    return CodePiece(name=name, suffix=file.suffix, octets=len(data))


def list_code(home: Home) -> tuple[CodePiece, ...]:
    """List the repository; anyone may."""
    paths = [path for suffix in CODE_SUFFIXES for path in list_files(home.folder.path / _FOLDER, suffix=suffix)]
    return tuple(
        CodePiece(name=f"{_DIGEST}{path.stem}", suffix=path.suffix, octets=path.stat().st_size)
        for path in sorted(paths)
    )


def exchange_for_code(
    home: Home, client: ProvenClient, credential: Certificate, wanted: str, signer_of: SignerOf, *, at: datetime
) -> Certificate:
    """Exchange a credential of this repository for one that names a piece of code.

    Args:
        home: Whose repository, policy and lists.
        client: Whose the credential is.
        credential: It names the repository, and is void afterwards.
        wanted: The code: ``sha256:…``, or its name in the directory.
        signer_of: Opens the private keys of the domain, and of whoever's list the credential obeys.
        at: Now.

    Raises:
        DeniedError: It is somebody else's, or of something else (``CREDENTIAL_NOT_OWN``, ``CREDENTIAL_REFUSED``), or no
            policy gives this code to the client (``CREDENTIAL_DENIED``).
        NotFoundError: There is no such code.
    """
    repository, domain = repository_of(home), home.key(home.config.domain)
    with (
        refusals(home, client, words.show_object(repository, home.folder), at=at),
        locked(home.folder.path / "credentials"),
    ):
        if OverlayCredential.of(credential.body).object != repository:
            raise DeniedError("the credential is not one of this repository", code="CREDENTIAL_REFUSED")
        check_own(home.folder, credential, client, "exchange", at=at)
        named = _find(home, wanted)
        rule = decide_gift(home, client, named, at=at)
        made = OverlayCredential(
            issuer=domain, object=named, client=ClientDescriptor(kind=ClientKind.PERSON, key=client.key),
            general=frozenset(rule.rights) - named.kind.rights, rights=frozenset(rule.rights) & named.kind.rights,
            period=period_of(rule, at=at), tests=(OnlineTest(TestKind.CRL, domain, ()),),
        )  # fmt: skip
        return replace_credential(home.folder, credential, made.body(), signer_of, at=at)


def fetch_code(home: Home, client: ProvenClient, credential: Certificate, *, at: datetime) -> tuple[CodePiece, bytes]:
    """Hand out the code that a credential names.

    Raises:
        DeniedError: The credential is somebody else's, or gives no right to this code here.
        NotFoundError: It is gone: ``CODE_NONE``.
        DamagedError: What lies there is something else: ``CODE_DAMAGED``.
    """
    named = OverlayCredential.of(credential.body).object
    with refusals(home, client, words.show_object(named, home.folder), at=at):
        if named.kind is not ObjectKind.CODE or named.owner != repository_of(home).owner:
            raise DeniedError("the credential names no code of this repository", code="CREDENTIAL_REFUSED")
        check_own(home.folder, credential, client, "fetch", at=at)
    path = _place(home, named.name)
    data = read_file(path, limit=MAX_CODE)
    # SECURITY: what was put there is what the credential names, or nothing.
    if _name(data) != named.name:
        raise DamagedError(f"what lies under `{named.name}` is other code", code="CODE_DAMAGED")
    return CodePiece(name=named.name, suffix=path.suffix, octets=len(data)), data


def _find(home: Home, wanted: str) -> ObjectDescriptor:
    if wanted.startswith(_DIGEST):
        named = ObjectDescriptor(kind=ObjectKind.CODE, owner=repository_of(home).owner, name=wanted)
    else:
        target = find_entry(home, wanted).target
        own = repository_of(home).owner
        if not isinstance(target, ObjectDescriptor) or (target.kind, target.owner) != (ObjectKind.CODE, own):
            raise NotFoundError(f"`{wanted}` is no code", code="CODE_NONE")
        named = target
    _place(home, named.name)
    return named


def _place(home: Home, name: str) -> Path:
    for suffix in CODE_SUFFIXES:
        path = home.folder.path / _FOLDER / f"{name.removeprefix(_DIGEST)}{suffix}"
        if path.is_file():
            return path
    raise NotFoundError(f"this repository has no `{name}`", code="CODE_NONE")


def _name(data: bytes) -> str:
    return f"{_DIGEST}{hashlib.sha256(data).hexdigest()}"
