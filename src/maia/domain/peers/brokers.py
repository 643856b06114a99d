"""A domain's own broker and readers, as another domain's key manager must see them: named by certificates that last.

Rules kept here: what is signed here can be revoked, by the lists of the domain, and is signed once; what the domain's
settings do not give its brokers is not given here either.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.access_control import Settings, blanket_body
from maia.authority import Action, network_right, parse_statement, verify_statement
from maia.domain.access_control.service import read_settings
from maia.domain.grants import issue_alive
from maia.domain.lists import assure_list
from maia.home import Home
from maia.kernel import BROKERS
from maia.policy import role_name
from maia.principals import Authorisation, Body, Name, Naming, PublicKey, Signer


def assure_broker(home: Home, signer: Signer, *, at: datetime) -> None:
    """See that a home's broker is one by its domain's word, and may have what the domain has."""
    settings, domain = read_settings(home), signer.public_key
    tests = settings.online_tests(domain)
    bodies: list[Body] = [Naming(issuer=domain, name=BROKERS, subject=home.key(home.config.broker), tests=tests)]
    if settings.blanket:
        bodies.append(blanket_body(domain, settings))
    _keep(home, signer, bodies, at=at)


def assure_readers(
    home: Home, signer: Signer, readers: Iterable[PublicKey], roles: Iterable[str], *, at: datetime
) -> None:
    """Give keys of a home the names of roles that an agreement speaks of, and let them connect."""
    settings, domain = read_settings(home), signer.public_key
    tests, named = settings.online_tests(domain), sorted(roles)
    for reader in readers:
        bodies: list[Body] = [
            Naming(issuer=domain, name=role_name(role), subject=reader, tests=tests) for role in named
        ]
        _keep(home, signer, [*bodies, *_connect(home, domain, reader, settings)], at=at)


def shown_certificates(home: Home, domain: PublicKey) -> tuple[bytes, ...]:
    """Give what a domain says of its brokers: their names, and what it lets them have."""
    broker = home.key(home.config.broker)
    subjects = (broker, Name(domain, (BROKERS,)))
    return tuple(
        item.raw
        for item in home.pool()
        if item.body.issuer_id == domain.key_id
        and item.body.subject in subjects
        and (isinstance(item.body, Authorisation) or item.body.name == BROKERS)
    )


def shown_statements(home: Home, domain: PublicKey) -> tuple[bytes, ...]:
    """Give the lists of a domain that its home knows."""
    found = (verify_statement(parse_statement(raw)) for raw in home.statements.load().raw_statements())
    return tuple(item.raw for item in found if item.signer_id == domain.key_id)


def _connect(home: Home, domain: PublicKey, subject: PublicKey, settings: Settings) -> list[Body]:
    if home.network is None or not settings.connect:
        return []
    tag = network_right(*home.network, [Action.CONNECT])
    return [
        Authorisation(
            issuer=domain, subject=subject, delegate=False, tag=tag.to_sexp(), tests=settings.online_tests(domain)
        )
    ]


def _keep(home: Home, signer: Signer, bodies: Iterable[Body], *, at: datetime) -> None:
    assure_list(home.folder, signer, at=at)
    for body in bodies:
        home.certificates.add(issue_alive(home.folder, body, signer, at=at))
