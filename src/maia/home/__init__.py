"""A domain's files: layout, settings, keys, certificates, statements, types, providers, rates.

What is on disk is never believed. What needs Arrow is loaded on first use, so that commands that only handle
certificates start at once.
"""

from __future__ import annotations

import typing as _typing

from maia.home import providers, words
from maia.home.certificates import CertificateFolder
from maia.home.config import HomeConfig
from maia.home.definitions import find_definition, sign_definition
from maia.home.files import PRIVATE_FILE, list_files, locked, read_file, write_file
from maia.home.folder import Folder, key_of
from maia.home.keys import check_key_name, read_key, read_public_key, write_key, write_public_key
from maia.home.series import SeriesFile, signers_of_lists
from maia.home.soundness import HealthFinding, check_files
from maia.home.statements import StatementFile, is_older
from maia.home.types import verify_with_registry
from maia.home.verified_cache import VerifiedCache
from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.home.clock import ClockFile, now
    from maia.home.home import Home
    from maia.home.key_uses import KeyUses
    from maia.home.schemas import read_schema

__all__ = [
    "PRIVATE_FILE",
    "CertificateFolder",
    "ClockFile",
    "Folder",
    "HealthFinding",
    "Home",
    "HomeConfig",
    "KeyUses",
    "SeriesFile",
    "StatementFile",
    "VerifiedCache",
    "check_files",
    "check_key_name",
    "find_definition",
    "is_older",
    "key_of",
    "list_files",
    "locked",
    "now",
    "providers",
    "read_file",
    "read_key",
    "read_public_key",
    "read_schema",
    "sign_definition",
    "signers_of_lists",
    "verify_with_registry",
    "words",
    "write_file",
    "write_key",
    "write_public_key",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "ClockFile": "clock",
        "Home": "home",
        "KeyUses": "key_uses",
        "now": "clock",
        "read_schema": "schemas",
    },
)
