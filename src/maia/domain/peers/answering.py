"""Answering an invitation: the home learns what it needs to know, signs the agreement, and asks for keys.

Rules kept here:

- nothing is taken up from a file whose signature does not verify, whose time is over, or that is for somebody else, and
  nothing before whoever runs it has agreed;
- definitions of types are verified as ever, and the words of the agreement must mean here what it gives;
- a home has one log: one with events of its own is not exchanged for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from maia.domain.agreement_files import agreement_path, read_agreement, write_agreement
from maia.domain.key_groups import verified_versions
from maia.domain.peers.brokers import assure_broker, assure_readers, shown_certificates, shown_statements
from maia.domain.peers.names import know_key
from maia.domain.peers.records import Joining, keep_joining
from maia.domain.peers.states import PeerState
from maia.encryption import GroupRequest, JoinGroups, join_public_key, new_join_key, sign_group_request
from maia.errors import DeniedError, EncodingError, MaiaError, NotFoundError, UsageError, VerificationError
from maia.events import EncryptionMode, TypeId, parse_event_type
from maia.home import Home, change_config
from maia.kernel import KEY_MANAGER, milliseconds, prove_key_manager
from maia.log import LogDirectory
from maia.policy import (
    Agreement,
    AgreementRow,
    SignedAgreement,
    TypeCatalogue,
    check_meaning,
    peers,
    sign_agreement,
)
from maia.principals import PublicKey, Signer


def answer_peer(
    home: Home,
    signer: Signer,
    data: bytes,
    *,
    at: datetime,
    readers: Sequence[str] = (),
    log: Path | None = None,
    confirm: Callable[[PeerState], None],
) -> PeerState:
    """Connect to the domain that sent an invitation; give the answer for it.

    Args:
        home: The home of the domain that answers.
        signer: The key that speaks for it.
        data: The invitation.
        at: Now.
        readers: Keys of this home that are given the roles of the agreement at once.
        log: Where the log is for this home, when not where the invitation says.
        confirm: Shows what is offered, and raises when nobody agrees.

    Raises:
        EncodingError: It is no invitation.
        SignatureError: It was altered: ``PEER_FILE_ALTERED``.
        ExpiredError: Its time is over: ``PEER_INVITATION_OVER``.
        DeniedError: It is for another domain: ``PEER_WRONG``.
        UsageError: It is this domain's own (``PEER_SELF``), or the home has a log (``PEER_LOG_IN_USE``) or a network
            (``PEER_NETWORK``) of its own.
        NotFoundError: The log is not where it should be: ``PEER_LOG``.
        VerificationError: Its words mean something else than what it gives.
    """
    signed = peers.parse_peer_invitation(data)
    invitation, secret = signed.invitation, signed.secret
    assert secret is not None  # noqa: S101 - the file has one, or is none
    if invitation.key == signer.public_key:
        raise UsageError(
            f"this is the invitation of this domain itself; send the file to {invitation.peer}", code="PEER_SELF"
        )
    if invitation.peer_key not in (None, signer.public_key):
        raise DeniedError(
            f"the invitation is for another key than this domain's; {invitation.name} makes one for it with "
            f"`--key {signer.public_key.raw.hex()}`",
            code="PEER_WRONG",
        )
    keys = [home.folder.key(name) for name in readers]
    agreement = Agreement(
        title=invitation.title, giver=invitation.key, receiver=signer.public_key, rows=invitation.rows
    )
    if not _known(home, agreement):
        invitation.check_open(at=at)
    _check_offer(home, invitation, agreement, at=at)
    path = _log_path(home, invitation, log)
    offer = PeerState(
        did="offered", peer=invitation.name, known_as=home.folder.names.get(invitation.key.key_id, ""),
        key=invitation.key, title=invitation.title, rows=invitation.rows, ends=invitation.ends,
        history=invitation.history, log=str(path), join_at=invitation.manager_address,
    )  # fmt: skip
    confirm(offer)
    known_as = know_key(home, invitation.name, invitation.key)
    home = _settle(home, invitation, path, known_as)
    _keep_types(home, invitation.types, at=at)
    assure_broker(home, signer, at=at)
    assure_readers(home, signer, keys, agreement.roles, at=at)
    half = sign_agreement(SignedAgreement(agreement=agreement), signer)
    write_agreement(home, half)
    asked = invitation.rows if invitation.manager_address is None else ()  # a service is asked by `maia keys join`
    offered = ask_to_join(home, asked, title=invitation.title, giver=invitation.key, manager=invitation.manager, at=at)
    answer = peers.PeerAnswer(
        invitation=invitation.digest, name=home.config.name, agreement=agreement, signature=half.signatures[-1],
        offer=offered,
    )  # fmt: skip
    return PeerState(
        did="answered", peer=invitation.name, known_as=known_as, key=invitation.key, title=invitation.title,
        rows=invitation.rows, ends=invitation.ends, history=invitation.history,
        text=peers.sign_peer_answer(answer, signer, secret), log=str(path), join_at=invitation.manager_address,
    )  # fmt: skip


def _known(home: Home, agreement: Agreement) -> bool:
    """Tell whether this domain answered before, and may do so again: it lost its keys, or was silent for too long.

    Raises:
        UsageError: Another agreement has the same title here: ``AGREEMENT_EXISTS``.
    """
    path = agreement_path(home, agreement.title)
    if not path.exists():
        return False
    if read_agreement(path).agreement != agreement:
        raise UsageError(f"`{path.name}` is there already; agreements are never overwritten", code="AGREEMENT_EXISTS")
    return True


def _check_offer(home: Home, invitation: peers.PeerInvitation, agreement: Agreement, *, at: datetime) -> None:
    """Refuse an offer whose words mean something else than it gives, or whose keys come from whom they must not.

    Raises:
        VerificationError: ``AGREEMENT_MEANING``, or ``NOT_THE_KEY_MANAGER``.
        EncodingError: A text in it is not one line: ``PEER_FILE_SHAPE``.
    """
    texts = (invitation.name, invitation.log, invitation.manager_address or "", *(invitation.network or ("",))[-1:])
    if not all(str(text).isprintable() for text in texts):
        raise EncodingError("names and addresses of an invitation are one line each", code="PEER_FILE_SHAPE")
    types = [parse_event_type(raw).definition for raw in invitation.types]
    networks = () if invitation.network is None else (invitation.network,)
    check_meaning(agreement, TypeCatalogue(types, networks=networks))
    pool = home.pool()
    for raw in invitation.certificates:
        pool.add(raw)
    for item in types:
        if item.type_id in peers.types_of_rows(agreement.rows):
            # SECURITY: else an invitation could put its own key manager in charge of the types of others.
            prove_key_manager(invitation.manager, item.name, pool, verifier=home.verifier(), at=at)


def ask_to_join(
    home: Home, rows: Iterable[AgreementRow], *, title: str, giver: PublicKey, manager: PublicKey, at: datetime
) -> peers.JoinOffer:
    """Ask, as this home's broker, to join the key groups of the types that rows speak of.

    The private keys of the joins stay here until the log has the answer.
    """
    keys: list[tuple[TypeId, bytes]] = []
    requests: list[bytes] = []
    for type_id in peers.types_of_rows(rows):
        versions = verified_versions(home, type_id, at=at)
        if all(item.event_type.options.encryption is EncryptionMode.PLAIN for item in versions):
            continue
        private = new_join_key()
        request = GroupRequest(
            manager=manager.key_id, type_id=type_id, stamp=milliseconds(at),
            what=JoinGroups(key=join_public_key(private)),
        )  # fmt: skip
        keys.append((type_id, private))
        requests.append(sign_group_request(request, home.broker))
    keep_joining(home, Joining(title=title, giver=giver, manager=manager, keys=tuple(keys)))
    domain = home.key(home.config.domain)
    return peers.JoinOffer(
        requests=tuple(requests), certificates=shown_certificates(home, domain),
        statements=shown_statements(home, domain),
    )  # fmt: skip


def _log_path(home: Home, invitation: peers.PeerInvitation, log: Path | None) -> Path:
    """Find the log that both will use."""
    path = Path(invitation.log) if log is None else log
    path = path.resolve()
    if path == home.log_path:
        return path
    if not path.is_dir():
        raise NotFoundError(
            f"there is no folder `{path}`, which {invitation.name} has as its log; mount it, or say with --log where "
            "it is here",
            code="PEER_LOG",
        )
    if home.log_path.is_dir() and LogDirectory(home.log_path).lanes():
        raise UsageError(
            "this home has a log with events of its own; connect with a home that has none", code="PEER_LOG_IN_USE"
        )
    return path


def _settle(home: Home, invitation: peers.PeerInvitation, log: Path, known_as: str) -> Home:
    """Write down keys, network, log and key manager."""
    if home.network is not None and home.network != invitation.network:
        raise UsageError(
            "this home belongs to another network than the invitation; connect with a home of its own",
            code="PEER_NETWORK",
        )
    for name, key in invitation.keys:
        # SECURITY: what others call a key names it here only behind their own name
        know_key(home, f"{known_as}-{name}", key)
    network = None
    if invitation.network is not None:
        owner, called = invitation.network
        if not isinstance(owner, PublicKey):
            raise UsageError("a home's network is owned by one key", code="PEER_NETWORK")
        network = know_key(home, f"{known_as}-network", owner), called
    address = None
    if invitation.manager_address is not None and home.config.key_manager is None and not home.types.names():
        address = invitation.manager_address
        if not home.public_path(KEY_MANAGER).exists():
            home.add_public_key(KEY_MANAGER, invitation.manager)
    return change_config(home, log=None if log == home.log_path else str(log), network=network, key_manager=address)


def _keep_types(home: Home, types: Sequence[bytes], *, at: datetime) -> None:
    """Keep definitions, each after those that it stands on.

    Raises:
        MaiaError: One does not verify, or is not the one that this home knows.
    """
    registry, left = home.folder.types, list(types)
    while left:  # bounded: every turn keeps one, or ends
        problem: MaiaError | None = None
        waiting: list[bytes] = []
        for raw in left:
            try:
                registry.put(raw, at=at)
            except (NotFoundError, VerificationError) as error:
                problem = problem or error
                waiting.append(raw)
        if problem is not None and len(waiting) == len(left):
            raise problem
        left = waiting
