"""The enforcement kernel: sessions, clauses, and the two functions in which authority meets data."""

from maia.broker.checking import Refusal
from maia.broker.clauses import Clause, clauses_from
from maia.broker.delivery import Delivery, DeliveryPlan, Subscription, check_readable, omit_closed, uid_filter
from maia.broker.emulation import SubType, emulate, key_groups_needed, sub_types
from maia.broker.parcels import MAX_EVENTS, Opened, OriginCheck, Sealing, event_name, open_batch, seal_batch
from maia.broker.publishing import CONSTRAINT_VIOLATED, Enforced, enforce_publication
from maia.broker.sessions import Advertisement, HoldsCondition, LiveSubscription, Sessions, no_condition_holds
from maia.broker.stamps import MAX_LEAD, StampRange, milliseconds, reserve_stamps

__all__ = [
    "CONSTRAINT_VIOLATED",
    "MAX_EVENTS",
    "MAX_LEAD",
    "Advertisement",
    "Clause",
    "Delivery",
    "DeliveryPlan",
    "Enforced",
    "HoldsCondition",
    "LiveSubscription",
    "Opened",
    "OriginCheck",
    "Refusal",
    "Sealing",
    "Sessions",
    "StampRange",
    "SubType",
    "Subscription",
    "check_readable",
    "clauses_from",
    "emulate",
    "enforce_publication",
    "event_name",
    "key_groups_needed",
    "milliseconds",
    "no_condition_holds",
    "omit_closed",
    "open_batch",
    "reserve_stamps",
    "seal_batch",
    "sub_types",
    "uid_filter",
]
