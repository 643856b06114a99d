"""A home, opened: following, plans, keys and explanations; what every door calls.

Each name is loaded on first use, so that a command that only signs a certificate needs no Arrow and no database.
"""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.domain.access_control import (
        HomeAgreements,
        HomeKeyGroups,
        HomeTelling,
        domain_signer,
        open_access_control,
        open_register,
        prove_key,
    )
    from maia.domain.agreements import AgreementState, advance_agreement, draft_and_sign
    from maia.domain.bounds import BoundQuestion, client_bounds, rule_bounds
    from maia.domain.certificates import push_certificates
    from maia.domain.chains import BrokerNeeds, explain_chains
    from maia.domain.client import Client
    from maia.domain.conditions import ask_conditions
    from maia.domain.deliveries import (
        Delivered,
        delivered_since,
        find_subscription,
        mark_outbox,
        outbox_of,
        read_deliveries,
    )
    from maia.domain.delivery import DeliveryJob, Planned, check_log
    from maia.domain.delivery_work import Group, Report, Work
    from maia.domain.domain import Domain
    from maia.domain.engine import Asked
    from maia.domain.expiry import expire_log, sweep_home, undelivered
    from maia.domain.explanation import CellExplanation
    from maia.domain.grants import RevocationDraft, draft_grant, draft_revocation, sign_grant, sign_revocation
    from maia.domain.grounds import let_go_of, missing_certificates
    from maia.domain.handed import keep_handed
    from maia.domain.inherited import inherited_rights
    from maia.domain.key_groups import (
        check_admission,
        join_key_groups,
        leave_key_groups,
        open_home_groups,
        open_key_manager,
    )
    from maia.domain.keys import HomeKeys, ensure_keys
    from maia.domain.lists import MadeList, known_series, make_list
    from maia.domain.live import live_clients
    from maia.domain.log_parts import LogPart, begin_read, parts_of, scan, share_out
    from maia.domain.losses import find_losses
    from maia.domain.malformed import ROW_MALFORMED, audit_malformed
    from maia.domain.manager_key import manager_signer
    from maia.domain.operations import Operation, audit_of, check_home_audit, note_unproven
    from maia.domain.own_key_manager import OwnKeyManager
    from maia.domain.own_notices import OwnNotices, home_notices
    from maia.domain.parked import keep_parked, read_parked, reader_of
    from maia.domain.peers import (
        InvitedPeer,
        PeerState,
        connect_peer,
        disconnect_peer,
        invite_peer,
    )
    from maia.domain.plans import MAX_EVENTS
    from maia.domain.policy_files import (
        check_policy,
        format_file,
        policy_paths,
        policy_sources,
        proof_lines,
        submit_policy,
    )
    from maia.domain.possession import ProvenClient
    from maia.domain.publication import (
        Published,
        Written,
        commit_publication,
        own_lanes,
        publication_operation,
        published_before,
        write_partition,
    )
    from maia.domain.questions import RightQuestion
    from maia.domain.register import in_register
    from maia.domain.sealing_keys import SealingKeys
    from maia.domain.sight import Sight, sight_of
    from maia.domain.status import DomainStatus, LogStatus, TypeStatus, domain_status, who_lacks
    from maia.domain.stretches import Stretch, next_stretch, type_stretch, wire_types
    from maia.domain.subscriptions import JOB, DomainPlans, add_subscription, delivery_job
    from maia.domain.topics import TypeOrTopic, TypePart, note_refused, plan_parts
    from maia.domain.translation import make_translator, start_translator
    from maia.domain.types import find_type, show_type
    from maia.domain.wanted import Wanted, parse_wanted, read_subscriptions, write_wanted

