"""Clients of the services that a home's settings name.

An address that stands in a home's own settings is the owner's word: a loopback or private address that is written
there as a number is allowed, and nothing beside it. A name still has to lead to a public address.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from maia.clients.access_control import AccessControlClient
from maia.clients.addresses import AddressPolicy
from maia.clients.key_manager import KeyManagerClient
from maia.errors import NotFoundError

if TYPE_CHECKING:
    from maia.home import Home

KEY_MANAGER = "key-manager"


def connect_key_manager(home: Home) -> KeyManagerClient:
    """Give a client of the home's key manager, for the home's broker; no connection is made yet.

    The manager's key is the one that the home knows as ``key-manager``.

    Raises:
        NotFoundError: The home names no key manager, or does not know its key.
        MalformedError: The address is refused.
    """
    url = _named(home.config.key_manager, "key manager")
    return KeyManagerClient(url, signer=home.broker, server_key=home.key(KEY_MANAGER), policy=address_policy(url))


def connect_access_control(home: Home, *, as_: str) -> AccessControlClient:
    """Give a client of the home's access control service, for one of its keys; no connection is made yet.

    The service's key is the one that speaks for the domain.

    Raises:
        NotFoundError: The home names no such service, or does not know its key, or has no such key to ask with.
        MalformedError: The address is refused.
    """
    url = _named(home.config.access_control, "access control service")
    key = home.key(home.config.domain)
    return AccessControlClient(url, signer=home.signer(as_), server_key=key, policy=address_policy(url))


def _named(url: str | None, what: str) -> str:
    if url is None:
        raise NotFoundError(f"the home's settings name no {what}", code="NO_SERVICE")
    return url


def address_policy(url: str) -> AddressPolicy:
    """Tell where connections to an address may go that stands in a home's own files: there, and nowhere beside it."""
    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost":
            return AddressPolicy(loopback=True)
        address = ip_address(host)
    except ValueError:
        return AddressPolicy()
    return AddressPolicy(loopback=address.is_loopback, networks=(ip_network(address),))
