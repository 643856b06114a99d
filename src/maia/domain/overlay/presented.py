"""Credentials that somebody presents: what they give now, and how one is exchanged for another.

Rules kept here:

- what a credential gives is decided by the verifier, along a chain that it is a link of; nothing else is looked at;
- whoever hands a credential over, or exchanges it, owns it: its client is the very key that was proven;
- the old credential is void before the new one exists. One that no list can revoke is not exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from maia.authority import ClientDescriptor, ClientKind, OverlayCredential
from maia.domain.conditions import ask_conditions
from maia.domain.grants import issue_alive, revoke_certificate
from maia.domain.possession import ProvenClient
from maia.domain.questions import RightQuestion
from maia.encoding import printable
from maia.errors import DeniedError
from maia.home import Folder, locked
from maia.policy import Occasion
from maia.principals import Authorisation, Certificate, KeyHash, PublicKey, Signer

SignerOf = Callable[[PublicKey], Signer]


def check_credential(
    folder: Folder, credential: Certificate, key: PublicKey | KeyHash, right: str, *, at: datetime
) -> None:
    """Check that a key has a right now by a credential, along a chain from the owner of the object.

    Raises:
        DeniedError: It has not: ``CREDENTIAL_REFUSED``, with the verifier's reason as the cause.
    """
    view = OverlayCredential.of(credential.body)
    pool = folder.pool()
    pool.add(credential)
    question = RightQuestion(
        home=folder, request=view.object.request(right), principal=key, pool=pool, book=folder.book(), roots=(), at=at
    )
    identity = credential.certificate_id
    occasion = Occasion(action=right, at=at, principal=key.key_id.hex(), event_type=view.object.name)
    for found in question.clauses():
        through = any(identity in chain for chain in (found.proof.certificate_ids(), *found.others))
        asked = ask_conditions(folder, found.conditions, occasion) if through else ()
        if through and all(item.holds is not False for item in asked):
            return
    told = f"the credential gives `{printable(folder.show(key.key_id))}` no {right} on {view.object.kind.value}"
    why = question.decide().error
    message = f"{told} `{printable(view.object.name)}`{'' if why is None else f': {why.message}'}"
    raise DeniedError(message, code="CREDENTIAL_REFUSED") from why


def check_own(folder: Folder, credential: Certificate, owner: ProvenClient, right: str, *, at: datetime) -> None:
    """As `check_credential`, for somebody who owns the credential.

    Raises:
        DeniedError: It is somebody else's: ``CREDENTIAL_NOT_OWN``; or it gives no such right.
    """
    client = OverlayCredential.of(credential.body).client
    # SECURITY: not by a chain through it: whoever was given a part of it would hand over the whole.
    if client.kind is not ClientKind.PERSON or client.key.key_id != owner.key.key_id:
        raise DeniedError(f"the credential is not `{printable(owner.name)}`'s own", code="CREDENTIAL_NOT_OWN")
    check_credential(folder, credential, owner.key, right, at=at)


def transfer_credential(
    folder: Folder, credential: Certificate, owner: ProvenClient, to: PublicKey, signer_of: SignerOf, *, at: datetime
) -> Certificate:
    """Hand a credential to another owner: its issuer signs the same for it, and the old one is void.

    Raises:
        DeniedError: It is not the owner's own, or has no right to be handed over.
        UsageError: No list can revoke it, so it would not be void.
    """
    view = OverlayCredential.of(credential.body)
    with locked(folder.path / "credentials"):
        check_own(folder, credential, owner, "transfer", at=at)
        body = replace(view, client=ClientDescriptor(kind=ClientKind.PERSON, key=to)).body()
        return replace_credential(folder, credential, body, signer_of, at=at)


def replace_credential(
    folder: Folder, old: Certificate, body: Authorisation, signer_of: SignerOf, *, at: datetime
) -> Certificate:
    """Void a credential, and issue another in its place; who may is decided by the caller."""
    assert isinstance(body.issuer, PublicKey)  # noqa: S101 - a credential names the key of its issuer
    signer = signer_of(body.issuer)
    folder.certificates.add(old)
    # SECURITY: void first: a process that dies in between leaves one credential less, never one more.
    revoke_certificate(folder, old.certificate_id.hex(), signer_of, at=at)
    issued = issue_alive(folder, body, signer, at=at)
    folder.certificates.add(issued)
    return issued
