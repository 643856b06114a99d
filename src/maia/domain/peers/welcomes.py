"""Taking up a welcome: what the giver of an agreement says in the log, for whoever asked it.

Rules kept here:

- only the lane of the domain that was asked is read, and of it only what answers the agreement and the join that this
  home remembers. What does not open, or is forged, changes nothing and stops nobody;
- the agreement has both signatures from then on, so the roles that it speaks of get their names;
- the keys of the join are erased when what they open is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from maia.authority import ListStatement
from maia.domain.agreement_files import agreement_path, read_agreement, write_agreement
from maia.domain.certificates import read_chain
from maia.domain.memberships import GroupKeys
from maia.domain.peers.records import Joining, all_joining, forget_joining
from maia.encryption import EpochId, KeyGroupId, OpenedPlace, open_earlier_keys, open_join_answer
from maia.errors import MaiaError, SealError, UnavailableError, VerificationError
from maia.events import TypeId
from maia.home import Home, locked
from maia.log import START, NoticeKind, NoticeLog, StatementSubscription
from maia.policy import SignedAgreement, peers, verify_agreement
from maia.principals import TestKind

_READ = 100
_MAX_ROUNDS = 100
_log = logging.getLogger(__name__)


def take_welcomes(home: Home, notices: NoticeLog, *, at: datetime) -> int:
    """Take up what the log says to joins that this home asked for; return how many were answered now."""
    if not (home.path / "peers").is_dir():
        return 0
    taken = 0
    for joining in all_joining(home):
        for welcome in _welcomes(home, joining, notices):
            try:
                if _take(home, joining, welcome, at=at):
                    taken += 1
                    break
            except MaiaError as error:
                _log.warning("a welcome to `%s` is refused: %s", joining.title, error.code)
    return taken


def is_welcome(home: Home, joining: Joining, notices: NoticeLog) -> bool:
    """Tell whether the log answers a join, and nothing took it up yet; nothing is taken up by asking."""
    try:
        digest = read_agreement(agreement_path(home, joining.title)).agreement.digest
    except MaiaError:
        return False
    return any(welcome.agreement == digest for welcome in _welcomes(home, joining, notices))


def is_ended(home: Home, joining: Joining, notices: NoticeLog, *, at: datetime) -> bool:
    """Tell whether the log says that all that the other domain gave to this one is withdrawn; nothing is taken up."""
    domain, giver = home.key(home.config.domain).key_id, joining.giver.key_id
    try:
        sent = notices.reader(NoticeKind.CERTIFICATE, giver, domain).since(START, limit=_READ).records
        said = StatementSubscription(notices, giver).state(at=at)
        chains = [read_chain(record.body, frozenset({giver})) for record in sent]
    except MaiaError:
        return False
    given = {item.certificate_id for chain in chains for item in chain}
    lists = [item.body for item in said if isinstance(item.body, ListStatement) and item.body.kind is TestKind.CRL]
    return bool(given) and given <= {identity for item in lists for identity in item.certificates}


def _welcomes(home: Home, joining: Joining, notices: NoticeLog) -> Iterator[peers.PeerWelcome]:
    """Give what the other domain said to this one, oldest first."""
    domain = home.key(home.config.domain).key_id
    reader, place = notices.reader(NoticeKind.PEER, joining.giver.key_id, domain), START
    for _ in range(_MAX_ROUNDS):
        try:
            found = reader.since(place, limit=_READ)
        except UnavailableError as error:
            _log.warning("welcomes of %s cannot be read: %s", joining.giver.fingerprint, error.code)
            return
        for record in found.records:
            try:
                yield peers.parse_peer_welcome(record.body)
            except MaiaError as error:
                _log.warning("record %d of %s is refused: %s", record.number, record.lane, error.code)
        if len(found.records) < _READ:
            return
        place = found.place


def _take(home: Home, joining: Joining, welcome: peers.PeerWelcome, *, at: datetime) -> bool:
    """Take up a welcome, when it answers this join."""
    half = read_agreement(agreement_path(home, joining.title))
    if half.agreement.digest != welcome.agreement:
        return False
    agreed = SignedAgreement(
        agreement=half.agreement, signatures=tuple(dict.fromkeys((*half.signatures, welcome.signature)))
    )
    verify_agreement(agreed, at=at, statements=home.statements.load())
    try:
        places = _open(home, joining, welcome)
    except (SealError, VerificationError):
        return False  # the answer to an earlier join of this home
    keys, ring_path = GroupKeys(home), home.path / "keyring"
    earlier = _earlier(home, joining, welcome, frozenset(place.group for place in places))
    for place in places:
        keys.join(place.group, place.individual, manager=joining.manager, welcome=place.welcome, at=at)
    if earlier:
        with locked(ring_path):
            ring = home.keyring()
            for group, start, key in earlier:
                if start not in ring.epochs(group):
                    ring.add(group, start, key)
            home.save_keyring(ring)
    write_agreement(home, agreed)
    forget_joining(home, joining)
    return True


def _open(home: Home, joining: Joining, welcome: peers.PeerWelcome) -> list[OpenedPlace]:
    """Open the places that the key manager gives, each with the key of its own type's join.

    Raises:
        VerificationError: They answer another join: ``WRONG_ANSWER``.
        SealError: One does not open.
    """
    member = home.broker.public_key.key_id
    if len(welcome.answers) != len(joining.keys):
        raise VerificationError("the answer to another request", code="WRONG_ANSWER")
    found: list[OpenedPlace] = []
    for (type_id, private), answer in zip(joining.keys, welcome.answers, strict=True):
        places = open_join_answer(answer, private, member=member, manager=joining.manager)
        # SECURITY: whoever manages one type gives nobody a place in the groups of another.
        if any(place.group.type_id != type_id for place in places):
            raise VerificationError("the answer to another request", code="WRONG_ANSWER")
        found += places
    return found


def _earlier(
    home: Home, joining: Joining, welcome: peers.PeerWelcome, groups: frozenset[KeyGroupId]
) -> list[tuple[KeyGroupId, EpochId, bytes]]:
    """Open the keys of earlier epochs, of groups in which this home has a place by the same welcome."""
    member, privates = home.broker.public_key.key_id, dict(joining.keys)
    found = []
    for type_id, label, sealed in welcome.history:
        group = KeyGroupId(TypeId(type_id), label)
        if group in groups:
            keys = open_earlier_keys(
                sealed, privates[group.type_id], group=group, member=member, manager=joining.manager
            )
            found += [(group, start, key) for start, key in keys]
    return found
