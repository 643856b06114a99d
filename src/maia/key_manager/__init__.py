"""The key manager: admission to key groups, their trees, and the record of rekeys."""

from __future__ import annotations

from maia.key_manager.brokers import used_evidence
from maia.key_manager.groups import manager_secret
from maia.key_manager.manager import KeyManager
from maia.key_manager.settings import DEFAULT_SETTINGS, SERVED_RHYTHM, KeySettings
from maia.key_manager.views import EpochRecord, GroupStatus, MembershipRecord, TreePicture

__all__ = [
    "DEFAULT_SETTINGS",
    "SERVED_RHYTHM",
    "EpochRecord",
    "GroupStatus",
    "KeyManager",
    "KeySettings",
    "MembershipRecord",
    "TreePicture",
    "manager_secret",
    "used_evidence",
]
