"""The enforcement kernel: sessions, clauses, and the two functions in which authority meets data."""

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
from maia.broker.emulation import SubType, emulate, key_groups_needed, sub_types
from maia.broker.key_groups import (
    BROKERS,
    KEY_MANAGER,
    GroupAdmission,
    admit_broker,
    groups_of_type,
    prove_key_manager,
)
from maia.broker.parcels import MAX_EVENTS, Opened, OriginCheck, Sealing, event_name, open_batch, seal_batch
from maia.broker.publishing import CONSTRAINT_VIOLATED, Enforced, enforce_publication
from maia.broker.sessions import Advertisement, LiveSubscription, Sessions
from maia.broker.stamps import MAX_LEAD, StampRange, milliseconds, reserve_stamps

__all__ = [
    "BROKERS",
    "CONDITION_FALSE",
    "CONSTRAINT_VIOLATED",
    "KEY_MANAGER",
    "MAX_EVENTS",
    "MAX_LEAD",
    "RATE_LIMITED",
    "Advertisement",
    "Clause",
    "Delivery",
    "DeliveryPlan",
    "Enforced",
    "GroupAdmission",
    "Guard",
    "LiveSubscription",
    "MakeSurroundings",
    "NoSurroundings",
    "Opened",
    "OriginCheck",
    "Refusal",
    "Sealing",
    "Sessions",
    "StampRange",
    "SubType",
    "Subscription",
    "Surroundings",
    "admit_broker",
    "check_readable",
    "clauses_from",
    "emulate",
    "enforce_publication",
    "event_name",
    "groups_of_type",
    "key_groups_needed",
    "make_guard",
    "milliseconds",
    "omit_closed",
    "open_batch",
    "prove_key_manager",
    "reserve_stamps",
    "seal_batch",
    "sub_types",
    "uid_filter",
]
