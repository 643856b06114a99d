"""Keys for an agreement that was signed by hand: the receiver asks in the log, and the giver answers there.

    (peer-ask (version "1") (agreement <digest>) (join …))

Rules kept here:

- the receiver asks as it signs, and only where the giver owns all the types: nobody else manages their keys without
  saying so;
- the giver reads the lane of the receiver that the agreement names, and of it what asks for this agreement. Whether
  the broker gets keys is decided as ever; without an ask it gets none, and can still join the giver's key manager.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.domain.certificates import push_certificates
from maia.domain.key_groups import verified_versions
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.own_notices import home_notices
from maia.domain.peers.admission import welcome_brokers
from maia.domain.peers.answering import ask_to_join
from maia.domain.peers.brokers import assure_broker
from maia.errors import MaiaError
from maia.events import TypeId
from maia.home import Home
from maia.log import START, NoticeKind, NoticeLog
from maia.policy import SignedAgreement, peers
from maia.principals import Certificate, PublicKey, Signer

_READ = 1000


def ask_for_keys(home: Home, signer: Signer, signed: SignedAgreement, *, at: datetime) -> bool:
    """Ask, as the receiver of an agreement, for the keys of its types; tell whether there was something to ask for."""
    agreement = signed.agreement
    if not all(_owned(home, type_id, agreement.giver, at=at) for type_id in peers.types_of_rows(agreement.rows)):
        return False
    assure_broker(home, signer, at=at)
    offer = ask_to_join(
        home, agreement.rows, title=agreement.title, giver=agreement.giver, manager=agreement.giver, at=at
    )
    ask = peers.PeerAsk(agreement=agreement.digest, offer=offer)
    home_notices(home).say(NoticeKind.PEER, signer, agreement.giver.key_id, ask.encoded(), at=at)
    return True


def answer_with_keys(
    home: Home, signer: Signer, signed: SignedAgreement, issued: Iterable[Certificate], *, at: datetime
) -> int:
    """Send the receiver of an agreement what was issued, and admit its broker where it asked for that.

    Returns:
        How many places in key groups its broker has now.
    """
    agreement, certificates = signed.agreement, tuple(issued)
    push_certificates(home_notices(home), signer, agreement.receiver.key_id, certificates, at=at)
    offer = _asked(home, signed)
    if offer is None:
        return 0
    own = OwnKeyManager(home)
    try:
        return welcome_brokers(home, signer, own, signed, offer, evidence=certificates, at=at)
    finally:
        own.close()


def _asked(home: Home, signed: SignedAgreement) -> peers.JoinOffer | None:
    """Find the newest ask of the receiver for an agreement."""
    agreement = signed.agreement
    reader = NoticeLog(home.log_store).reader(NoticeKind.PEER, agreement.receiver.key_id, agreement.giver.key_id)
    found = None
    for record in reader.since(START, limit=_READ).records:
        try:
            ask = peers.parse_peer_ask(record.body)
        except MaiaError:
            continue  # something else that it said
        if ask.agreement == agreement.digest:
            found = ask.offer
    return found


def _owned(home: Home, type_id: TypeId, owner: PublicKey, *, at: datetime) -> bool:
    versions = verified_versions(home, type_id, at=at)
    return bool(versions) and versions[0].event_type.name.owner_id == owner.key_id
