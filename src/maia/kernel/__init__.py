"""The enforcement kernel: sessions, plans, and what they do to Arrow batches. Nothing else decides; it does no IO."""

from __future__ import annotations

from maia.kernel.advertisements import KeptAdvertisement, standing_advertisement
from maia.kernel.bounds import announce, require_bounds
from maia.kernel.clauses import Clause, clauses_from, versions_of
from maia.kernel.client_filter import check_readable, uid_filter
from maia.kernel.conditions import CONDITION_FALSE, RATE_LIMITED, NoSurroundings, make_guard
from maia.kernel.contradiction import FILTER_CONTRADICTS_RIGHT, contradicts_right
from maia.kernel.deliver import FOREVER, DeliverPlan, MakeKeys, Origin, Outcome, Tenure, deliver_parcels
from maia.kernel.delivery import Delivery, DeliveryPlan, Subscription, omit_closed
from maia.kernel.demands import hidden_demands
from maia.kernel.descent import Descent, confined
from maia.kernel.domains import DomainTree, read_domain
from maia.kernel.emulation import SubType, emulate, key_groups_needed, sub_types
from maia.kernel.frames import (
    DEFAULT_HANDLER_BUDGET,
    FRAME_SCHEMA,
    MAX_SIDE,
    DeadFrame,
    Frame,
    FrameHandler,
    HandlerBudget,
    HandlerFaultError,
    HandlerLine,
    HandlerPost,
    HandlerReason,
    batch_of,
    frames_of,
)
from maia.kernel.group_admission import GroupAdmission, admit_broker
from maia.kernel.key_groups import KEY_MANAGER, groups_of_type, membership_changes, prove_key_manager
from maia.kernel.label_screen import screen_by_labels
from maia.kernel.logged import LoggedParcel, logged_rows
from maia.kernel.member_names import BROKERS, CLIENTS, DOMAINS, WORKERS, MemberNames, named
from maia.kernel.opening import Opened, open_batch, require_heard_of
from maia.kernel.parcels import MAX_EVENTS, Sealing, event_ids, event_name, seal_batch
from maia.kernel.plan_term import Clock, PlanTerm, tests_behind
from maia.kernel.publication import BATCH_REJECTED, CONSTRAINT_VIOLATED, enforce_publication
from maia.kernel.publish import PublishPlan, event_base, publish_batches
from maia.kernel.sessions import Sessions
from maia.kernel.stamps import MAX_LEAD, instant_at, milliseconds, read_mark, reserve_stamps, write_mark
from maia.kernel.state_cache import StateCache, StateChoice, StateReply, learn_state
from maia.kernel.steps import ROUTE, Tell, untold
from maia.kernel.topics import clauses_for, requests_for
from maia.kernel.volume import VOLUME_HIGH, VolumeWatch

__all__ = [
    "BATCH_REJECTED",
    "BROKERS",
    "CLIENTS",
    "CONDITION_FALSE",
    "CONSTRAINT_VIOLATED",
    "DEFAULT_HANDLER_BUDGET",
    "DOMAINS",
    "FILTER_CONTRADICTS_RIGHT",
    "FOREVER",
    "FRAME_SCHEMA",
    "KEY_MANAGER",
    "MAX_EVENTS",
    "MAX_LEAD",
    "MAX_SIDE",
    "RATE_LIMITED",
    "ROUTE",
    "VOLUME_HIGH",
    "WORKERS",
    "Clause",
    "Clock",
    "DeadFrame",
    "DeliverPlan",
    "Delivery",
    "DeliveryPlan",
    "Descent",
    "DomainTree",
    "Frame",
    "FrameHandler",
    "GroupAdmission",
    "HandlerBudget",
    "HandlerFaultError",
    "HandlerLine",
    "HandlerPost",
    "HandlerReason",
    "KeptAdvertisement",
    "LoggedParcel",
    "MakeKeys",
    "MemberNames",
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
    "SubType",
    "Subscription",
    "Tell",
    "Tenure",
    "VolumeWatch",
    "admit_broker",
    "announce",
    "batch_of",
    "check_readable",
    "clauses_for",
    "clauses_from",
    "confined",
    "contradicts_right",
    "deliver_parcels",
    "emulate",
    "enforce_publication",
    "event_base",
    "event_ids",
    "event_name",
    "frames_of",
    "groups_of_type",
    "hidden_demands",
    "instant_at",
    "key_groups_needed",
    "learn_state",
    "logged_rows",
    "make_guard",
    "membership_changes",
    "milliseconds",
    "named",
    "omit_closed",
    "open_batch",
    "prove_key_manager",
    "publish_batches",
    "read_domain",
    "read_mark",
    "requests_for",
    "require_bounds",
    "require_heard_of",
    "reserve_stamps",
    "screen_by_labels",
    "seal_batch",
    "standing_advertisement",
    "sub_types",
    "tests_behind",
    "uid_filter",
    "untold",
    "versions_of",
    "write_mark",
]
