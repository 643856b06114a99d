"""A home, opened: following, plans, keys and explanations; what every door calls.

What needs a database is loaded on first use.
"""

from __future__ import annotations

import typing as _typing

from maia.domain.certificates import push_certificates
from maia.domain.client import Client
from maia.domain.delivery import DeliveryJob, Group, Report, Work, check_log
from maia.domain.domain import Domain
from maia.domain.engine import Asked
from maia.domain.explanation import CellExplanation
from maia.domain.keys import HomeKeys, ensure_keys
from maia.domain.manager_key import manager_signer
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.plans import MAX_EVENTS
from maia.domain.publication import Published, Written, commit_publication, published_before, write_partition
from maia.domain.scan import LogPart, parts_of, scan, share_out
from maia.domain.sealing_keys import SealingKeys
from maia.domain.subscriptions import DomainPlans, Wanted, delivery_job
from maia.domain.types import find_type, show_type
from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.domain.access_control import (
        AGREEMENT_SUFFIX,
        HomeAgreements,
        HomeHoldings,
        HomeKeyGroups,
        HomeTelling,
        domain_signer,
        open_access_control,
        prove_key,
        read_agreement,
    )
    from maia.domain.key_groups import (
        check_admission,
        join_key_groups,
        leave_key_groups,
        open_home_groups,
        open_key_manager,
    )

__all__ = [
    "AGREEMENT_SUFFIX",
    "MAX_EVENTS",
    "Asked",
    "CellExplanation",
    "Client",
    "DeliveryJob",
    "Domain",
    "DomainPlans",
    "Group",
    "HomeAgreements",
    "HomeHoldings",
    "HomeKeyGroups",
    "HomeKeys",
    "HomeTelling",
    "LogPart",
    "OwnKeyManager",
    "Published",
    "Report",
    "SealingKeys",
    "Wanted",
    "Work",
    "Written",
    "check_admission",
    "check_log",
    "commit_publication",
    "delivery_job",
    "domain_signer",
    "ensure_keys",
    "find_type",
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
    "write_partition",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "AGREEMENT_SUFFIX": "access_control",
        "HomeAgreements": "access_control",
        "HomeHoldings": "access_control",
        "HomeKeyGroups": "access_control",
        "HomeTelling": "access_control",
        "check_admission": "key_groups",
        "domain_signer": "access_control",
        "join_key_groups": "key_groups",
        "leave_key_groups": "key_groups",
        "open_access_control": "access_control",
        "open_home_groups": "key_groups",
        "open_key_manager": "key_groups",
        "prove_key": "access_control",
        "read_agreement": "access_control",
    },
)
