"""A home, opened: following, plans, keys and explanations; what every door calls."""

from __future__ import annotations

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
from maia.domain.certificates import push_certificates
from maia.domain.client import Client
from maia.domain.delivery import DeliveryJob, Group, Report, Work, check_log
from maia.domain.domain import Domain
from maia.domain.engine import Asked
from maia.domain.key_groups import (
    check_admission,
    join_key_groups,
    leave_key_groups,
    manager_signer,
    open_home_groups,
    open_key_manager,
)
from maia.domain.keys import HomeKeys, HomeSigner, ensure_keys
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.plans import MAX_EVENTS
from maia.domain.publication import Published, Written, commit_publication, published_before, write_partition
from maia.domain.scan import LogPart, parts_of, scan, share_out
from maia.domain.subscriptions import Wanted, delivery_job
from maia.domain.types import find_type, show_type

__all__ = [
    "AGREEMENT_SUFFIX",
    "MAX_EVENTS",
    "Asked",
    "Client",
    "DeliveryJob",
    "Domain",
    "Group",
    "HomeAgreements",
    "HomeHoldings",
    "HomeKeyGroups",
    "HomeKeys",
    "HomeSigner",
    "HomeTelling",
    "LogPart",
    "OwnKeyManager",
    "Published",
    "Report",
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
