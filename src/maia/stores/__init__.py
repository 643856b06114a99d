"""Files behind the ports: homes, keys, certificates, types, statements, caches. What is on disk is never believed.

Homes and plans need Arrow and are loaded on first use, so that commands that only handle certificates start at once;
so are `database`, which needs SQLAlchemy, and `providers`, which look outside.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

from maia.stores.cache import VerifiedCache
from maia.stores.certificates import CertificateFolder
from maia.stores.keys import read_key, read_public_key, write_key, write_public_key
from maia.stores.statements import StatementFile
from maia.stores.types import DirectoryRegistry, SqliteRegistry, fetch_type, verify_with_registry

if _typing.TYPE_CHECKING:
    from maia.stores import database, providers
    from maia.stores.certificate_stream import push_certificates
    from maia.stores.clock import ClockFile
    from maia.stores.following import follow
    from maia.stores.group_keys_home import join_own_groups
    from maia.stores.home import Home, HomeConfig, HomeKeys, HomeSigner
    from maia.stores.key_manager import KeyManager
    from maia.stores.key_manager_groups import manager_secret
    from maia.stores.key_manager_home import (
        check_admission,
        join_key_groups,
        leave_key_groups,
        manager_signer,
        open_home_groups,
        open_key_manager,
    )
    from maia.stores.key_manager_settings import KeySettings
    from maia.stores.key_manager_views import EpochRecord, GroupStatus, MembershipRecord, TreePicture
    from maia.stores.plans import deliver_plan, proven_origins, publish_plan
    from maia.stores.rates import RateLedger
    from maia.stores.statement_stream import StatementPublisher, StatementSubscription

__all__ = [
    "CertificateFolder",
    "ClockFile",
    "DirectoryRegistry",
    "EpochRecord",
    "GroupStatus",
    "Home",
    "HomeConfig",
    "HomeKeys",
    "HomeSigner",
    "KeyManager",
    "KeySettings",
    "MembershipRecord",
    "RateLedger",
    "SqliteRegistry",
    "StatementFile",
    "StatementPublisher",
    "StatementSubscription",
    "TreePicture",
    "VerifiedCache",
    "check_admission",
    "database",
    "deliver_plan",
    "fetch_type",
    "follow",
    "join_key_groups",
    "join_own_groups",
    "leave_key_groups",
    "manager_secret",
    "manager_signer",
    "open_home_groups",
    "open_key_manager",
    "proven_origins",
    "providers",
    "publish_plan",
    "push_certificates",
    "read_key",
    "read_public_key",
    "verify_with_registry",
    "write_key",
    "write_public_key",
]

_ON_FIRST_USE = {
    "ClockFile": "clock",
    "EpochRecord": "key_manager_views",
    "GroupStatus": "key_manager_views",
    "Home": "home",
    "HomeConfig": "home",
    "HomeKeys": "home",
    "HomeSigner": "home",
    "KeyManager": "key_manager",
    "KeySettings": "key_manager_settings",
    "MembershipRecord": "key_manager_views",
    "RateLedger": "rates",
    "StatementPublisher": "statement_stream",
    "StatementSubscription": "statement_stream",
    "TreePicture": "key_manager_views",
    "check_admission": "key_manager_home",
    "deliver_plan": "plans",
    "follow": "following",
    "join_key_groups": "key_manager_home",
    "join_own_groups": "group_keys_home",
    "leave_key_groups": "key_manager_home",
    "manager_secret": "key_manager_groups",
    "manager_signer": "key_manager_home",
    "open_home_groups": "key_manager_home",
    "open_key_manager": "key_manager_home",
    "proven_origins": "plans",
    "publish_plan": "plans",
    "push_certificates": "certificate_stream",
}


def __getattr__(name: str) -> object:
    """Load what needs Arrow or SQLAlchemy when it is asked for."""
    if name in {"database", "providers"}:
        return _import_module(f"maia.stores.{name}")
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module `maia.stores` has no attribute `{name}`")
    value: object = getattr(_import_module(f"maia.stores.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = value
    return value
