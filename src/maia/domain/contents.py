"""Where each name of `maia.domain` is found; it is loaded when it is asked for first."""

from __future__ import annotations

from collections.abc import Mapping

_NAMES: Mapping[str, str] = {
    "access_control": (
        "HomeAgreements HomeKeyGroups HomeTelling domain_signer open_access_control open_register prove_key"
    ),
    "agreements": "AgreementState advance_agreement draft_and_sign",
    "audit_export": "ExportedAudit export_audit",
    "audit_proofs": "cosign_checkpoint home_checkpoint prove_consistency prove_entry write_tiles",
    "bounds": "BoundQuestion client_bounds rule_bounds",
    "certificates": "push_certificates",
    "chains": "BrokerNeeds explain_chains",
    "client": "Client",
    "comparison": "Comparison",
    "conditions": "ask_conditions",
    "credentials": "BrokerCredentials broker_credentials check_connection check_neighbour take_credentials",
    "delegations": "Delegation",
    "deliveries": "Delivered delivered_since find_subscription last_events mark_outbox outbox_of read_deliveries",
    "delivery": "DeliveryJob Planned check_log",
    "delivery_work": "Group Report Work",
    "domain": "Domain",
    "engine": "Asked",
    "expiry": "expire_log sweep_home undelivered",
    "explanation": "CellExplanation",
    "grants": "Granted RevocationDraft draft_grant draft_revocation sign_grant sign_revocation",
    "grounds": "let_go_of missing_certificates",
    "handed": "keep_handed",
    "handlers": (
        "BUILT_IN_HANDLERS CameraView HandledFrames ImageChannel Sink TypeChannel entitled_posts handle_file "
        "open_handler tried_posts"
    ),
    "handover": "HandedOver OutboxPlace check_place hand_over",
    "inherited": "inherited_rights",
    "issued": "Issued issued_certificates",
    "key_groups": "check_admission join_key_groups key_settings leave_key_groups open_home_groups open_key_manager",
    "keys": "HomeKeys ensure_keys",
    "label_answers": "Producer Producers who_produces",
    "label_files": "FrameLabels TagHere labels_outside lost_tags read_label_policy reader_of_client tag_sequence "
    "tags_here",
    "labelled_reads": "LabelledRead check_labelled_read",
    "links": "DirectLanes Link LinkStatus LinkRound add_link check_direct_object direct_lanes find_link link_status "
    "note_failure pull_link read_links remove_link MAX_FILTERS WeighedFilter seal_filters told_on unwanted_segments "
    "weigh_filters",
    "lists": "MadeList known_series make_list",
    "live": "live_clients",
    "log_parts": "LogPart begin_read parts_of scan share_out",
    "look": "CLOSED Look",
    "losses": "find_losses",
    "malformed": "ROW_MALFORMED audit_malformed",
    "manager_key": "manager_signer",
    "operations": "Operation audit_of check_home_audit note_session note_unproven",
    "overlay": (
        "DirectoryEntry add_entry check_credential credential_to_json credential_to_xml exchange_for_code fetch_code "
        "find_entry give_credential list_code list_entries put_code read_credential remove_entry transfer_credential"
    ),
    "oversight": "AUDITORS OFFICERS Oversight",
    "orders": "order_to_publish order_to_read open_own_order",
    "own_key_manager": "OwnKeyManager",
    "own_notices": "OwnNotices home_notices",
    "parked": "keep_parked read_parked reader_of",
    "peers": "InvitedPeer PeerState connect_peer disconnect_peer invite_peer",
    "plans": "MAX_EVENTS",
    "policy_answers": "find_denials find_overlaps find_roles suppose",
    "policy_files": (
        "DefinedRole check_policy defined_roles denial_lines format_file policy_paths policy_sources proof_lines "
        "submit_policy unmet_lines"
    ),
    "policy_test_files": "paths_of_tests",
    "policy_tests": "PolicyCoverage PolicyOutcome PolicyReport run_policy_tests",
    "possession": "ProvenClient client_over_wire",
    "publication": (
        "Published Written commit_publication nothing_published own_lanes publication_operation "
        "published_before write_partition"
    ),
    "questions": "RightQuestion",
    "readers": "Reader Readers Refutation",
    "register": "has_register in_register",
    "releases": (
        "DefinedRelease ReleasePreview Released check_release_files entry_to_json format_release_file "
        "release_paths release_texts"
    ),
    "replay": "Replayed ReplayedDecision replay_audit replay_export",
    "revocations": "RevocationPreview",
    "returns": "take_results",
    "rows_here": "PublishedPart publish_parts",
    "sealing_keys": "SealingKeys",
    "sight": "Sight hidden_attributes sight_of",
    "status": "DomainStatus LogStatus TypeStatus domain_status publish_step who_lacks",
    "stretches": "Stretch next_stretch type_stretch wire_types",
    "structure": "Structure check_naming domain_structure network_owner sign_exchange",
    "subscriptions": "DomainPlans JOB add_subscription delivery_job end_subscription take_up_subscription",
    "topics": "TypeOrTopic TypePart note_refused plan_parts",
    "trace": "TRACE_FILE read_trace",
    "translation": "make_translator start_translator",
    "type_labels": "check_label_policy labels_of_type",
    "types": "find_type find_type_id show_type",
    "wanted": "Wanted parse_wanted read_subscriptions write_wanted",
    "what_if": "RightChange WhatIf",
    "workers": "NamedWorker list_workers new_worker revoke_worker",
    "workplaces": "BesideHome Workplace take_up",
    "xml_policies": "OWN_ZONE OwnPolicies policy_clock read_xml_policy",
}
"""The names of each module."""
MODULES: Mapping[str, str] = {name: module for module, names in _NAMES.items() for name in names.split()}
"""The module of each name."""
