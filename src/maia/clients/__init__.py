"""Clients of Maia's services, for brokers, principals and other services.

Each name is loaded on first use, so that a client of a gateway needs no database and no Spark.
"""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.clients.access_control import AccessControlClient, RemoteHanded, RemoteMember, RemoteRevocation
    from maia.clients.addresses import AddressPolicy
    from maia.clients.console import console_address
    from maia.clients.enrolment import Enrolled, join_here, join_over_http
    from maia.clients.gateway import Acknowledged, GatewayClient, RefusedPositions, connect
    from maia.clients.homes import connect_access_control, connect_key_manager
    from maia.clients.key_manager import KeyManagerClient, RemoteRekey, RemoteStatus
    from maia.clients.links import opened_link
    from maia.clients.log import LogClient
    from maia.clients.memberships import Membership, join_type, leave_type
    from maia.clients.resting import Rest
    from maia.clients.service import ClientLimits, ServiceClient
    from maia.clients.subscription import GatewaySubscription

__all__ = [
    "AccessControlClient",
    "Acknowledged",
    "AddressPolicy",
    "ClientLimits",
    "Enrolled",
    "GatewayClient",
    "GatewaySubscription",
    "KeyManagerClient",
    "LogClient",
    "Membership",
    "RefusedPositions",
    "RemoteHanded",
    "RemoteMember",
    "RemoteRekey",
    "RemoteRevocation",
    "RemoteStatus",
    "Rest",
    "ServiceClient",
    "connect",
    "connect_access_control",
    "connect_key_manager",
    "console_address",
    "join_here",
    "join_over_http",
    "join_type",
    "leave_type",
    "opened_link",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "AccessControlClient": "access_control",
        "RemoteHanded": "access_control",
        "RemoteMember": "access_control",
        "RemoteRevocation": "access_control",
        "AddressPolicy": "addresses",
        "console_address": "console",
        "Enrolled": "enrolment",
        "join_here": "enrolment",
        "join_over_http": "enrolment",
        "Acknowledged": "gateway",
        "GatewayClient": "gateway",
        "RefusedPositions": "gateway",
        "connect": "gateway",
        "connect_access_control": "homes",
        "connect_key_manager": "homes",
        "KeyManagerClient": "key_manager",
        "RemoteRekey": "key_manager",
        "RemoteStatus": "key_manager",
        "opened_link": "links",
        "LogClient": "log",
        "Membership": "memberships",
        "join_type": "memberships",
        "leave_type": "memberships",
        "Rest": "resting",
        "ClientLimits": "service",
        "ServiceClient": "service",
        "GatewaySubscription": "subscription",
    },
)
