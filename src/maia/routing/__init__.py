"""The overlay: identifiers, prefix tables, rendezvous, dissemination trees and their repair; state machines, no IO."""

from __future__ import annotations

from maia.routing.accounts import Account
from maia.routing.broker import Broker
from maia.routing.edge import OverlayDelivery
from maia.routing.evidence import REPLAY_WINDOW, NetworkRequest, sign_request, verify_request
from maia.routing.handshake import LinkHandshake
from maia.routing.identifiers import Identifier, closest, distance, identifier, rendezvous, shared_digits
from maia.routing.links import Links, Patience
from maia.routing.messages import (
    Advertise,
    AdvertisedLane,
    AskState,
    Event,
    HeldEvent,
    Lane,
    LaneOffer,
    Packet,
    Pull,
    Pulled,
    ShownCredentials,
    Subscribe,
    ToldState,
)
from maia.routing.neighbours import DEFAULT_LEAVES, FixedRoutes, NeighbourTable, Routes
from maia.routing.rights import NeighbourRight, NeighbourRights, reduce_rights
from maia.routing.roles import BrokerRole, role_of
from maia.routing.state import OverlayState
from maia.routing.tree import Tree, merge_bounds
from maia.routing.verification import AskedRequest, Gate, Strategy, subject_of

__all__ = [
    "DEFAULT_LEAVES",
    "REPLAY_WINDOW",
    "Account",
    "Advertise",
    "AdvertisedLane",
    "AskState",
    "AskedRequest",
    "Broker",
    "BrokerRole",
    "Event",
    "FixedRoutes",
    "Gate",
    "HeldEvent",
    "Identifier",
    "Lane",
    "LaneOffer",
    "LinkHandshake",
    "Links",
    "NeighbourRight",
    "NeighbourRights",
    "NeighbourTable",
    "NetworkRequest",
    "OverlayDelivery",
    "OverlayState",
    "Packet",
    "Patience",
    "Pull",
    "Pulled",
    "Routes",
    "ShownCredentials",
    "Strategy",
    "Subscribe",
    "ToldState",
    "Tree",
    "closest",
    "distance",
    "identifier",
    "merge_bounds",
    "reduce_rights",
    "rendezvous",
    "role_of",
    "shared_digits",
    "sign_request",
    "subject_of",
    "verify_request",
]
