"""What a broker is to the network: it follows from the clients that are connected to it, and from nothing else."""

from __future__ import annotations

from enum import Enum


class BrokerRole(Enum):
    """The roles of the literature, which one broker may change from one moment to the next."""

    PUBLISHER_HOSTING = "PHB"
    SUBSCRIBER_HOSTING = "SHB"
    CLIENT_HOSTING = "CHB"
    INTERMEDIATE = "IB"


def role_of(*, publishers: bool, subscribers: bool) -> BrokerRole:
    """Name the role of a broker with such clients: hosting either kind, both, or none.

    >>> role_of(publishers=True, subscribers=False).value, role_of(publishers=False, subscribers=False).value
    ('PHB', 'IB')
    """
    if publishers:
        return BrokerRole.CLIENT_HOSTING if subscribers else BrokerRole.PUBLISHER_HOSTING
    return BrokerRole.SUBSCRIBER_HOSTING if subscribers else BrokerRole.INTERMEDIATE
