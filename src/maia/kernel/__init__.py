"""The enforcement kernel: sessions, plans, and what they do to Arrow batches. Nothing else decides; it does no IO."""

from __future__ import annotations

from maia.kernel.bounds import announce, require_bounds
from maia.kernel.broker_places import BROKERS, DOMAINS, named
from maia.kernel.clauses import Clause, ask_version, clauses_from, versions_of
from maia.kernel.conditions import CONDITION_FALSE, RATE_LIMITED, NoSurroundings, make_guard
from maia.kernel.deliver import FOREVER, DeliverPlan, MakeKeys, Origin, Outcome, Tenure, deliver_parcels
from maia.kernel.delivery import Delivery, DeliveryPlan, Subscription, check_readable, omit_closed, uid_filter
from maia.kernel.descent import Descent, confined
from maia.kernel.domains import CLIENTS, DomainTree, check_local, check_served, read_domain
from maia.kernel.emulation import emulate, key_groups_needed, sub_types
from maia.kernel.group_admission import GroupAdmission, admit_broker
from maia.kernel.key_groups import KEY_MANAGER, groups_of_type, membership_changes, prove_key_manager
from maia.kernel.parcels import (
    MAX_EVENTS,
    Opened,
    Sealing,
    event_ids,
    event_name,
    open_batch,
    require_heard_of,
    seal_batch,
)
from maia.kernel.plan_term import Clock, PlanTerm, tests_behind
from maia.kernel.publication import BATCH_REJECTED, CONSTRAINT_VIOLATED, enforce_publication
from maia.kernel.publish import PublishPlan, event_base, parcel_row, publish_batches
from maia.kernel.sessions import Sessions
from maia.kernel.stamps import MAX_LEAD, instant_at, milliseconds, read_mark, reserve_stamps, write_mark
from maia.kernel.state_cache import StateCache, StateChoice, StateReply, learn_state
from maia.kernel.topics import clauses_for, requests_for
from maia.kernel.volume import VOLUME_HIGH, VolumeWatch

__all__ = [
    "BATCH_REJECTED",
    "BROKERS",
    "CLIENTS",
    "CONDITION_FALSE",
    "CONSTRAINT_VIOLATED",
    "DOMAINS",
    "FOREVER",
    "KEY_MANAGER",
    "MAX_EVENTS",
    "MAX_LEAD",
    "RATE_LIMITED",
    "VOLUME_HIGH",
    "Clause",
    "Clock",
    "DeliverPlan",
    "Delivery",
    "DeliveryPlan",
    "Descent",
    "DomainTree",
    "GroupAdmission",
    "MakeKeys",
    "NoSurroundings",
    "Opened",
    "Origin",
    "Outcome",
    "PlanTerm",
    "PublishPlan",
    "Sealing",
    "Sessions",
    "StateCache",
    "StateChoice",
    "StateReply",
    "Subscription",
    "Tenure",
    "VolumeWatch",
    "admit_broker",
    "announce",
    "ask_version",
    "check_local",
    "check_readable",
    "check_served",
    "clauses_for",
    "clauses_from",
    "confined",
    "deliver_parcels",
    "emulate",
    "enforce_publication",
    "event_base",
    "event_ids",
    "event_name",
    "groups_of_type",
    "instant_at",
    "key_groups_needed",
    "learn_state",
    "make_guard",
    "membership_changes",
    "milliseconds",
    "named",
    "omit_closed",
    "open_batch",
    "parcel_row",
    "prove_key_manager",
    "publish_batches",
    "read_domain",
    "read_mark",
    "requests_for",
    "require_bounds",
    "require_heard_of",
    "reserve_stamps",
    "seal_batch",
    "sub_types",
    "tests_behind",
    "uid_filter",
    "versions_of",
    "write_mark",
]
