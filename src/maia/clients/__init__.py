"""Clients of Maia's services, for brokers, principals and other services."""

from maia.clients.addresses import AddressPolicy
from maia.clients.key_manager import KeyManagerClient, RemoteRekey, RemoteStatus
from maia.clients.resting import Rest
from maia.clients.service import ClientLimits, ServiceClient

__all__ = [
    "AddressPolicy",
    "ClientLimits",
    "KeyManagerClient",
    "RemoteRekey",
    "RemoteStatus",
    "Rest",
    "ServiceClient",
]
