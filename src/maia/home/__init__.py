"""A domain's files: layout, settings, keys, certificates, statements, types, providers, rates.

What is on disk is never believed. What needs Arrow is loaded on first use, so that commands that only handle
certificates start at once.
"""

from __future__ import annotations

import typing as _typing

from maia.home import providers, words
from maia.home.agent import KeyAgent, ask_agent
from maia.home.certificates import CertificateFolder
from maia.home.config import DEFAULT_SILENCE, HomeConfig
from maia.home.definitions import extended_definitions, fetch_into, find_definition, sign_definition, whole_type
from maia.home.files import PRIVATE_FILE, PRIVATE_FOLDER, list_files, locked, make_folder, read_file, write_file
from maia.home.folder import Folder, key_of
from maia.home.formats import HOME_FORMAT, newer_format, with_head, without_head
from maia.home.keys import (
    MAX_KEY_FILE,
    check_key_name,
    is_key_itself,
    read_key,
    read_public_key,
    write_key,
    write_public_key,
)
from maia.home.machine import now
from maia.home.owners import OWNERS_FOLDER, keep_exchange, read_successions
from maia.home.passphrases import check_passphrase, passphrase_asker, read_descriptor_line, read_line
from maia.home.series import SeriesFile, signers_of_lists
from maia.home.soundness import HealthFinding, check_files
from maia.home.statements import StatementFile
from maia.home.types import DirectoryRegistry, verify_with_registry
from maia.home.worker_keys import (
    WORKER_KEY,
    WorkerKey,
    find_worker_key,
    read_worker_key,
    write_worker_key,
)
from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.home.clock import ClockFile
    from maia.home.config_edit import change_config
    from maia.home.home import Home
    from maia.home.key_uses import KeyUses
    from maia.home.migration import Migration, migrate_home
    from maia.home.release_ledger import ReleaseEntry, ReleaseLedger, release_secret
    from maia.home.schemas import frame_schema, is_sample, read_schema

__all__ = [
    "DEFAULT_SILENCE",
    "HOME_FORMAT",
    "MAX_KEY_FILE",
    "OWNERS_FOLDER",
    "PRIVATE_FILE",
    "PRIVATE_FOLDER",
    "WORKER_KEY",
    "CertificateFolder",
    "ClockFile",
    "DirectoryRegistry",
    "Folder",
    "HealthFinding",
    "Home",
    "HomeConfig",
    "KeyAgent",
    "KeyUses",
    "Migration",
    "ReleaseEntry",
    "ReleaseLedger",
    "SeriesFile",
    "StatementFile",
    "WorkerKey",
    "ask_agent",
    "change_config",
    "check_files",
    "check_key_name",
    "check_passphrase",
    "extended_definitions",
    "fetch_into",
    "find_definition",
    "find_worker_key",
    "frame_schema",
    "is_key_itself",
    "is_sample",
    "keep_exchange",
    "key_of",
    "list_files",
    "locked",
    "make_folder",
    "migrate_home",
    "newer_format",
    "now",
    "passphrase_asker",
    "providers",
    "read_descriptor_line",
    "read_file",
    "read_key",
    "read_line",
    "read_public_key",
    "read_schema",
    "read_successions",
    "read_worker_key",
    "release_secret",
    "sign_definition",
    "signers_of_lists",
    "verify_with_registry",
    "whole_type",
    "with_head",
    "without_head",
    "words",
    "write_file",
    "write_key",
    "write_public_key",
    "write_worker_key",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "ClockFile": "clock",
        "change_config": "config_edit",
        "Home": "home",
        "KeyUses": "key_uses",
        "Migration": "migration",
        "migrate_home": "migration",
        "ReleaseEntry": "release_ledger",
        "ReleaseLedger": "release_ledger",
        "release_secret": "release_ledger",
        "frame_schema": "schemas",
        "is_sample": "schemas",
        "read_schema": "schemas",
    },
)
