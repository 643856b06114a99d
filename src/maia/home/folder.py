"""A working folder, a home or not yet one: keys, certificates and statements, and who can be named in it.

    keys/NAME.key       private key, mode 0600, sealed with a passphrase unless told otherwise
    keys/NAME.pub       public key
    certificates/       one file per certificate
    statements          validity statements that were accepted
    types/              signed definitions

Rules kept here: a name that somebody typed becomes a path only after it matched `KEY_NAME`; a private key is opened
only to sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from maia.authority import CertificatePool, StatementBook, Verifier
from maia.encoding import did_you_mean
from maia.errors import NotFoundError, UncheckedError, UsageError
from maia.events import EventType
from maia.home.certificates import CertificateFolder
from maia.home.config import CONFIG_FILE, MAX_CONFIG, HomeConfig
from maia.home.files import read_file
from maia.home.keys import KEY_NAME, check_key_name, read_key, read_public_key
from maia.home.machine import now
from maia.home.statements import StatementFile
from maia.home.types import DirectoryRegistry
from maia.principals import (
    CertificateId,
    KeyHash,
    KeyId,
    KeySigner,
    PublicKey,
    UnverifiedCertificate,
    fingerprint,
    parse_certificate,
)

_MAX_KEYS = 10_000
_SHORTEST_PREFIX = 4
_FINGERPRINT = 16


@dataclass(frozen=True)
class Folder:
    """A folder on disk; nothing is read before it is needed.

    Attributes:
        path: Where.
        clock: Reads the time at which definitions have to verify.
        settings: What counts in place of ``maia.toml``, where whoever opened the home was told otherwise.
    """

    path: Path
    clock: Callable[[], datetime] = now
    settings: HomeConfig | None = None

    def key_path(self, name: str) -> Path:
        """Return where a private key lives.

        Raises:
            UsageError: The name is not one that can be a file.
        """
        return self.path / "keys" / f"{check_key_name(name)}.key"

    def public_path(self, name: str) -> Path:
        """Return where a public key lives."""
        return self.path / "keys" / f"{check_key_name(name)}.pub"

    @property
    def certificates(self) -> CertificateFolder:
        """The folder of certificates."""
        return CertificateFolder(self.path / "certificates")

    @property
    def statements(self) -> StatementFile:
        """The file of accepted statements."""
        return StatementFile(self.path / "statements")

    @cached_property
    def types(self) -> DirectoryRegistry:
        """The definitions that are kept here; nothing in it is believed."""
        return DirectoryRegistry(self.path / "types", verifier=Verifier(statements=self.book()))

    def versions(self, owner: bytes, name: str) -> tuple[EventType, ...]:
        """Return the versions of a type that speak for its owner, to name attributes by.

        Args:
            owner: The owner's identity.
            name: The readable name.
        """
        # SECURITY: names come from definitions that verify, or did until they expired; a planted one names nothing.
        found = self._versions.get((owner, name))
        if found is None:
            kept = self.types.genuine(KeyHash(KeyId(owner)), name, at=self.clock()) if name else ()
            found = self._versions[owner, name] = tuple(item.definition for item in kept)
        return found

    @cached_property
    def _versions(self) -> dict[tuple[bytes, str], tuple[EventType, ...]]:
        return {}

    @cached_property
    def keys(self) -> dict[str, PublicKey]:
        """The public keys of this home by name."""
        paths = sorted((self.path / "keys").glob("*.pub"))
        if len(paths) > _MAX_KEYS:
            raise UncheckedError(f"more than {_MAX_KEYS} keys in one home", code="LIMIT_EXCEEDED")
        return {path.stem: read_public_key(path) for path in paths if KEY_NAME.fullmatch(path.stem)}

    @cached_property
    def names(self) -> dict[KeyId, str]:
        """The names of the known keys; the first in order when a key has two."""
        return {key.key_id: name for name, key in reversed(self.keys.items())}

    @cached_property
    def config(self) -> HomeConfig | None:
        """What ``maia.toml`` says; ``None`` where the folder is no home."""
        if self.settings is not None:
            return self.settings
        path = self.path / CONFIG_FILE
        return HomeConfig.from_toml(read_file(path, limit=MAX_CONFIG)) if path.is_file() else None

    def pool(self, folder: Path | None = None) -> CertificatePool:
        """Read the certificates of this home, or of another folder.

        Raises:
            NotFoundError: The other folder does not exist.
        """
        if folder is None:
            return self.certificates.pool()
        if not folder.is_dir():
            raise NotFoundError(f"no folder `{folder}`", code="NO_SUCH_FOLDER")
        return CertificateFolder(folder).pool()

    def book(self) -> StatementBook:
        """Read the accepted statements."""
        return self.statements.load()

    def key(self, text: str) -> PublicKey:
        """Find a key by name, by fingerprint or its beginning, or by 64 hexadecimal digits.

        Raises:
            NotFoundError: No key of this home fits.
            UsageError: Several fit.
        """
        prefix = text.lower().replace("-", "")
        if text in self.keys:
            # SECURITY: a file may still have a name that is another key's fingerprint; then nobody guesses.
            if len(prefix) == _FINGERPRINT and any(
                key != self.keys[text] and key.fingerprint.replace("-", "") == prefix for key in self._known()
            ):
                raise UsageError(f"`{text}` is the name of a key and the fingerprint of another", code="AMBIGUOUS")
            return self.keys[text]
        if re.fullmatch(r"[0-9a-fA-F]{64}", text):
            return PublicKey.import_(bytes.fromhex(text))
        if len(prefix) >= _SHORTEST_PREFIX and re.fullmatch(r"[a-z2-7]+", prefix):
            found = {key for key in self._known() if key.fingerprint.replace("-", "").startswith(prefix)}
            if len(found) > 1:
                raise UsageError(f"`{text}` fits {len(found)} keys", code="AMBIGUOUS")
            if found:
                return found.pop()
        near = did_you_mean(text, self.keys)
        raise NotFoundError(f"no key `{text}` in this home{near}", code="NO_SUCH_KEY")

    def _known(self) -> set[PublicKey]:
        known = set(self.keys.values())
        for certificate in self.certificates.pool():
            known.add(certificate.signer)
            subject = certificate.body.subject
            if isinstance(subject, PublicKey):
                known.add(subject)
        return known

    def signer(self, key: PublicKey, passphrase: Callable[[str], Callable[[], str]]) -> KeySigner:
        """Open the private key that belongs to a public one.

        Args:
            key: The public key.
            passphrase: Gives, for a key's name, the function that asks for its passphrase.

        Raises:
            NotFoundError: This home does not hold the private key.
        """
        for name, known in self.keys.items():
            if known == key and self.key_path(name).is_file():
                return read_key(self.key_path(name), passphrase=passphrase(f"`{name}`"))
        raise NotFoundError(f"the private key of `{self.show(key.key_id)}` is not in this home", code="NO_SUCH_KEY")

    def certificate(self, text: str) -> UnverifiedCertificate:
        """Find a certificate by file, or by the beginning of its id.

        Raises:
            NotFoundError: There is none.
            UsageError: Several fit.
        """
        path = Path(text)
        if path.is_file():
            return parse_certificate(path.read_bytes())
        prefix = text.lower().removesuffix(".cert")
        if len(prefix) >= _SHORTEST_PREFIX and re.fullmatch(r"[0-9a-f]{4,64}", prefix):
            found = [item for item in self.certificates.pool() if item.certificate_id.hex().startswith(prefix)]
            if len(found) > 1:
                raise UsageError(f"`{text}` fits {len(found)} certificates", code="AMBIGUOUS")
            if found:
                return found[0]
        raise NotFoundError(f"no certificate `{text}` in this home", code="NO_SUCH_CERTIFICATE")

    def certificate_ids(self, texts: Iterable[str]) -> frozenset[CertificateId]:
        """Find certificates by file, beginning of the id, or whole id, known here or not.

        Raises:
            NotFoundError: One that is not given whole is not here.
        """
        whole = re.compile(r"[0-9a-fA-F]{64}")
        return frozenset(
            CertificateId(bytes.fromhex(text)) if whole.fullmatch(text) else self.certificate(text).certificate_id
            for text in texts
        )

    def ends(self, identity: CertificateId) -> datetime | None:
        """Say when a certificate ends, where it is known here and does."""
        found = [item for item in self.certificates.pool() if item.certificate_id == identity]
        return found[0].body.period.not_after if found else None

    def show(self, key: KeyId) -> str:
        """Name a key for people: its name here and its fingerprint."""
        known = self.names.get(key)
        return f"{known} ({fingerprint(key)})" if known else fingerprint(key)

    def decorate(self, text: str) -> str:
        """Put the names of known keys before their fingerprints in a message."""
        for key, name in self.names.items():
            mark = fingerprint(key)
            text = text.replace(f"`{mark}`", f"`{name}` ({mark})").replace(f"`{mark}:", f"`{name}:")
        return text


def key_of(principal: object) -> PublicKey | KeyHash:
    """Give back a principal that is one key.

    Raises:
        UsageError: It is a name or a threshold.
    """
    if not isinstance(principal, (PublicKey, KeyHash)):
        raise UsageError("one key is needed here, not a name or a threshold", code="NOT_A_KEY")
    return principal
