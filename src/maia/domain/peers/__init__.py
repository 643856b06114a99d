"""Two domains become peers: one invites, the other answers, the first admits, and the log carries the rest.

Each name is loaded on first use: a home that only follows its log needs no database.
"""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use

if _typing.TYPE_CHECKING:
    from maia.domain.peers.connecting import connect_peer
    from maia.domain.peers.ending import disconnect_peer
    from maia.domain.peers.inviting import InvitedPeer, invite_peer
    from maia.domain.peers.states import PeerState

__all__ = ["InvitedPeer", "PeerState", "connect_peer", "disconnect_peer", "invite_peer"]

__getattr__ = _on_first_use(
    __name__,
    {
        "InvitedPeer": "inviting",
        "PeerState": "states",
        "connect_peer": "connecting",
        "disconnect_peer": "ending",
        "invite_peer": "inviting",
    },
)
