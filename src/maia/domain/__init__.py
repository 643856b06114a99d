"""A home, opened: following, plans, keys and explanations; what every door calls.

Each name is loaded on first use, so that a command that only signs a certificate needs no Arrow and no database.
"""

from __future__ import annotations

import typing as _typing

from maia.domain.contents import MODULES as _MODULES
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
    from maia.domain.audit_export import ExportedAudit, export_audit
    from maia.domain.audit_proofs import (
        cosign_checkpoint,
        home_checkpoint,
        prove_consistency,
        prove_entry,
        write_tiles,
    )
    from maia.domain.bounds import BoundQuestion, client_bounds, rule_bounds
    from maia.domain.certificates import push_certificates
    from maia.domain.chains import BrokerNeeds, explain_chains
    from maia.domain.client import Client
    from maia.domain.comparison import Comparison
    from maia.domain.conditions import ask_conditions
    from maia.domain.credentials import (
        BrokerCredentials,
        broker_credentials,
        check_connection,
        check_neighbour,
        take_credentials,
    )
    from maia.domain.delegations import Delegation
    from maia.domain.deliveries import (
        Delivered,
        delivered_since,
        find_subscription,
        last_events,
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
    from maia.domain.grants import Granted, RevocationDraft, draft_grant, draft_revocation, sign_grant, sign_revocation
    from maia.domain.grounds import let_go_of, missing_certificates
    from maia.domain.handed import keep_handed
    from maia.domain.handlers import (
        BUILT_IN_HANDLERS,
        CameraView,
        HandledFrames,
        ImageChannel,
        Sink,
        TypeChannel,
        entitled_posts,
        handle_file,
        open_handler,
        tried_posts,
    )
    from maia.domain.handover import HandedOver, OutboxPlace, check_place, hand_over
    from maia.domain.inherited import inherited_rights
    from maia.domain.issued import Issued, issued_certificates
    from maia.domain.key_groups import (
        check_admission,
        join_key_groups,
        key_settings,
        leave_key_groups,
        open_home_groups,
        open_key_manager,
    )
    from maia.domain.keys import HomeKeys, ensure_keys
    from maia.domain.label_answers import Producer, Producers, who_produces
    from maia.domain.label_files import (
        FrameLabels,
        TagHere,
        labels_outside,
        lost_tags,
        read_label_policy,
        reader_of_client,
        tag_sequence,
        tags_here,
    )
    from maia.domain.labelled_reads import LabelledRead, check_labelled_read
    from maia.domain.links import (
        MAX_FILTERS,
        DirectLanes,
        Link,
        LinkRound,
        LinkStatus,
        WeighedFilter,
        add_link,
        check_direct_object,
        direct_lanes,
        find_link,
        link_status,
        note_failure,
        pull_link,
        read_links,
        remove_link,
        seal_filters,
        told_on,
        unwanted_segments,
        weigh_filters,
    )
    from maia.domain.lists import MadeList, known_series, make_list
    from maia.domain.live import live_clients
    from maia.domain.log_parts import LogPart, begin_read, parts_of, scan, share_out
    from maia.domain.look import CLOSED, Look
    from maia.domain.losses import find_losses
    from maia.domain.malformed import ROW_MALFORMED, audit_malformed
    from maia.domain.manager_key import manager_signer
    from maia.domain.operations import Operation, audit_of, check_home_audit, note_session, note_unproven
    from maia.domain.orders import open_own_order, order_to_publish, order_to_read
    from maia.domain.overlay import (
        DirectoryEntry,
        add_entry,
        check_credential,
        credential_to_json,
        credential_to_xml,
        exchange_for_code,
        fetch_code,
        find_entry,
        give_credential,
        list_code,
        list_entries,
        put_code,
        read_credential,
        remove_entry,
        transfer_credential,
    )
    from maia.domain.oversight import AUDITORS, OFFICERS, Oversight
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
    from maia.domain.policy_answers import find_denials, find_overlaps, find_roles, suppose
    from maia.domain.policy_files import (
        DefinedRole,
        check_policy,
        defined_roles,
        denial_lines,
        format_file,
        policy_paths,
        policy_sources,
        proof_lines,
        submit_policy,
        unmet_lines,
    )
    from maia.domain.policy_test_files import paths_of_tests
    from maia.domain.policy_tests import PolicyCoverage, PolicyOutcome, PolicyReport, run_policy_tests
    from maia.domain.possession import ProvenClient, client_over_wire
    from maia.domain.publication import (
        Published,
        Written,
        commit_publication,
        nothing_published,
        own_lanes,
        publication_operation,
        published_before,
        write_partition,
    )
    from maia.domain.questions import RightQuestion
    from maia.domain.readers import Reader, Readers, Refutation
    from maia.domain.register import has_register, in_register
    from maia.domain.releases import (
        DefinedRelease,
        Released,
        ReleasePreview,
        check_release_files,
        entry_to_json,
        format_release_file,
        release_paths,
        release_texts,
    )
    from maia.domain.replay import Replayed, ReplayedDecision, replay_audit, replay_export
    from maia.domain.returns import take_results
    from maia.domain.revocations import RevocationPreview
    from maia.domain.rows_here import PublishedPart, publish_parts
    from maia.domain.sealing_keys import SealingKeys
    from maia.domain.sight import Sight, hidden_attributes, sight_of
    from maia.domain.status import DomainStatus, LogStatus, TypeStatus, domain_status, publish_step, who_lacks
    from maia.domain.stretches import Stretch, next_stretch, type_stretch, wire_types
    from maia.domain.structure import (
        Structure,
        check_naming,
        domain_structure,
        network_owner,
        sign_exchange,
    )
    from maia.domain.subscriptions import (
        JOB,
        DomainPlans,
        add_subscription,
        delivery_job,
        end_subscription,
        take_up_subscription,
    )
    from maia.domain.topics import TypeOrTopic, TypePart, note_refused, plan_parts
    from maia.domain.trace import TRACE_FILE, read_trace
    from maia.domain.translation import make_translator, start_translator
    from maia.domain.type_labels import check_label_policy, labels_of_type
    from maia.domain.types import find_type, find_type_id, show_type
    from maia.domain.wanted import Wanted, parse_wanted, read_subscriptions, write_wanted
    from maia.domain.what_if import RightChange, WhatIf
    from maia.domain.workers import NamedWorker, list_workers, new_worker, revoke_worker
    from maia.domain.workplaces import BesideHome, Workplace, take_up
    from maia.domain.xml_policies import OWN_ZONE, OwnPolicies, policy_clock, read_xml_policy

__all__ = [
    "AUDITORS",
    "BUILT_IN_HANDLERS",
    "CLOSED",
    "JOB",
    "MAX_EVENTS",
    "MAX_FILTERS",
    "OFFICERS",
    "OWN_ZONE",
    "ROW_MALFORMED",
    "TRACE_FILE",
    "AgreementState",
    "Asked",
    "BesideHome",
    "BoundQuestion",
    "BrokerCredentials",
    "BrokerNeeds",
    "CameraView",
    "CellExplanation",
    "Client",
    "Comparison",
    "DefinedRelease",
    "DefinedRole",
    "Delegation",
    "Delivered",
    "DeliveryJob",
    "DirectLanes",
    "DirectoryEntry",
    "Domain",
    "DomainPlans",
    "DomainStatus",
    "ExportedAudit",
    "FrameLabels",
    "Granted",
    "Group",
    "HandedOver",
    "HandledFrames",
    "HomeAgreements",
    "HomeKeyGroups",
    "HomeKeys",
    "HomeTelling",
    "ImageChannel",
    "InvitedPeer",
    "Issued",
    "LabelledRead",
    "Link",
    "LinkRound",
    "LinkStatus",
    "LogPart",
    "LogStatus",
    "Look",
    "MadeList",
    "NamedWorker",
    "Operation",
    "OutboxPlace",
    "Oversight",
    "OwnKeyManager",
    "OwnNotices",
    "OwnPolicies",
    "PeerState",
    "Planned",
    "PolicyCoverage",
    "PolicyOutcome",
    "PolicyReport",
    "Producer",
    "Producers",
    "ProvenClient",
    "Published",
    "PublishedPart",
    "Reader",
    "Readers",
    "Refutation",
    "ReleasePreview",
    "Released",
    "Replayed",
    "ReplayedDecision",
    "Report",
    "RevocationDraft",
    "RevocationPreview",
    "RightChange",
    "RightQuestion",
    "SealingKeys",
    "Sight",
    "Sink",
    "Stretch",
    "Structure",
    "TagHere",
    "TypeChannel",
    "TypeOrTopic",
    "TypePart",
    "TypeStatus",
    "Wanted",
    "WeighedFilter",
    "WhatIf",
    "Work",
    "Workplace",
    "Written",
    "add_entry",
    "add_link",
    "add_subscription",
    "advance_agreement",
    "ask_conditions",
    "audit_malformed",
    "audit_of",
    "begin_read",
    "broker_credentials",
    "check_admission",
    "check_connection",
    "check_credential",
    "check_direct_object",
    "check_home_audit",
    "check_label_policy",
    "check_labelled_read",
    "check_log",
    "check_naming",
    "check_neighbour",
    "check_place",
    "check_policy",
    "check_release_files",
    "client_bounds",
    "client_over_wire",
    "commit_publication",
    "connect_peer",
    "cosign_checkpoint",
    "credential_to_json",
    "credential_to_xml",
    "defined_roles",
    "delivered_since",
    "delivery_job",
    "denial_lines",
    "direct_lanes",
    "disconnect_peer",
    "domain_signer",
    "domain_status",
    "domain_structure",
    "draft_and_sign",
    "draft_grant",
    "draft_revocation",
    "end_subscription",
    "ensure_keys",
    "entitled_posts",
    "entry_to_json",
    "exchange_for_code",
    "expire_log",
    "explain_chains",
    "export_audit",
    "fetch_code",
    "find_denials",
    "find_entry",
    "find_link",
    "find_losses",
    "find_overlaps",
    "find_roles",
    "find_subscription",
    "find_type",
    "find_type_id",
    "format_file",
    "format_release_file",
    "give_credential",
    "hand_over",
    "handle_file",
    "has_register",
    "hidden_attributes",
    "home_checkpoint",
    "home_notices",
    "in_register",
    "inherited_rights",
    "invite_peer",
    "issued_certificates",
    "join_key_groups",
    "keep_handed",
    "keep_parked",
    "key_settings",
    "known_series",
    "labels_of_type",
    "labels_outside",
    "last_events",
    "leave_key_groups",
    "let_go_of",
    "link_status",
    "list_code",
    "list_entries",
    "list_workers",
    "live_clients",
    "lost_tags",
    "make_list",
    "make_translator",
    "manager_signer",
    "mark_outbox",
    "missing_certificates",
    "network_owner",
    "new_worker",
    "next_stretch",
    "note_failure",
    "note_refused",
    "note_session",
    "note_unproven",
    "nothing_published",
    "open_access_control",
    "open_handler",
    "open_home_groups",
    "open_key_manager",
    "open_own_order",
    "open_register",
    "order_to_publish",
    "order_to_read",
    "outbox_of",
    "own_lanes",
    "parse_wanted",
    "parts_of",
    "paths_of_tests",
    "plan_parts",
    "policy_clock",
    "policy_paths",
    "policy_sources",
    "proof_lines",
    "prove_consistency",
    "prove_entry",
    "prove_key",
    "publication_operation",
    "publish_parts",
    "publish_step",
    "published_before",
    "pull_link",
    "push_certificates",
    "put_code",
    "read_credential",
    "read_deliveries",
    "read_label_policy",
    "read_links",
    "read_parked",
    "read_subscriptions",
    "read_trace",
    "read_xml_policy",
    "reader_of",
    "reader_of_client",
    "release_paths",
    "release_texts",
    "remove_entry",
    "remove_link",
    "replay_audit",
    "replay_export",
    "revoke_worker",
    "rule_bounds",
    "run_policy_tests",
    "scan",
    "seal_filters",
    "share_out",
    "show_type",
    "sight_of",
    "sign_exchange",
    "sign_grant",
    "sign_revocation",
    "start_translator",
    "submit_policy",
    "suppose",
    "sweep_home",
    "tag_sequence",
    "tags_here",
    "take_credentials",
    "take_results",
    "take_up",
    "take_up_subscription",
    "told_on",
    "transfer_credential",
    "tried_posts",
    "type_stretch",
    "undelivered",
    "unmet_lines",
    "unwanted_segments",
    "weigh_filters",
    "who_lacks",
    "who_produces",
    "wire_types",
    "write_partition",
    "write_tiles",
    "write_wanted",
]

__getattr__ = _on_first_use(__name__, _MODULES)
