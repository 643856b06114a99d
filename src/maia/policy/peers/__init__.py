"""What two domains tell each other before they share events: an invitation, the answer to it, and the welcome."""

from maia.policy.peers.answer import PeerAnswer, SignedPeerAnswer, parse_peer_answer, sign_peer_answer
from maia.policy.peers.files import MAX_PEER_FILE, PeerFileKind, kind_of_peer_file
from maia.policy.peers.invitation import (
    PeerInvitation,
    SignedPeerInvitation,
    format_peer_invitation,
    parse_peer_invitation,
    sign_peer_invitation,
)
from maia.policy.peers.joining import JoinOffer, parse_join_offer, types_of_rows
from maia.policy.peers.welcome import PeerAsk, PeerWelcome, parse_peer_ask, parse_peer_welcome

__all__ = [
    "MAX_PEER_FILE",
    "JoinOffer",
    "PeerAnswer",
    "PeerAsk",
    "PeerFileKind",
    "PeerInvitation",
    "PeerWelcome",
    "SignedPeerAnswer",
    "SignedPeerInvitation",
    "format_peer_invitation",
    "kind_of_peer_file",
    "parse_join_offer",
    "parse_peer_answer",
    "parse_peer_ask",
    "parse_peer_invitation",
    "parse_peer_welcome",
    "sign_peer_answer",
    "sign_peer_invitation",
    "types_of_rows",
]
