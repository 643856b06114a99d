"""A folder of certificates, one file each, named by their identity.

A file's name comes from a hash and from nothing inside the certificate, so no name that anyone chose becomes a path.
Files that people put there under other names count too, as long as they end in ``.cert``; what they hold decides.
What was removed on purpose is noted (``let-go/``), so that it is told from what was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from maia.authority import DEFAULT_VERIFIER_LIMITS, CertificatePool, VerifierLimits
from maia.errors import MalformedError, NotFoundError, UncheckedError, UsageError
from maia.home.files import PUBLIC_FILE, PUBLIC_FOLDER, list_files, make_folder, read_start, remove_file, write_file
from maia.principals import Certificate, CertificateId, UnverifiedCertificate, parse_certificate

_SUFFIX = ".cert"
_LET_GO = "let-go"
_SHORT = 16
_ID_LENGTH = 32
_Stamp = tuple[int, int, int]


class CertificateFolder:
    """Certificates on disk. Nothing read from here is trusted; a verifier checks it like any other evidence."""

    def __init__(self, path: Path) -> None:
        """Use a folder, which need not exist until something is added."""
        self.path = path
        self._known: dict[Path, tuple[_Stamp, bytes | UnverifiedCertificate]] = {}
        self._current = CertificatePool()

    def add(self, certificate: Certificate) -> Path:
        """Keep a certificate; adding one that is there changes nothing.

        Returns:
            The file that holds it: the first 16 digits of the identity, or all of it should these be taken.
        """
        make_folder(self.path, mode=PUBLIC_FOLDER)
        for path in self._places(certificate.certificate_id):
            if self._held(path) == certificate.certificate_id:
                return path
            if write_file(path, certificate.raw, mode=PUBLIC_FILE, replace=False):
                return path
        # Only a file under a whole foreign identity is left in the way; its content is not what its name says.
        path = self._places(certificate.certificate_id)[-1]
        write_file(path, certificate.raw, mode=PUBLIC_FILE)
        return path

    def has(self, identity: CertificateId) -> bool:
        """Tell whether `add` has put a certificate here."""
        return any(self._held(path) == identity for path in self._places(identity))

    def remove(self, identity: CertificateId) -> None:
        """Remove a certificate, under whatever file names it stands.

        Raises:
            NotFoundError: It is not in the folder.
        """
        if len(identity) != _ID_LENGTH:
            raise UsageError(f"the identity of a certificate has {_ID_LENGTH} octets")
        found = [path for path, data in self if _identity(data) == identity]
        if not found:
            raise NotFoundError(f"there is no certificate `{identity.hex()[:_SHORT]}`", code="NO_CERTIFICATE")
        self._note(identity)
        for path in found:
            remove_file(path)

    def discard(self, identities: Iterable[CertificateId]) -> None:
        """Remove the files that `add` made for certificates, without a look at the others in the folder.

        What is not there is passed over, and what people put there under other names stays.
        """
        for identity in identities:
            for path in self._places(identity):
                if self._held(path) == identity:
                    self._note(identity)
                    remove_file(path)

    def give_up(self, identity: CertificateId) -> None:
        """Note of a certificate that was lost that nobody waits for it any more."""
        self._note(identity)

    def let_go(self, identity: CertificateId) -> bool:
        """Tell whether a certificate that is not here was removed by `remove` or `discard`, or given up."""
        return (self.path / _LET_GO / identity.hex()).exists()

    def _note(self, identity: CertificateId) -> None:
        make_folder(self.path / _LET_GO, mode=PUBLIC_FOLDER)
        write_file(self.path / _LET_GO / identity.hex(), b"", mode=PUBLIC_FILE)

    def pool(self, *, limits: VerifierLimits = DEFAULT_VERIFIER_LIMITS) -> CertificatePool:
        """Read all of them as evidence; files that are no certificates are counted as refused.

        Raises:
            UncheckedError: There are more files than the limits allow.
        """
        return CertificatePool((data for _, data in self.read(limits=limits)), limits=limits)

    def current_pool(self) -> CertificatePool:
        """Give what `pool` would give, reading only the files that are new or changed since the last call.

        While files only come, it is the same pool, which grows; one caller at a time.

        Raises:
            UncheckedError: There are more files than the limits allow.
        """
        found: dict[Path, _Stamp] = {}
        for path in list_files(self.path, suffix=_SUFFIX):
            with suppress(OSError):  # gone since it was listed
                seen = path.stat()
                found[path] = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
        limits = DEFAULT_VERIFIER_LIMITS
        if len(found) > limits.max_certificates:
            raise UncheckedError(f"more than {limits.max_certificates} certificates", code="LIMIT_EXCEEDED")
        stale = [path for path, (stamp, _) in self._known.items() if found.get(path) != stamp]
        for path in stale:
            del self._known[path]
        if stale:
            self._current = CertificatePool(item for _, item in self._known.values())
        for path, stamp in found.items():
            if path not in self._known:
                with suppress(NotFoundError):
                    item = _parsed(read_start(path, limit=limits.max_certificate_bytes + 1))
                    self._current.add(item)
                    self._known[path] = (stamp, item)
        return self._current

    def __iter__(self) -> Iterator[tuple[Path, bytes]]:
        """Go through the files by name."""
        return self.read()

    def read(self, *, limits: VerifierLimits = DEFAULT_VERIFIER_LIMITS) -> Iterator[tuple[Path, bytes]]:
        """Go through the files by name, within limits.

        A file that is too large comes cut, one octet beyond the limit, so that its reader refuses it and not the
        whole folder.
        """
        paths = list_files(self.path, suffix=_SUFFIX)
        if len(paths) > limits.max_certificates:
            raise UncheckedError(f"more than {limits.max_certificates} certificates", code="LIMIT_EXCEEDED")
        for path in paths:
            yield path, read_start(path, limit=limits.max_certificate_bytes + 1)

    def _places(self, identity: CertificateId) -> tuple[Path, Path]:
        # 16 digits can be made to collide on purpose, so a second place stands ready.
        digits = identity.hex()
        return self.path / f"{digits[:_SHORT]}{_SUFFIX}", self.path / f"{digits}{_SUFFIX}"

    def _held(self, path: Path) -> CertificateId | None:
        try:
            return _identity(read_start(path, limit=DEFAULT_VERIFIER_LIMITS.max_certificate_bytes + 1))
        except NotFoundError:
            return None


def _parsed(data: bytes) -> bytes | UnverifiedCertificate:
    """Read a certificate, or leave it for a pool to refuse."""
    if len(data) > DEFAULT_VERIFIER_LIMITS.max_certificate_bytes:
        return data
    try:
        return parse_certificate(data)
    except MalformedError:
        return data


def _identity(data: bytes) -> CertificateId | None:
    try:
        return parse_certificate(data).certificate_id
    except MalformedError:
        return None