__all__ = [
    "JOB",
    "MAX_EVENTS",
    "ROW_MALFORMED",
    "AgreementState",
    "Asked",
    "BoundQuestion",
    "BrokerNeeds",
    "CellExplanation",
    "Client",
    "Delivered",
    "DeliveryJob",
    "Domain",
    "DomainPlans",
    "DomainStatus",
    "Group",
    "HomeAgreements",
    "HomeKeyGroups",
    "HomeKeys",
    "HomeTelling",
    "InvitedPeer",
    "LogPart",
    "LogStatus",
    "MadeList",
    "Operation",
    "OwnKeyManager",
    "OwnNotices",
    "PeerState",
    "Planned",
    "ProvenClient",
    "Published",
    "Report",
    "RevocationDraft",
    "RightQuestion",
    "SealingKeys",
    "Sight",
    "Stretch",
    "TypeOrTopic",
    "TypePart",
    "TypeStatus",
    "Wanted",
    "Work",
    "Written",
    "add_subscription",
    "advance_agreement",
    "ask_conditions",
    "audit_malformed",
    "audit_of",
    "begin_read",
    "check_admission",
    "check_home_audit",
    "check_log",
    "check_policy",
    "client_bounds",
    "commit_publication",
    "connect_peer",
    "delivered_since",
    "delivery_job",
    "disconnect_peer",
    "domain_signer",
    "domain_status",
    "draft_and_sign",
    "draft_grant",
    "draft_revocation",
    "ensure_keys",
    "expire_log",
    "explain_chains",
    "find_losses",
    "find_subscription",
    "find_type",
    "format_file",
    "home_notices",
    "in_register",
    "inherited_rights",
    "invite_peer",
    "join_key_groups",
    "keep_handed",
    "keep_parked",
    "known_series",
    "leave_key_groups",
    "let_go_of",
    "live_clients",
    "make_list",
    "make_translator",
    "manager_signer",
    "mark_outbox",
    "missing_certificates",
    "next_stretch",
    "note_refused",
    "note_unproven",
    "open_access_control",
    "open_home_groups",
    "open_key_manager",
    "open_register",
    "outbox_of",
    "own_lanes",
    "parse_wanted",
    "parts_of",
    "plan_parts",
    "policy_paths",
    "policy_sources",
    "proof_lines",
    "prove_key",
    "publication_operation",
    "published_before",
    "push_certificates",
    "read_deliveries",
    "read_parked",
    "read_subscriptions",
    "reader_of",
    "rule_bounds",
    "scan",
    "share_out",
    "show_type",
    "sight_of",
    "sign_grant",
    "sign_revocation",
    "start_translator",
    "submit_policy",
    "sweep_home",
    "type_stretch",
    "undelivered",
    "who_lacks",
    "wire_types",
    "write_partition",
    "write_wanted",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "MAX_EVENTS": "plans",
        "JOB": "subscriptions",
        "Stretch": "stretches",
        "audit_of": "operations",
        "begin_read": "log_parts",
        "keep_parked": "parked",
        "next_stretch": "stretches",
        "own_lanes": "publication",
        "read_parked": "parked",
        "reader_of": "parked",
        "type_stretch": "stretches",
        "wire_types": "stretches",
        "ROW_MALFORMED": "malformed",
        "AgreementState": "agreements",
        "Asked": "engine",
        "BoundQuestion": "bounds",
        "BrokerNeeds": "chains",
        "CellExplanation": "explanation",
        "Client": "client",
        "Delivered": "deliveries",
        "DeliveryJob": "delivery",
        "Domain": "domain",
        "DomainPlans": "subscriptions",
        "DomainStatus": "status",
        "Group": "delivery_work",
        "HomeAgreements": "access_control",
        "HomeKeyGroups": "access_control",
        "HomeKeys": "keys",
        "HomeTelling": "access_control",
        "LogPart": "log_parts",
        "LogStatus": "status",
        "MadeList": "lists",
        "Operation": "operations",
        "OwnKeyManager": "own_key_manager",
        "Planned": "delivery",
        "ProvenClient": "possession",
        "OwnNotices": "own_notices",
        "Published": "publication",
        "Report": "delivery_work",
        "RevocationDraft": "grants",
        "RightQuestion": "questions",
        "SealingKeys": "sealing_keys",
        "Sight": "sight",
        "TypeOrTopic": "topics",
        "TypePart": "topics",
        "note_refused": "topics",
        "plan_parts": "topics",
        "TypeStatus": "status",
        "Wanted": "wanted",
        "Work": "delivery_work",
        "Written": "publication",
        "InvitedPeer": "peers",
        "PeerState": "peers",
        "connect_peer": "peers",
        "disconnect_peer": "peers",
        "invite_peer": "peers",
        "add_subscription": "subscriptions",
        "advance_agreement": "agreements",
        "ask_conditions": "conditions",
        "audit_malformed": "malformed",
        "check_admission": "key_groups",
        "check_log": "delivery",
        "check_home_audit": "operations",
        "check_policy": "policy_files",
        "client_bounds": "bounds",
        "commit_publication": "publication",
        "delivered_since": "deliveries",
        "delivery_job": "subscriptions",
        "domain_signer": "access_control",
        "domain_status": "status",
        "draft_and_sign": "agreements",
        "draft_grant": "grants",
        "draft_revocation": "grants",
        "ensure_keys": "keys",
        "expire_log": "expiry",
        "explain_chains": "chains",
        "inherited_rights": "inherited",
        "live_clients": "live",
        "make_translator": "translation",
        "start_translator": "translation",
        "find_subscription": "deliveries",
        "find_type": "types",
        "format_file": "policy_files",
        "find_losses": "losses",
        "home_notices": "own_notices",
        "in_register": "register",
        "join_key_groups": "key_groups",
        "keep_handed": "handed",
        "known_series": "lists",
        "leave_key_groups": "key_groups",
        "make_list": "lists",
        "manager_signer": "manager_key",
        "mark_outbox": "deliveries",
        "open_access_control": "access_control",
        "open_home_groups": "key_groups",
        "open_key_manager": "key_groups",
        "open_register": "access_control",
        "outbox_of": "deliveries",
        "parse_wanted": "wanted",
        "parts_of": "log_parts",
        "policy_paths": "policy_files",
        "policy_sources": "policy_files",
        "proof_lines": "policy_files",
        "rule_bounds": "bounds",
        "prove_key": "access_control",
        "publication_operation": "publication",
        "published_before": "publication",
        "push_certificates": "certificates",
        "read_deliveries": "deliveries",
        "read_subscriptions": "wanted",
        "scan": "log_parts",
        "share_out": "log_parts",
        "show_type": "types",
        "sight_of": "sight",
        "let_go_of": "grounds",
        "missing_certificates": "grounds",
        "note_unproven": "operations",
        "sign_grant": "grants",
        "sign_revocation": "grants",
        "submit_policy": "policy_files",
        "sweep_home": "expiry",
        "undelivered": "expiry",
        "who_lacks": "status",
        "write_partition": "publication",
        "write_wanted": "wanted",
    },
)
