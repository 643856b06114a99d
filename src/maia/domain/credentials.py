"""The credentials that a broker and its clients show each other over a connection.

Rules kept here:

- a broker shows all that it has: what lets it connect to its network and what it may do with the types that it knows,
  with the lists by which that can be checked; certificates of others are not among it;
- a client shows what a request needs and no more: what it brings is judged alone, by its own key, for the one thing
  that it asks for, and kept only when that is granted. What was kept before counts as well;
- on a network a client that may not connect is not listened to;
- a neighbour that may connect leaves nothing in the home: what it brings is judged and given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maia.authority import (
    Action,
    CertificatePool,
    Grant,
    Verifier,
    ask_network,
    ask_type,
    parse_statement,
    verify_statement,
)
from maia.domain.domain import Domain
from maia.domain.handed import keep_handed
from maia.domain.possession import ProvenClient
from maia.domain.presentations import decide_request
from maia.errors import UsageError, VerificationError
from maia.kernel import Sessions
from maia.principals import Authorisation, CertificateId, PublicKey, parse_certificate

MAX_SHOWN = 256
"""Certificates, and statements, that a broker shows; and certificates that a client brings at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCredentials:
    """What a broker shows of itself: signed objects, each believed by itself."""

    certificates: tuple[bytes, ...] = ()
    statements: tuple[bytes, ...] = ()


def broker_credentials(domain: Domain) -> BrokerCredentials:
    """Collect what this domain's broker may do, and by what that is checked."""
    at = domain.clock()
    known = domain.known(at=at)
    key, pool, sessions = domain.home.key(domain.config.broker), known.pool, known.sessions
    found: dict[CertificateId, None] = {}
    if sessions.network is not None:
        request = ask_network(Action.CONNECT, *sessions.network)
        for right in known.verifier.clauses(request, principal=key, evidence=pool, at=at):
            found |= dict.fromkeys(right.proof.certificate_ids())
    for verified, _ in known.types:
        for action in (Action.SUBSCRIBE, Action.PUBLISH):
            for clause in sessions.clauses(key, action, verified.event_type, pool, at=at):
                found |= dict.fromkeys(clause.chain)
    shown = [pool.get(item) for item in list(found)[:MAX_SHOWN]]
    tests = [test for item in shown if isinstance(item.body, Authorisation) for test in item.body.tests]
    book = known.verifier.statements
    lists = [item.raw for test in tests for item in (book.serving(test, at=at), book.withdrawing(test)) if item]
    return BrokerCredentials(
        certificates=tuple(item.raw for item in shown), statements=tuple(dict.fromkeys(lists))[:MAX_SHOWN]
    )


def check_connection(domain: Domain, client: ProvenClient, brought: Sequence[bytes] = ()) -> None:
    """Refuse a client that may not connect to the network of this domain, by what it brings or is known already.

    Raises:
        MaiaError: It may not, or something that it brings is none.
    """
    if len(brought) > MAX_SHOWN:
        raise UsageError(f"a request brings at most {MAX_SHOWN} certificates", code="TOO_MANY_CREDENTIALS")
    at = domain.follow()
    known = domain.known(at=at)
    network = known.sessions.network
    if brought and network is not None:
        request = ask_network(Action.CONNECT, *network)
        if not known.verifier.decide(request, principal=client.key, evidence=known.pool, at=at):
            _keep(domain, known.verifier.verify(request, principal=client.key, evidence=brought, at=at), brought)
            known = domain.known(at=at)
    known.sessions.check_connected(client.key, known.pool, at=at)


def check_neighbour(
    domain: Domain, key: PublicKey, brought: Sequence[bytes] = (), statements: Sequence[bytes] = ()
) -> BrokerCredentials:
    """Refuse a key that was proven over a connection and may not connect to the network of this domain.

    What is known here counts first; then what it brings, alone, with the lists that are known here. None of it is kept.

    Args:
        domain: Who asks.
        key: Whose right it is.
        brought: Its certificates.
        statements: The lists by which they can be checked.

    Returns:
        What was needed of that: who goes on asking about the key brings it again. Nothing when the key is known here.

    Raises:
        MaiaError: It may not, or something that it brings is none.
    """
    if len(brought) > MAX_SHOWN or len(statements) > MAX_SHOWN:
        raise UsageError(f"a request brings at most {MAX_SHOWN} certificates", code="TOO_MANY_CREDENTIALS")
    at = domain.follow()
    known = domain.known(at=at)
    network = known.sessions.network
    request = None if network is None else ask_network(Action.CONNECT, *network)
    if not brought or request is None or known.verifier.decide(request, principal=key, evidence=known.pool, at=at):
        known.sessions.check_connected(key, known.pool, at=at)
        return BrokerCredentials()
    # SECURITY: nothing of it comes into the home, nor into what its verifier remembers: whoever may pass `connect` on
    # makes as many keys as it likes, and each would leave its certificates and lists here.
    book = domain.home.statements.load()
    for raw in statements:
        book.accept_unless_known(verify_statement(parse_statement(raw)))
    verifier, pool = Verifier(statements=book, clock=known.verifier.clock), CertificatePool(brought)
    sessions = Sessions(verifier, network=network, surroundings=known.sessions.surroundings)
    sessions.check_connected(key, pool, at=at)
    rights = verifier.clauses(request, principal=key, evidence=pool, at=at)
    needed = {item for right in rights for item in right.proof.certificate_ids()}
    links = [item for item in map(parse_certificate, brought) if item.certificate_id in needed]
    signers = {test.signer.key_id for item in links for test in item.body.tests}
    return BrokerCredentials(
        certificates=tuple(item.raw for item in links),
        statements=tuple(raw for raw in statements if parse_statement(raw).body.signer.key_id in signers),
    )


def take_credentials(
    domain: Domain,
    client: ProvenClient,
    brought: Sequence[bytes],
    action: str,
    type: str,  # noqa: A002 - as everywhere
    version: str | None,
) -> None:
    """Judge what a client brings for one request, alone, and keep it when that is granted.

    Raises:
        MaiaError: It proves no such right, and nothing is kept.
    """
    if len(brought) > MAX_SHOWN:
        raise UsageError(f"a request brings at most {MAX_SHOWN} certificates", code="TOO_MANY_CREDENTIALS")
    at = domain.follow()
    name, known = domain.find_type(type, version), domain.known(at=at)
    request = ask_type(Action.parse(action), name.owner, name.name, name.version.text)
    if known.verifier.decide(request, principal=client.key, evidence=known.pool, at=at):
        return  # known already
    decision = decide_request(domain, client, brought, action, name, at=at)
    if decision.grant is None:
        raise decision.error or VerificationError("what was shown proves nothing", code="NO_EVIDENCE")
    _keep(domain, decision.grant, brought)


def _keep(domain: Domain, grant: Grant, brought: Sequence[bytes]) -> None:
    """Keep, of what a client brought, the links of the chain that was granted: whoever brings more fills no disk."""
    needed = set(grant.proof.certificate_ids())
    keep_handed(domain.home, [raw for raw in brought if parse_certificate(raw).certificate_id in needed], ())
