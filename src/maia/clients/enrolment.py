"""Becoming a member of a domain: with its service in this process, or over HTTP."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from maia.access_control import AccessControl
from maia.clients.access_control import AccessControlClient
from maia.domain import prove_key
from maia.principals import PublicKey, Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """What a new member takes home; nothing in it is verified yet."""

    name: str
    kind: str
    domain: PublicKey
    evidence: tuple[bytes, ...]
    statements: tuple[bytes, ...]


def join_here(
    service: AccessControl,
    signer: Signer,
    invitation: str | None = None,
    *,
    at: datetime,
    appointment: bytes | None = None,
) -> Enrolled:
    """Join a domain whose service is in this process, by an invitation or an appointment."""
    who = prove_key(service, signer, nonce=secrets.token_bytes(32), at=at)
    made = service.enrol(who, invitation=invitation, appointment=appointment, at=at)
    return Enrolled(
        name=made.member.name, kind=made.member.kind.value, domain=service.key, evidence=made.handed.evidence,
        statements=made.handed.statements,
    )  # fmt: skip


def join_over_http(
    url: str, domain: PublicKey, signer: Signer, invitation: str | None = None, *, appointment: bytes | None = None
) -> Enrolled:
    """Join a domain whose service is far away, by either; only the domain's own key is talked to."""
    with AccessControlClient(url, signer=signer, server_key=domain) as client:
        member, handed = client.enrol(invitation=invitation, appointment=appointment)
    return Enrolled(
        name=member.name, kind=member.kind, domain=domain, evidence=(*handed.certificates, *handed.chain),
        statements=handed.statements,
    )  # fmt: skip
