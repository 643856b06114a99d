"""Two domains become peers: one invites, the other answers, the first admits, and the log carries the rest."""

from maia.domain.peers.connecting import connect_peer
from maia.domain.peers.ending import disconnect_peer
from maia.domain.peers.inviting import InvitedPeer, invite_peer
from maia.domain.peers.states import PeerState
from maia.domain.peers.welcomes import take_welcomes

__all__ = [
    "InvitedPeer",
    "PeerState",
    "connect_peer",
    "disconnect_peer",
    "invite_peer",
    "take_welcomes",
]
