"""Files behind the ports: keys, certificates, validity statements, caches. What is on disk is never believed."""

from maia.stores.cache import VerifiedCache
from maia.stores.certificates import CertificateFolder
from maia.stores.keys import read_key, read_public_key, write_key, write_public_key
from maia.stores.statements import StatementFile

__all__ = [
    "CertificateFolder",
    "StatementFile",
    "VerifiedCache",
    "read_key",
    "read_public_key",
    "write_key",
    "write_public_key",
]
