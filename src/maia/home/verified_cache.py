"""Verified certificates on disk, to be verified once more at every start.

    (verified (version "1") <signed certificate> …)

The file saves a broker from meeting its certificates one by one after a restart; it proves nothing. Every entry is
verified again while it is read, what does not verify is dropped, and expiry and revocation are asked at each use, so
neither a changed file nor an old one can make a decision come out otherwise than without it.
"""

from __future__ import annotations

import logging
from pathlib import Path

from maia.authority import DEFAULT_VERIFIER_LIMITS, SignatureCache
from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, MalformedError, NotFoundError, VerificationError
from maia.home.files import PRIVATE_FILE, PRIVATE_FOLDER, make_folder, read_file, write_file
from maia.principals import parse_certificate

CACHE_FILE_LIMITS = SexpLimits(max_bytes=256 << 20, max_depth=2, max_atom=1 << 16)
_VERSION: Sexp = (b"version", b"1")
_OVERHEAD = 64
_log = logging.getLogger(__name__)


class VerifiedCache:
    """A `SignatureCache` on disk."""

    def __init__(self, path: Path) -> None:
        """Use a file, which need not exist."""
        self.path = path

    def load(self, *, capacity: int = DEFAULT_VERIFIER_LIMITS.max_memory) -> SignatureCache:
        """Read and verify every entry, the newest up to ``capacity``; a damaged file is an empty cache.

        Returns:
            A cache of what verified in this process; its ``verifications`` counts the work of this start.

        Raises:
            UnavailableError: The system refused.
        """
        cache = SignatureCache(capacity)
        dropped = 0
        for entry in self._entries()[-capacity:]:
            try:
                if not isinstance(entry, bytes):
                    raise EncodingError("an entry that is no certificate", code="CERT_SHAPE")
                cache.verify(parse_certificate(entry))
            except (MalformedError, VerificationError):
                dropped += 1
        if dropped:
            _log.warning("dropped %d entries of a certificate cache that do not verify", dropped)
        return cache

    def save(self, cache: SignatureCache) -> None:
        """Write the cache in one step, leaving out the oldest entries beyond the size of the file."""
        entries: list[bytes] = []
        room = CACHE_FILE_LIMITS.max_bytes - _OVERHEAD
        for certificate in reversed(tuple(cache)):
            room -= len(certificate.raw) + 10
            if room < 0:
                break
            entries.append(certificate.raw)
        make_folder(self.path.parent, mode=PRIVATE_FOLDER)
        write_file(self.path, encode((b"verified", _VERSION, *reversed(entries))), mode=PRIVATE_FILE)

    def _entries(self) -> list[Sexp]:
        try:
            match parse_canonical(read_file(self.path, limit=CACHE_FILE_LIMITS.max_bytes), limits=CACHE_FILE_LIMITS):
                case (b"verified", version, *entries) if version == _VERSION:
                    return entries
        except NotFoundError:
            return []
        except EncodingError:
            pass
        _log.warning("the certificate cache is damaged and starts empty")
        return []
