"""Who may look at all of a domain's rights, and who may change them: by names that the domain's own key gives.

Rules kept here:

- the key that speaks for the domain may both; whoever that key names ``auditors`` may look, and ``officers`` both;
- a name counts while its certificate does: signature, period and lists are judged by the verifier that every right is
  judged by;
- nobody else may anything, a client with rights on types included: what others may see is not for it to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.readers import world_of
from maia.errors import DeniedError
from maia.principals import Name, PublicKey
from maia.reasoning import stands_for

if TYPE_CHECKING:
    from maia.domain.domain import Domain

AUDITORS = "auditors"
"""Whom a domain names so may look at everybody's rights and at the audit."""
OFFICERS = "officers"
"""Whom a domain names so may also revoke with the keys of its home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversight:
    """That a key may look at all of a domain.

    Attributes:
        name: Whose key it is, as the home calls it.
        changes: Whether it may also change things.
    """

    name: str
    changes: bool


def find_oversight(domain: Domain, key: PublicKey, *, at: datetime) -> Oversight:
    """Tell what a key may do with the domain as a whole.

    Raises:
        DeniedError: Nothing: ``NO_OVERSIGHT``.
    """
    folder = domain.home.folder
    name, speaker = folder.names.get(key.key_id, key.fingerprint), folder.keys.get(domain.config.domain)
    if speaker is not None:
        if speaker == key:
            return Oversight(name=name, changes=True)
        world = world_of(domain, at=at)
        for word, changes in ((OFFICERS, True), (AUDITORS, False)):
            if stands_for(world, Name(speaker, (word,)), key.key_id):
                return Oversight(name=name, changes=changes)
    raise DeniedError(
        f"`{name}` is not the key of this domain, and the domain names it neither `{AUDITORS}` nor `{OFFICERS}`",
        code="NO_OVERSIGHT",
    )
