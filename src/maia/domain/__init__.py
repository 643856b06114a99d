"""A home, opened: following, plans, keys and explanations; what every door calls.

Each name is loaded on first use, so that a command that only signs a certificate needs no Arrow and no database.
"""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.domain.access_control import (
        AGREEMENT_SUFFIX,
        HomeAgreements,
        HomeKeyGroups,
        HomeSurroundings,
        HomeTelling,
        open_access_control,
        prove_key,
        read_agreement,
    )
    from maia.domain.certificates import push_certificates
    from maia.domain.client import Client
    from maia.domain.conditions import ConditionState, ask_conditions
    from maia.domain.delivery import DeliveryJob, Group, Report, Work, check_log
    from maia.domain.domain import Domain
    from maia.domain.engine import Asked
    from maia.domain.grants import (
        GrantDraft,
        Granted,
        RevocationDraft,
        draft_grant,
        draft_revocation,
        sign_grant,
        sign_list,
    )
    from maia.domain.key_groups import (
        check_admission,
        join_key_groups,
        leave_key_groups,
        manager_signer,
        open_home_groups,
        open_key_manager,
    )
    from maia.domain.keys import HomeKeys, HomeSigner, ensure_keys
    from maia.domain.log_parts import LogPart, parts_of, scan, share_out
    from maia.domain.own_key_manager import OwnKeyManager
    from maia.domain.plans import MAX_EVENTS
    from maia.domain.publication import Published, Written, commit_publication, published_before, write_partition
    from maia.domain.register import in_register
    from maia.domain.subscriptions import Wanted, delivery_job
    from maia.domain.types import find_type, show_type

__all__ = [
    "AGREEMENT_SUFFIX",
    "MAX_EVENTS",
    "Asked",
    "Client",
    "ConditionState",
    "DeliveryJob",
    "Domain",
    "GrantDraft",
    "Granted",
    "Group",
    "HomeAgreements",
    "HomeKeyGroups",
    "HomeKeys",
    "HomeSigner",
    "HomeSurroundings",
    "HomeTelling",
    "LogPart",
    "OwnKeyManager",
    "Published",
    "Report",
    "RevocationDraft",
    "Wanted",
    "Work",
    "Written",
    "ask_conditions",
    "check_admission",
    "check_log",
    "commit_publication",
    "delivery_job",
    "draft_grant",
    "draft_revocation",
    "ensure_keys",
    "find_type",
    "in_register",
    "join_key_groups",
    "leave_key_groups",
    "manager_signer",
    "open_access_control",
    "open_home_groups",
    "open_key_manager",
    "parts_of",
    "prove_key",
    "published_before",
    "push_certificates",
    "read_agreement",
    "scan",
    "share_out",
    "show_type",
    "sign_grant",
    "sign_list",
    "write_partition",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "AGREEMENT_SUFFIX": "access_control",
        "Asked": "engine",
        "Client": "client",
        "ConditionState": "conditions",
        "DeliveryJob": "delivery",
        "Domain": "domain",
        "GrantDraft": "grants",
        "Granted": "grants",
        "Group": "delivery",
        "HomeAgreements": "access_control",
        "HomeKeyGroups": "access_control",
        "HomeKeys": "keys",
        "HomeSigner": "keys",
        "HomeSurroundings": "access_control",
        "HomeTelling": "access_control",
        "LogPart": "log_parts",
        "MAX_EVENTS": "plans",
        "OwnKeyManager": "own_key_manager",
        "Published": "publication",
        "Report": "delivery",
        "RevocationDraft": "grants",
        "Wanted": "subscriptions",
        "Work": "delivery",
        "Written": "publication",
        "ask_conditions": "conditions",
        "check_admission": "key_groups",
        "check_log": "delivery",
        "commit_publication": "publication",
        "delivery_job": "subscriptions",
        "draft_grant": "grants",
        "draft_revocation": "grants",
        "ensure_keys": "keys",
        "find_type": "types",
        "in_register": "register",
        "join_key_groups": "key_groups",
        "leave_key_groups": "key_groups",
        "manager_signer": "key_groups",
        "open_access_control": "access_control",
        "open_home_groups": "key_groups",
        "open_key_manager": "key_groups",
        "parts_of": "log_parts",
        "prove_key": "access_control",
        "published_before": "publication",
        "push_certificates": "certificates",
        "read_agreement": "access_control",
        "scan": "log_parts",
        "share_out": "log_parts",
        "show_type": "types",
        "sign_grant": "grants",
        "sign_list": "grants",
        "write_partition": "publication",
    },
)
