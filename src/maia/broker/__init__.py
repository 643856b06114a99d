"""The enforcement kernel: sessions, clauses, and the two functions in which authority meets data."""

from maia.broker.clauses import Clause, clauses_from
from maia.broker.delivery import Delivery, DeliveryPlan, Subscription, check_readable, uid_filter
from maia.broker.parcels import Opened, OriginCheck, Sealing, open_batch, seal_batch
from maia.broker.publishing import CONSTRAINT_VIOLATED, Enforced, Refusal, enforce_publication
from maia.broker.sessions import Advertisement, HoldsCondition, LiveSubscription, Sessions, no_condition_holds
from maia.broker.stamps import StampRange, milliseconds, reserve_stamps

__all__ = [
    "CONSTRAINT_VIOLATED",
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
    "Subscription",
    "check_readable",
    "clauses_from",
    "enforce_publication",
    "milliseconds",
    "no_condition_holds",
    "open_batch",
    "reserve_stamps",
    "seal_batch",
    "uid_filter",
]
