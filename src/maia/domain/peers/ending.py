"""Ending a connection: everything that was issued to a peer is revoked, at once and without its consent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from maia.access_control import AccessControl, Revocation
from maia.domain.peers.names import key_name
from maia.domain.peers.records import SentInvitation, all_sent
from maia.domain.peers.states import PeerState
from maia.encoding import did_you_mean
from maia.errors import NotFoundError
from maia.home import Home
from maia.principals import CertificateId, Name, Subject, parse_certificate


def disconnect_peer(home: Home, service: AccessControl, peer: str, *, at: datetime) -> tuple[PeerState, Revocation]:
    """Revoke what this domain issued to another on its invitations; its broker leaves the key groups, which change.

    Args:
        home: The home of the domain that invited.
        service: Its service.
        peer: What the peer, or its key, is called here.
        at: Now.

    Raises:
        NotFoundError: No peer of this name is connected: ``NO_SUCH_PEER``.
    """
    live: dict[CertificateId, Subject] = {
        entry.certificate_id: parse_certificate(entry.certificate).body.subject for entry in service.register(at=at)
    }
    sent = [item for item in all_sent(home) if item.bound is not None]
    connected = [item for item in sent if _issued(item, live)]
    found = [item for item in connected if peer in _names(home, item)]
    if not found or found[0].bound is None:
        near = did_you_mean(peer, [name for item in connected for name in _names(home, item)])
        raise NotFoundError(f"no peer `{peer}` is connected to this home{near}", code="NO_SUCH_PEER")
    ids = [identity for item in found for identity in _issued(item, live)]
    revoked = service.revoke(at=at, certificates=dict.fromkeys(ids))
    key, invitation = found[0].bound, found[0].signed.invitation
    state = PeerState(
        did="ended", peer=invitation.peer, known_as=home.folder.names.get(key.key_id, ""), key=key,
        title=invitation.title, rows=tuple(row for item in found for row in item.signed.invitation.rows),
        certificates=len(revoked.certificates),
    )  # fmt: skip
    return state, revoked


def _issued(sent: SentInvitation, live: Mapping[CertificateId, Subject]) -> list[CertificateId]:
    """List what lives of an invitation: what was written down, and whatever else was issued to the key that answered.

    A process that was killed may have issued without writing it down.
    """
    return [
        identity
        for identity, subject in live.items()
        if identity in sent.certificates or sent.bound == (subject.base if isinstance(subject, Name) else subject)
    ]


def _names(home: Home, sent: SentInvitation) -> tuple[str, ...]:
    peer = sent.signed.invitation.peer
    known = None if sent.bound is None else home.folder.names.get(sent.bound.key_id)
    return peer, key_name(peer), *(() if known is None else (known,))
