"""Clients of Maia's services, for brokers, principals and other services."""

from maia.clients.access_control import AccessControlClient, RemoteHanded, RemoteMember, RemoteRevocation
from maia.clients.addresses import AddressPolicy
from maia.clients.enrolment import Enrolled, join_here, join_over_http
from maia.clients.homes import connect_access_control, connect_key_manager
from maia.clients.key_manager import KeyManagerClient, RemoteRekey, RemoteStatus
from maia.clients.memberships import Membership, join_type, leave_type
from maia.clients.resting import Rest
from maia.clients.service import ClientLimits, ServiceClient

__all__ = [
    "AccessControlClient",
    "AddressPolicy",
    "ClientLimits",
    "Enrolled",
    "KeyManagerClient",
    "Membership",
    "RemoteHanded",
    "RemoteMember",
    "RemoteRekey",
    "RemoteRevocation",
    "RemoteStatus",
    "Rest",
    "ServiceClient",
    "connect_access_control",
    "connect_key_manager",
    "join_here",
    "join_over_http",
    "join_type",
    "leave_type",
]
