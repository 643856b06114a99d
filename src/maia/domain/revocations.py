"""What a revocation would end, before anybody does it: whose rights, which subscriptions, what stands on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.given import AskPassphrase, asks
from maia.domain.grants import RevocationDraft, draft_revocation
from maia.domain.lists import own_register
from maia.domain.register import in_register
from maia.domain.wanted import Wanted, read_subscriptions
from maia.domain.what_if import WhatIf
from maia.home import Folder, passphrase_asker

if TYPE_CHECKING:
    from maia.access_control import Revocation
    from maia.domain.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class RevocationPreview:
    """What would end with a certificate.

    Attributes:
        draft: The list that would say so, who loses what by it, and how long it may take at worst.
        ends: Whose rights would end or narrow.
        subscriptions: Subscriptions of the home whose client would see less, or nothing.
        ended: What the domain's service would end with it; nothing for a certificate that was given by hand.
        signer: The key that would sign the list, as the home calls it.
        here: Whether its private key is in this home, without which it is revoked elsewhere.
        by: The latest instant at which somebody who does not hear of it accepts the certificate, if there is one.
    """

    draft: RevocationDraft
    ends: WhatIf
    subscriptions: tuple[Wanted, ...]
    ended: Revocation | None
    signer: str
    here: bool
    by: datetime | None


def find_revocation(
    domain: Domain, text: str, *, at: datetime, passphrase: AskPassphrase | None = None
) -> RevocationPreview:
    """Look at what a revocation would do, and do nothing.

    Args:
        domain: Whose certificate.
        text: The certificate: the beginning of its id, or its file.
        at: Now.
        passphrase: Asks for the passphrase of the domain's key, when that is sealed and its service issued the
            certificate.

    Raises:
        UsageError: No list can revoke it, or one did.
    """
    folder = domain.home.folder
    certificate = folder.certificate(text)
    draft = draft_revocation(folder, certificate, at=at)
    ended = None
    if in_register(folder, text):
        signer = folder.signer(draft.signer, lambda name: asks(passphrase) or passphrase_asker(name))
        with own_register(folder, signer) as service:
            if service is not None:
                ended = service.preview_revocation(at=at, certificates=[certificate.certificate_id])
    ends = domain.what_if(remove=[item.hex() for item in _together(ended, certificate.certificate_id)], at=at)
    window = draft.exposure.window
    return RevocationPreview(
        draft=draft, ends=ends, subscriptions=tuple(_touched(domain, ends)), ended=ended,
        signer=folder.names.get(draft.signer.key_id) or draft.signer.fingerprint,
        here=_is_here(folder, draft), by=None if window is None else at + window,
    )  # fmt: skip


def _together(ended: Revocation | None, identity: bytes) -> list[bytes]:
    return [identity] if ended is None else [item.certificate_id for item in ended.certificates] or [identity]


def _touched(domain: Domain, ends: WhatIf) -> Iterable[Wanted]:
    """Find the subscriptions of those who lose something of the type that they subscribe to."""
    folder = domain.home.folder
    lost = {(item.principal, item.type) for item in ends.changes if item.action == "subscribe" and item.what != "began"}
    for wanted in read_subscriptions(domain.path):
        key = folder.keys.get(wanted.as_)
        name = domain.find_type(wanted.type, wanted.version).name
        if key is not None and (folder.show(key.key_id), name) in lost:
            yield wanted


def _is_here(folder: Folder, draft: RevocationDraft) -> bool:
    return any(key == draft.signer and folder.key_path(name).is_file() for name, key in folder.keys.items())
