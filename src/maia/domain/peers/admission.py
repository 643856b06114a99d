"""Admitting a domain that answered an invitation: what was agreed is issued, its broker gets keys, the log tells both.

Rules kept here, in this order:

- an answer counts when the domain that it names and the secret of the invitation have signed it, the invitation is one
  of this home and open, and nobody else answered it; and only for what the invitation offered, to the letter;
- it is bound to the key that answered, durably, before anything is issued;
- whether the other's broker gets keys is decided by the key manager and the kernel, as for every broker. Keys of
  earlier epochs go only to groups that it was admitted to, and only as far back as the invitation says;
- an answer that comes again, from the same domain, changes nothing that it has, and helps one that lost its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from maia.access_control import AccessControl
from maia.authority import Action, network_right, parse_statement, verify_statement
from maia.domain.agreement_files import agreement_path, read_agreement, write_agreement
from maia.domain.certificates import push_certificates
from maia.domain.key_groups import verified_versions
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.own_notices import home_notices
from maia.domain.peers.names import know_key
from maia.domain.peers.records import SentInvitation, bind_sent, find_sent, keep_sent
from maia.domain.peers.states import PeerState
from maia.domain.statements import accept_statements
from maia.encryption import (
    EpochId,
    JoinGroups,
    KeyGroupId,
    Keyring,
    groups_answered,
    seal_earlier_keys,
    verify_group_request,
)
from maia.errors import DeniedError, ExpiredError, VerificationError
from maia.home import Home
from maia.kernel import milliseconds
from maia.log import NoticeKind
from maia.policy import SignedAgreement, peers, sign_agreement
from maia.principals import Certificate, Period, PublicKey, Signer, parse_certificate, verify_certificate

_WINDOW = timedelta(days=366)
"""So old may a request be that comes with an answer: as old as an invitation gets."""


def admit_peer(
    home: Home,
    service: AccessControl,
    signer: Signer,
    own: OwnKeyManager,
    data: bytes,
    *,
    at: datetime,
    confirm: Callable[[PeerState], None],
) -> PeerState:
    """Admit the domain that answered an invitation.

    Args:
        home: The home of the domain that invited.
        service: Its service.
        signer: The key that speaks for it.
        own: The key manager that the home runs itself.
        data: The answer.
        at: Now.
        confirm: Shows who answered, and raises when nobody agrees.

    Raises:
        EncodingError: It is no answer.
        SignatureError: It was altered, or its sender was not given the invitation: ``PEER_FILE_ALTERED``.
        NotFoundError: This home made no such invitation: ``PEER_INVITATION_UNKNOWN``.
        ExpiredError: It comes too late: ``PEER_INVITATION_OVER``.
        DeniedError: Another domain was meant (``PEER_WRONG``) or has answered (``PEER_INVITATION_USED``), what was
            given is revoked (``WITHDRAWN``), or its broker may have no keys.
        VerificationError: It agrees to something else than was offered: ``PEER_OFFER``.
    """
    signed = peers.parse_peer_answer(data)
    answer, key = signed.answer, signed.answer.agreement.receiver
    sent = find_sent(home, answer.invitation)
    invitation = sent.signed.invitation
    signed.check_secret(invitation.one_time_key)
    _check(sent, answer, key, at=at)
    known_as = home.folder.names.get(key.key_id, "")
    confirm(
        PeerState(
            did="asked", peer=answer.name, known_as=known_as, key=key, title=invitation.title, rows=invitation.rows,
            ends=invitation.ends, history=invitation.history,
        )
    )  # fmt: skip
    sent = bind_sent(home, answer.invitation, key)
    known_as = know_key(home, invitation.peer, key)
    agreed = _countersigned(home, signer, answer, at=at)
    # What was issued is written down before anybody gets it, so that a connection that exists can be ended.
    issued = give_agreed(
        home, service, signer, agreed, at=at,
        keep=lambda made: keep_sent(home, replace(sent, certificates=tuple(item.certificate_id for item in made))),
    )  # fmt: skip
    groups = welcome_brokers(
        home, signer, own, agreed, answer.offer, evidence=issued, history=invitation.history, at=at
    )
    return PeerState(
        did="admitted", peer=answer.name, known_as=known_as, key=key, title=invitation.title, rows=invitation.rows,
        ends=invitation.ends, history=invitation.history, certificates=len(issued), groups=groups,
        join_at=home.config.key_manager,
    )  # fmt: skip


def give_agreed(
    home: Home,
    service: AccessControl,
    signer: Signer,
    agreed: SignedAgreement,
    *,
    at: datetime,
    keep: Callable[[Sequence[Certificate]], None] = lambda _made: None,
) -> tuple[Certificate, ...]:
    """Issue what an agreement gives and the right to connect, ``keep`` it, and send it with its chain over the log."""
    receiver = agreed.agreement.receiver
    handed = service.honour(agreed, at=at)
    issued = [*handed.certificates, *_connection(home, service, receiver, at=at)]
    for certificate in issued:
        home.certificates.add(certificate)
    keep(issued)
    chain = [verify_certificate(parse_certificate(raw)) for raw in handed.chain]
    push_certificates(home_notices(home), signer, receiver.key_id, [*chain, *issued], at=at)
    return tuple(issued)


def welcome_brokers(
    home: Home,
    signer: Signer,
    own: OwnKeyManager,
    agreed: SignedAgreement,
    offer: peers.JoinOffer,
    *,
    evidence: Iterable[Certificate],
    history: datetime | None = None,
    at: datetime,
) -> int:
    """Admit the broker of an agreement's receiver to key groups, and tell it so in the log.

    Returns:
        How many places it has now; none where a key manager elsewhere is asked for them.
    """
    receiver = agreed.agreement.receiver
    lists = (verify_statement(parse_statement(raw)) for raw in offer.statements)
    accept_statements(home.statements, [item for item in lists if item.signer_id == receiver.key_id], at)
    shown = (*offer.certificates, *(item.raw for item in evidence))
    answers: list[bytes] = []
    earlier: list[tuple[bytes, bytes, bytes]] = []
    spoken_of = peers.types_of_rows(agreed.agreement.rows)
    for request in offer.requests if home.config.key_manager is None else ():
        asked = verify_group_request(request, _manager(home).public_key.key_id)
        versions = verified_versions(home, asked.request.type_id, at=at)
        if not versions or asked.request.type_id not in spoken_of:
            raise VerificationError("the answer asks for keys of other types than were offered", code="PEER_OFFER")
        answer = own.admit(versions[-1].event_type, request, shown, at=at, window=_WINDOW)
        answers.append(answer)
        if history is not None and isinstance(asked.request.what, JoinGroups):
            earlier += _earlier(
                home, groups_answered(answer), asked.request.what.key, asked.sender, since=milliseconds(history)
            )
    own_signature = next(
        raw for raw in agreed.signatures if parse_certificate(raw).body.issuer_id == signer.public_key.key_id
    )
    welcome = peers.PeerWelcome(
        agreement=agreed.agreement.digest, signature=own_signature, answers=tuple(answers), history=tuple(earlier)
    )
    home_notices(home).say(NoticeKind.PEER, signer, receiver.key_id, welcome.encoded(), at=at)
    return sum(len(groups_answered(answer)) for answer in answers)


def _check(sent: SentInvitation, answer: peers.PeerAnswer, key: PublicKey, *, at: datetime) -> None:
    """Refuse an answer that comes too late, from somebody else, or to something else."""
    invitation = sent.signed.invitation
    if invitation.peer_key not in (None, key):
        raise DeniedError("another domain was invited than the one that answered", code="PEER_WRONG")
    if sent.bound is None:
        try:
            invitation.check_open(at=at)
        except ExpiredError as error:
            raise ExpiredError(
                f"{error.message.partition(';')[0]}; make another with `maia domain invite-peer`", code=error.code
            ) from error
    agreement = answer.agreement
    offered = (invitation.title, invitation.key, invitation.rows)
    if (agreement.title, agreement.giver, agreement.rows) != offered:
        raise VerificationError("the answer agrees to something else than was offered", code="PEER_OFFER")


def _countersigned(home: Home, signer: Signer, answer: peers.PeerAnswer, *, at: datetime) -> SignedAgreement:
    """Sign the agreement as its giver, once; what was signed before is taken up again."""
    path = agreement_path(home, answer.agreement.title)
    if path.is_file():
        before = read_agreement(path)
        if before.agreement == answer.agreement:
            return before
    half = SignedAgreement(agreement=answer.agreement, signatures=(answer.signature,))
    # Another moment makes another agreement's certificates, also after this one's were revoked.
    agreed = sign_agreement(half, signer, period=Period(at.replace(microsecond=0), None))
    write_agreement(home, agreed)
    return agreed


def _connection(home: Home, service: AccessControl, receiver: PublicKey, *, at: datetime) -> tuple[Certificate, ...]:
    """Let the other domain connect, and let others connect, where there is a network and it may not yet."""
    if home.network is None:
        return ()
    right = network_right(*home.network, [Action.CONNECT])
    for entry in service.register(at=at):
        body = parse_certificate(entry.certificate).body
        if body.subject == receiver and getattr(body, "tag", None) == right.to_sexp():
            return (verify_certificate(parse_certificate(entry.certificate)),)
    return (service.grant(receiver, right, at=at, delegate=True),)


def _earlier(
    home: Home, groups: Iterable[KeyGroupId], join_key: bytes, broker: PublicKey, *, since: int
) -> list[tuple[bytes, bytes, bytes]]:
    """Seal the keys of the epochs that end after an instant, of the groups that a broker was admitted to."""
    ring, found = home.keyring(), []
    for group in groups:
        keys = _since(ring, group, since)
        if keys:
            sealed = seal_earlier_keys(keys, join_key, group=group, member=broker.key_id, manager=_manager(home))
            found.append((bytes(group.type_id), group.label, sealed))
    return found


def _since(ring: Keyring, group: KeyGroupId, since: int) -> list[tuple[EpochId, bytes]]:
    epochs = ring.epochs(group)
    held = [(start, ring.key(group, start), end) for start, end in zip(epochs, (*epochs[1:], None), strict=True)]
    return [(start, key) for start, key, end in held if key is not None and (end is None or end > since)]


def _manager(home: Home) -> Signer:
    from maia.domain.manager_key import manager_signer  # noqa: PLC0415 - opens a key

    return manager_signer(home)
