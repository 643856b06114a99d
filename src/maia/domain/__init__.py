"""A home, opened: following, plans, keys and explanations; what every door calls."""

from __future__ import annotations

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
from maia.domain.agreements import AgreementState, advance_agreement, draft_and_sign
from maia.domain.certificates import push_certificates
from maia.domain.client import Client
from maia.domain.deliveries import (
    Delivered,
    Mark,
    delivered_since,
    find_subscription,
    mark_outbox,
    outbox_of,
    read_deliveries,
)
from maia.domain.delivery import DeliveryJob, Group, Report, Work, check_log
from maia.domain.domain import Domain
from maia.domain.engine import Asked
from maia.domain.expiry import expire_log, undelivered
from maia.domain.handed import keep_handed
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
from maia.domain.policy_files import (
    check_policy,
    format_file,
    policy_paths,
    policy_sources,
    proof_lines,
    submit_policy,
)
from maia.domain.publication import Published, Written, commit_publication, published_before, write_partition
from maia.domain.scan import LogPart, parts_of, scan, share_out
from maia.domain.sight import Sight, sight_of
from maia.domain.status import DomainStatus, LogStatus, Step, TypeStatus, domain_status, who_lacks
from maia.domain.subscriptions import HomeSecret, Wanted, add_subscription, delivery_job, read_subscriptions
from maia.domain.types import did_you_mean, find_type, show_type

__all__ = [
    "AGREEMENT_SUFFIX",
    "MAX_EVENTS",
    "AgreementState",
    "Asked",
    "Client",
    "Delivered",
    "DeliveryJob",
    "Domain",
    "DomainStatus",
    "Group",
    "HomeAgreements",
    "HomeKeyGroups",
    "HomeKeys",
    "HomeSecret",
    "HomeSigner",
    "HomeSurroundings",
    "HomeTelling",
    "LogPart",
    "LogStatus",
    "Mark",
    "OwnKeyManager",
    "Published",
    "Report",
    "Sight",
    "Step",
    "TypeStatus",
    "Wanted",
    "Work",
    "Written",
    "add_subscription",
    "advance_agreement",
    "check_admission",
    "check_log",
    "check_policy",
    "commit_publication",
    "delivered_since",
    "delivery_job",
    "did_you_mean",
    "domain_status",
    "draft_and_sign",
    "ensure_keys",
    "expire_log",
    "find_subscription",
    "find_type",
    "format_file",
    "join_key_groups",
    "keep_handed",
    "leave_key_groups",
    "manager_signer",
    "mark_outbox",
    "open_access_control",
    "open_home_groups",
    "open_key_manager",
    "outbox_of",
    "parts_of",
    "policy_paths",
    "policy_sources",
    "proof_lines",
    "prove_key",
    "published_before",
    "push_certificates",
    "read_agreement",
    "read_deliveries",
    "read_subscriptions",
    "scan",
    "share_out",
    "show_type",
    "sight_of",
    "submit_policy",
    "undelivered",
    "who_lacks",
    "write_partition",
]
