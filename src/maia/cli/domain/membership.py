"""Becoming a member of a domain, for `maia domain join`: with its service in this process, or over HTTP."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.cli.read.services import open_domain
from maia.principals import PublicKey, Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What a new member takes home; nothing in it is verified yet."""

    name: str
    kind: str
    domain: PublicKey
    evidence: tuple[bytes, ...]
    statements: tuple[bytes, ...]


def join_here(folder: Path, signer: Signer, code: str, *, at: datetime) -> Joined:
    """Join the domain of a home on this machine."""
    from maia.domain import prove_key

    _, service = open_domain(folder, None)
    who = prove_key(service, signer, nonce=secrets.token_bytes(32), at=at)
    made = service.enrol(who, invitation=code, at=at)
    return Joined(
        name=made.member.name,
        kind=made.member.kind.value,
        domain=service.key,
        evidence=made.handed.evidence,
        statements=made.handed.statements,
    )


def join_over_http(url: str, domain: PublicKey, signer: Signer, code: str) -> Joined:
    """Join a domain whose service is far away; only the domain's own key is talked to."""
    from maia.clients import AccessControlClient

    with AccessControlClient(url, signer=signer, server_key=domain) as client:
        member, handed = client.enrol(invitation=code)
    return Joined(
        name=member.name,
        kind=member.kind,
        domain=domain,
        evidence=(*handed.certificates, *handed.chain),
        statements=handed.statements,
    )
