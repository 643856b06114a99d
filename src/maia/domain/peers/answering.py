"""Answering an invitation: the home learns what it needs to know, signs the agreement, and asks for keys.

Rules kept here:

- nothing is taken up from a file whose signature does not verify, whose time is over, or that is for somebody else, and
  nothing before whoever runs it has agreed;
- definitions of types are verified as ever, and the words of the agreement must mean here what it gives: all that may
  refuse an invitation is asked before anybody is, and ``maia.toml`` is written after keys and definitions;
- of the definitions only those are kept that its rows speak of, with what they stand on;
- a home has one log: one with events of its own is not exchanged for another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from maia.domain.agreement_files import agreement_path, read_agreement, write_agreement
from maia.domain.key_groups import verified_versions
from maia.domain.peers.brokers import assure_broker, assure_readers, shown_certificates, shown_statements
from maia.domain.peers.names import key_name, know_key
from maia.domain.peers.records import Joining, keep_joining
from maia.domain.peers.states import PeerState
from maia.encryption import GroupRequest, JoinGroups, join_public_key, new_join_key, sign_group_request
from maia.errors import DeniedError, EncodingError, NotFoundError, UsageError, VerificationError
from maia.events import EncryptionMode, TypeId, TypeName, UnverifiedEventType, parse_event_type
from maia.home import Home, change_config, check_key_name
from maia.kernel import KEY_MANAGER, milliseconds, prove_key_manager
from maia.log import LogDirectory, check_address, is_address, open_store
from maia.policy import (
    Agreement,
    AgreementRow,
    SignedAgreement,
    TypeCatalogue,
    check_meaning,
    peers,
    sign_agreement,
)
from maia.principals import Principal, PublicKey, Signer, Threshold


def answer_peer(
    home: Home,
    signer: Signer,
    data: bytes,
    *,
    at: datetime,
    readers: Sequence[str] = (),
    log: Path | str | None = None,
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
    types = _offered_types(invitation)
    _check_offer(home, invitation, agreement, types, at=at)
    place = _log_place(home, invitation, log)
    offer = PeerState(
        did="offered", peer=invitation.name, known_as=home.folder.names.get(invitation.key.key_id, ""),
        key=invitation.key, title=invitation.title, rows=invitation.rows, ends=invitation.ends,
        history=invitation.history, log=place, join_at=invitation.manager_address,
    )  # fmt: skip
    confirm(offer)
    if place != home.log_place:
        # SECURITY: after the yes, since it shows this home's own credentials to a place that another one named; and
        # before anything is signed, since the store may not answer.
        open_store(place).list_folders("", "", limit=1)
    fresh = not home.types.names()
    for item in types:
        home.folder.types.put(item.raw, at=at)
    known_as = know_key(home, invitation.name, invitation.key)
    home = _settle(home, invitation, place, known_as, fresh=fresh)
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
        text=peers.sign_peer_answer(answer, signer, secret), log=place, join_at=invitation.manager_address,
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


def _offered_types(invitation: peers.PeerInvitation) -> tuple[UnverifiedEventType, ...]:
    """List the definitions of the types that an invitation's rows speak of, each after those that it stands on.

    What else it carries is nothing that anybody was shown, and stays out.

    Raises:
        MalformedError: One is no definition.
        VerificationError: They extend each other: ``TYPE_LOOP``.
    """
    brought = [parse_event_type(raw) for raw in dict.fromkeys(invitation.types)]
    by_id: defaultdict[bytes, list[int]] = defaultdict(list)
    by_name: defaultdict[TypeName, list[int]] = defaultdict(list)
    for number, item in enumerate(brought):
        by_id[item.definition_id].append(number)
        by_name[item.definition.name].append(number)
    spoken_of = peers.types_of_rows(invitation.rows)
    wanted = [number for number, item in enumerate(brought) if item.definition.type_id in spoken_of]
    order: TopologicalSorter[int] = TopologicalSorter()
    taken = set(wanted)
    while wanted:  # bounded: each is taken once
        number = wanted.pop()
        one = brought[number].definition
        before = by_id.get(one.previous, []) if isinstance(one.previous, bytes) else []
        before = before + (by_name.get(one.extends, []) if one.extends is not None else [])
        order.add(number, *before)
        wanted += [item for item in before if item not in taken]
        taken.update(before)
    try:
        return tuple(brought[number] for number in order.static_order())
    except CycleError as error:
        raise VerificationError("types of the invitation extend each other", code="TYPE_LOOP") from error


def _check_offer(
    home: Home,
    invitation: peers.PeerInvitation,
    agreement: Agreement,
    definitions: Sequence[UnverifiedEventType],
    *,
    at: datetime,
) -> None:
    """Refuse an offer that could not be taken up whole, before anybody is asked; nothing is written.

    Its words mean what it gives, its definitions verify and fit to those that are known here, its keys come from whom
    they may, and its network is one that this home can belong to.

    Raises:
        VerificationError: ``AGREEMENT_MEANING``, ``NOT_THE_KEY_MANAGER``, or a definition does not verify.
        MalformedError: A definition contradicts one that was accepted here.
        EncodingError: A text in it is not one line: ``PEER_FILE_SHAPE``.
        UsageError: This home belongs to another network, or that has no keys for owners: ``PEER_NETWORK``.
    """
    texts = (invitation.name, invitation.log, invitation.manager_address or "", *(invitation.network or ("",))[-1:])
    if not all(str(text).isprintable() for text in texts):
        raise EncodingError("names and addresses of an invitation are one line each", code="PEER_FILE_SHAPE")
    check_key_name(key_name(invitation.name))
    _check_network(home, invitation)
    types = [item.definition for item in definitions]
    networks = () if invitation.network is None else (invitation.network,)
    check_meaning(agreement, TypeCatalogue(types, networks=networks))
    pool = home.pool()
    for raw in invitation.certificates:
        pool.add(raw)
    for item in types:
        if item.type_id in peers.types_of_rows(agreement.rows):
            # SECURITY: else an invitation could put its own key manager in charge of the types of others.
            prove_key_manager(invitation.manager, item.name, pool, verifier=home.verifier(), at=at)
    # SECURITY: whatever refuses a definition refuses the invitation whole, while nothing of it is in this home.
    draft = home.folder.types.draft()
    for one in definitions:
        draft.put(one.raw, at=at)


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


def _log_place(home: Home, invitation: peers.PeerInvitation, log: Path | str | None) -> str:
    """Find the log that both will use."""
    said = invitation.log if log is None else str(log)
    place = check_address(said) if is_address(said) else str(Path(said).resolve())
    if place == home.log_place:
        return place
    # SECURITY: we prove to a node who we are, and to none that somebody else named for us.
    if log is None and place.startswith("kafka://"):
        raise UsageError(
            f"{invitation.name} has its log at `{place}`; if your credentials may go there, say `--log {place}`",
            code="PEER_LOG_NODE",
        )
    if not is_address(place) and not Path(place).is_dir():
        raise NotFoundError(
            f"there is no folder `{place}`, which {invitation.name} has as its log; mount it, or say with --log where "
            "it is here",
            code="PEER_LOG",
        )
    if LogDirectory(home.log_store).lanes():
        raise UsageError(
            "this home has a log with events of its own; connect with a home that has none", code="PEER_LOG_IN_USE"
        )
    return place


def _settle(home: Home, invitation: peers.PeerInvitation, log: str, known_as: str, *, fresh: bool) -> Home:
    """Write down keys, and then network, log and, where it is ``fresh``, the key manager in ``maia.toml``."""
    for name, key in invitation.keys:
        # SECURITY: what others call a key names it here only behind their own name
        know_key(home, f"{known_as}-{name}", key)
    network = None
    if invitation.network is not None:
        owner, called = invitation.network
        network = _know_owner(home, f"{known_as}-network", owner), called
    address = None
    if invitation.manager_address is not None and home.config.key_manager is None and fresh:
        address = invitation.manager_address
        if not home.public_path(KEY_MANAGER).exists():
            home.add_public_key(KEY_MANAGER, invitation.manager)
    return change_config(home, log=None if log == home.log_place else log, network=network, key_manager=address)


def _check_network(home: Home, invitation: peers.PeerInvitation) -> None:
    """Refuse a network that is not this home's, or whose owner it could not write down."""
    if home.network is not None and home.network != invitation.network:
        raise UsageError(
            "this home belongs to another network than the invitation; connect with a home of its own",
            code="PEER_NETWORK",
        )
    owner = None if invitation.network is None else invitation.network[0]
    members = owner.members if isinstance(owner, Threshold) else () if owner is None else (owner,)
    if not all(isinstance(member, PublicKey) for member in members):
        raise UsageError("a home's network is owned by a key, or by several keys", code="PEER_NETWORK")


def _know_owner(home: Home, name: str, owner: Principal) -> str:
    """Write down the key of a network's owner, or those of its members; give the text that `maia.toml` has for it."""
    if isinstance(owner, PublicKey):
        return know_key(home, name, owner)
    assert isinstance(owner, Threshold)  # noqa: S101 - it was checked before anybody was asked
    known = [
        know_key(home, f"{name}-{number}", member)
        for number, member in enumerate(owner.members, 1)
        if isinstance(member, PublicKey)
    ]
    return f"{owner.k} of ({', '.join(known)})"
