"""A domain's gateway: the five operations of clients that are not Spark programs, over WebSocket and HTTP."""

from maia.services.gateway.limits import GatewayLimits
from maia.services.gateway.service import make_gateway

__all__ = ["GatewayLimits", "make_gateway"]
