"""The effective rights of everybody on one type at one moment: who does what, on which attributes."""

from __future__ import annotations

from dataclasses import dataclass, field

from maia.authority import Action, Request, Root, Verifier, ask, ask_network, ask_type
from maia.errors import UncheckedError
from maia.events import EventType, TypeId
from maia.kernel import make_guard
from maia.principals import KeyHash, KeyId, Principal
from maia.reasoning.who import Cell, held
from maia.reasoning.world import World

_NAMED = (b"maia-named",)


@dataclass(slots=True)
class Matrix:
    """Who does what.

    Attributes:
        rights: By principal and action, the uids that it may do it on in some row; ``*`` for an action that is not
            about attributes.
        doubts: Of whom something could not be told, with the code of what stood in the way.
    """

    rights: dict[KeyId, dict[Action, set[str]]] = field(default_factory=dict)
    doubts: dict[KeyId, str] = field(default_factory=dict)

    def add(self, key: KeyId, action: Action, uid: str) -> None:
        """Note that somebody may do something."""
        self.rights.setdefault(key, {}).setdefault(action, set()).add(uid)


def matrix(world: World, type_id: TypeId) -> Matrix:
    """Find everybody's rights on a type, and on the network that it is used in; owners are not listed.

    Raises:
        UncheckedError: There is more evidence than one search may look at.
    """
    found = Matrix()
    for version in world.versions(type_id):
        for action in (Action.PUBLISH, Action.SUBSCRIBE):
            for key in world.candidates(action, version).keys:
                for item in version.attributes:
                    uid = str(item.uid)
                    try:
                        cell = Cell(type_id=type_id, uid=uid, action=action)
                        holder = held(world, key, cell, version)
                    except UncheckedError as error:
                        found.doubts[key] = error.code
                        break
                    if holder is not None:
                        found.add(key, action, uid)
        for action in (Action.MANAGE, Action.EXTEND):
            name = version.name
            _whole(world, ask_type(action, name.owner, name.name, name.version.text), action, version, found)
    if world.sessions.network is not None:
        owner, network = world.sessions.network
        for action in (Action.CONNECT, Action.INSTALL):
            _whole(world, ask_network(action, owner, network), action, None, found)
    return found


def _whole(world: World, request: Request, action: Action, version: EventType | None, found: Matrix) -> None:
    verifier = world.sessions.verifier
    for key in verifier.reached(request, evidence=world.pool, at=world.at)[0]:
        try:
            if _granted(world, request, action, version, key):
                found.add(key, action, "*")
        except UncheckedError as error:
            found.doubts[key] = error.code


def _granted(world: World, request: Request, action: Action, version: EventType | None, key: KeyId) -> bool:
    verifier, principal = world.sessions.verifier, KeyHash(key)
    grant = verifier.decide(request, principal=principal, evidence=world.pool, at=world.at).grant
    if grant is None or not grant.certificates:
        return False
    if not grant.conditions:
        return True
    name = "" if version is None else version.name.name
    return any(
        make_guard(
            right.conditions, right.proof.certificate_ids(), action=action, principal=key, event_type=name,
            evidence=world.pool, make=world.sessions.surroundings, at=world.at,
        ) is not None
        for right in verifier.clauses(request, principal=principal, evidence=world.pool, at=world.at)
    )  # fmt: skip


def stands_for(world: World, principal: Principal, key: KeyId) -> bool:
    """Tell whether a principal, such as a name, stands for a key now."""
    known = world.sessions.verifier
    asker = Verifier(
        (Root(subject=principal),), statements=known.statements, limits=known.limits, signatures=known.signatures
    )
    return bool(asker.decide(ask(_NAMED), principal=KeyHash(key), evidence=world.pool, at=world.at))
