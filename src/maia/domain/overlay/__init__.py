"""The overlay's credentials, and what issues and takes them: security manager, directory, code repository."""

from maia.domain.overlay.directory import DirectoryEntry, add_entry, find_entry, list_entries, remove_entry
from maia.domain.overlay.notation import credential_to_json, credential_to_xml, read_credential
from maia.domain.overlay.presented import check_credential, transfer_credential
from maia.domain.overlay.repository import exchange_for_code, fetch_code, list_code, put_code
from maia.domain.overlay.security_manager import give_credential

__all__ = [
    "DirectoryEntry",
    "add_entry",
    "check_credential",
    "credential_to_json",
    "credential_to_xml",
    "exchange_for_code",
    "fetch_code",
    "find_entry",
    "give_credential",
    "list_code",
    "list_entries",
    "put_code",
    "read_credential",
    "remove_entry",
    "transfer_credential",
]
