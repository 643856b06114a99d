"""Files behind the ports: keys, certificates, validity statements, types, caches. What is on disk is never believed."""

from maia.stores.cache import VerifiedCache
from maia.stores.certificates import CertificateFolder
from maia.stores.keys import read_key, read_public_key, write_key, write_public_key
from maia.stores.statements import StatementFile
from maia.stores.types import DirectoryRegistry, SqliteRegistry, fetch_type, verify_with_registry

__all__ = [
    "CertificateFolder",
    "DirectoryRegistry",
    "SqliteRegistry",
    "StatementFile",
    "VerifiedCache",
    "fetch_type",
    "read_key",
    "read_public_key",
    "verify_with_registry",
    "write_key",
    "write_public_key",
]
