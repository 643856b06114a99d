"""Types that go direct, over links: from the domain that published them to those that may read them, and no further.

Rules kept here:

- who serves gives of such a type what its own keys wrote: what it copied from others it does not pass on;
- it gives that to a key that may connect and subscribe to the type, judged by the kernel with what is known at home:
  what somebody shows to connect counts for nothing here;
- who copies takes such a lane from the key that wrote it, proven over the connection, and from nobody in between;
- a definition that does not verify any more goes direct as it says, and nobody may have its events.

A domain that does not know a type cannot know that it goes direct. It has none of its events either: nobody that knows
the type gave it any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from maia.authority import Action
from maia.domain.domain import Domain
from maia.domain.link_files import Link, own_keys
from maia.domain.releases.direct import direct_types
from maia.errors import DeniedError, VerificationError
from maia.events import TypeId
from maia.log import LaneId
from maia.principals import KeyId, PublicKey

DIRECT_ONLY = "DIRECT_ONLY"
"""The code of what is refused here."""
_TYPE, _ORIGIN = "type=", "origin="


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectLanes:
    """What a home knows of types that go direct, at one moment.

    Attributes:
        types: The types, by the ids that they have in the log, in hex.
        own: The keys of the home, whose lanes are its own.
    """

    types: Mapping[str, TypeId] = field(default_factory=dict)
    own: frozenset[KeyId] = frozenset()

    def wants(self, lane: LaneId, neighbour: KeyId | None) -> bool:
        """Tell whether a lane may be copied from a neighbour; from nobody that proves its key, when there is none."""
        # SECURITY: who stands in between would keep what has to stay secret for a life.
        return not lane.folder.startswith(_TYPE) or lane.topic not in self.types or lane.owner == neighbour


def direct_lanes(domain: Domain) -> DirectLanes:
    """Collect the types of a home that go direct."""
    home = domain.home
    types = {name.type_id for name in direct_types(home, home.types.names())}
    if not types:
        return DirectLanes()
    return DirectLanes(
        types={item.hex(): type_id for type_id in types for item in home.wire_ids(type_id)}, own=own_keys(home)
    )


def neighbour_of(domain: Domain, link: Link) -> KeyId | None:
    """Name the key that a link's neighbour proves; nothing where no service runs."""
    return domain.home.key(link.key).key_id if link.key else None


def check_direct_object(domain: Domain, direct: DirectLanes, key: PublicKey, name: str) -> None:
    """Refuse what lies under a name of the log to a key that may not have it, since its type goes direct.

    Raises:
        DeniedError: ``DIRECT_ONLY``.
    """
    folder, _, rest = name.partition("/")
    type_id = direct.types.get(folder.removeprefix(_TYPE)) if folder.startswith(_TYPE) else None
    if type_id is None:
        return
    origin = rest.partition("/")[0].removeprefix(_ORIGIN)
    # SECURITY: a copy of another domain's is not passed on, to whomever.
    if origin and origin not in {item.hex() for item in direct.own}:
        raise DeniedError("events of this type go direct, and this is not who published them", code=DIRECT_ONLY)
    if not may_read(domain, key, type_id):
        raise DeniedError("events of this type go direct, to those who may subscribe to it", code=DIRECT_ONLY)


def may_read(domain: Domain, key: PublicKey, type_id: TypeId) -> bool:
    """Tell whether a key may connect and subscribe to a version of a type, by what the domain knows."""
    at = domain.clock()
    known = domain.known(at=at)
    for verified in known.versions(type_id):
        try:
            known.sessions.held(key, Action.SUBSCRIBE, verified.event_type, known.pool, at=at)
        except VerificationError:
            continue
        return True
    return False
