"""What a gateway lets its clients take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLimits:
    """Bounds, each of which ends in a refusal with a code.

    Attributes:
        connections: Connections at once.
        unproven: Those among them whose client has not proven its key yet.
        of_peer: Those of one address.
        of_key: Those of one key.
        subscriptions: Subscriptions that one connection follows.
        in_flight: Requests of one connection that are not answered yet.
        waiting: Requests of all connections that are not answered yet.
        waiting_octets: Their frames together.
        group_rows: Rows after which a group of publications is committed at once.
        linger: Seconds for which a group waits for more.
        handshake_seconds: How long a client may take to prove its key.
        idle_seconds: How long a client that follows nothing may be silent.
        send_seconds: How long a client may take to read what it is sent.
        poll_seconds: How often the log is looked at for what others wrote.
    """

    connections: int = 10_000
    unproven: int = 256
    of_peer: int = 4096
    of_key: int = 64
    subscriptions: int = 64
    in_flight: int = 32
    waiting: int = 512
    waiting_octets: int = 64 << 20
    group_rows: int = 1000
    linger: float = 0.005
    handshake_seconds: float = 10.0
    idle_seconds: float = 300.0
    send_seconds: float = 10.0
    poll_seconds: float = 0.5
