"""Release rules where an agreement is made: the stricter of what the rules and what the agreement say is what holds.

Rules kept here:

- a type that goes direct is given to nobody;
- of a type that release rules are about, an agreement gives a domain no more than the rules keep whole for it. What
  they coarsen or hide behind a pseudonym is in the released type, never in this one;
- a type that no release rule is about is a matter of the agreement alone.
"""

from __future__ import annotations

from collections.abc import Callable

from maia.domain.releases.direct import direct_types
from maia.domain.releases.files import known_rules
from maia.errors import DeniedError
from maia.events import type_id
from maia.home import Home
from maia.policy import KnownType, release


def agreed_attributes(home: Home, *peer: str) -> Callable[[KnownType], frozenset[str] | None]:
    """Tell what a domain may be given of a type, by name; nothing said when only the agreement says.

    Args:
        home: Whose rules.
        peer: What the other domain is called here, as in `release … to NAME`; one name, or several.
    """
    rules = known_rules(home)
    direct = {name.type_id for name in direct_types(home, home.types.names())}
    to = {release.Destination(release.DestinationKind.DOMAIN, name) for name in peer}

    def allowed(known: KnownType) -> frozenset[str] | None:
        identity = type_id(known.owner, known.name)
        if identity in direct:
            raise DeniedError(
                f"`{known.name}` goes direct, so no agreement gives it; release to a file what may leave",
                code="DIRECT_SHARED",
            )
        about = [item.rule for item in rules if any(name.type_id == identity for name in item.types)]
        if not about:
            return None
        return frozenset(name for rule in about if rule.to in to for name in rule.kept)

    return allowed
