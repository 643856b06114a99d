"""The enforcement kernel: sessions, clauses, and the two functions in which authority meets data."""

from maia.broker.cascade import (
    Cascade,
    CascadePorts,
    CascadeReport,
    CascadeStage,
    Issued,
    Standing,
    plan_cascade,
    run_cascade,
)
from maia.broker.checking import Refusal
from maia.broker.clauses import Clause, clauses_from
from maia.broker.conditions import (
    CONDITION_FALSE,
    RATE_LIMITED,
    Guard,
    MakeSurroundings,
    NoSurroundings,
    Surroundings,
    make_guard,
)
from maia.broker.delivery import Delivery, DeliveryPlan, Subscription, check_readable, omit_closed, uid_filter
from maia.broker.domains import CLIENTS, DOMAINS, Domain, check_local, check_served, read_domain
from maia.broker.emulation import SubType, emulate, key_groups_needed, sub_types
from maia.broker.key_groups import (
    BROKERS,
    KEY_MANAGER,
    GroupAdmission,
    admit_broker,
    groups_of_type,
    membership_changes,
    named,
    prove_key_manager,
)
from maia.broker.parcels import MAX_EVENTS, Opened, OriginCheck, Sealing, event_name, open_batch, seal_batch
from maia.broker.publishing import BATCH_REJECTED, CONSTRAINT_VIOLATED, Enforced, enforce_publication
from maia.broker.sessions import Advertisement, LiveSubscription, Sessions
from maia.broker.stamps import MAX_LEAD, StampRange, milliseconds, read_mark, reserve_stamps, write_mark
from maia.broker.state_cache import StateCache, StateChoice, StateReply, TopicState, learn_state
from maia.broker.volume import VOLUME_HIGH, VolumeWatch

__all__ = [
    "BATCH_REJECTED",
    "BROKERS",
    "CLIENTS",
    "CONDITION_FALSE",
    "CONSTRAINT_VIOLATED",
    "DOMAINS",
    "KEY_MANAGER",
    "MAX_EVENTS",
    "MAX_LEAD",
    "RATE_LIMITED",
    "VOLUME_HIGH",
    "Advertisement",
    "Cascade",
    "CascadePorts",
    "CascadeReport",
    "CascadeStage",
    "Clause",
    "Delivery",
    "DeliveryPlan",
    "Domain",
    "Enforced",
    "GroupAdmission",
    "Guard",
    "Issued",
    "LiveSubscription",
    "MakeSurroundings",
    "NoSurroundings",
    "Opened",
    "OriginCheck",
    "Refusal",
    "Sealing",
    "Sessions",
    "StampRange",
    "Standing",
    "StateCache",
    "StateChoice",
    "StateReply",
    "SubType",
    "Subscription",
    "Surroundings",
    "TopicState",
    "VolumeWatch",
    "admit_broker",
    "check_local",
    "check_readable",
    "check_served",
    "clauses_from",
    "emulate",
    "enforce_publication",
    "event_name",
    "groups_of_type",
    "key_groups_needed",
    "learn_state",
    "make_guard",
    "membership_changes",
    "milliseconds",
    "named",
    "omit_closed",
    "open_batch",
    "plan_cascade",
    "prove_key_manager",
    "read_domain",
    "read_mark",
    "reserve_stamps",
    "run_cascade",
    "seal_batch",
    "sub_types",
    "uid_filter",
    "write_mark",
]
