"""Access control of a domain: the register of members, roles and certificates, and what is done with it."""

from __future__ import annotations

from maia.access_control.certificates import blanket_body
from maia.access_control.service import AccessControl
from maia.access_control.settings import Settings
from maia.access_control.values import (
    Application,
    Ended,
    Entry,
    Handed,
    HeldPrivilege,
    Invitation,
    Member,
    MemberKind,
    Outside,
    OwnSeries,
    PolicyChange,
    Revocation,
    TakenOver,
    Telling,
    Withdrawn,
)

__all__ = [
    "AccessControl",
    "Application",
    "Ended",
    "Entry",
    "Handed",
    "HeldPrivilege",
    "Invitation",
    "Member",
    "MemberKind",
    "Outside",
    "OwnSeries",
    "PolicyChange",
    "Revocation",
    "Settings",
    "TakenOver",
    "Telling",
    "Withdrawn",
    "blanket_body",
]
