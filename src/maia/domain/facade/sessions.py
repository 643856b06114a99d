"""What clients of a domain announce, and the plans by which they publish and read.

Each function is a method of `Domain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import Action
from maia.domain.advertisements import (
    ShownAdvertisement,
    keep_advertisement,
    read_advertisements,
    withdraw_advertisements,
)
from maia.domain.label_files import FrameLabels
from maia.domain.operations import refusals
from maia.domain.plans import MAX_EVENTS
from maia.domain.possession import ProvenClient
from maia.domain.releases.direct import check_direct
from maia.domain.snapshot import Snapshot
from maia.domain.types import find_type, find_versions
from maia.events import TypeName, parse_event_type
from maia.home import verify_with_registry
from maia.kernel import DeliverPlan, PublishPlan, standing_advertisement
from maia.log import Commit

if TYPE_CHECKING:
    from maia.domain.domain import Domain


def publish_plan(
    domain: Domain,
    name: str | TypeName,
    *,
    client: ProvenClient,
    version: str | None = None,
    publication: str,
    max_events: int = MAX_EVENTS,
    advertise: str | None = None,
    at: datetime | None = None,
) -> PublishPlan:
    """Compile what the rows of a client, whose key was proven, will go through, under what it advertised.

    Where the domain leaves that to the first publication (``advertise`` in ``maia.toml``), this advertises.

    Raises:
        DeniedError: The client advertised nothing of it, or took it back: ``NOT_ADVERTISED``.
        MaiaError: The type is unknown, the client or the broker has no right, or what the client announces is out
            of the bounds of its right.
    """
    moment = domain.follow(at=at)
    known = domain.known(at=moment)
    found = name if isinstance(name, TypeName) else find_type(domain.home, name, version, among=known.names)
    with refusals(domain.home, client, found, at=moment):
        check_direct(domain.home, known.sessions.event_type(found.type_id, found.version.text, at=moment))
        kept = standing_advertisement(
            (item.kept for item in read_advertisements(domain.path)), client.key.key_id.hex(), found, said=advertise,
            explicit=domain.config.advertise == "explicit",
        )  # fmt: skip
        said = advertise if kept is None else kept.filter
        plan = domain.planner.publish(
            known, found, client.key, publication=publication, at=moment, max_events=max_events, advertise=said
        )
    if kept is None:
        keep_advertisement(
            domain.home, client, plan.event_type(), plan.clauses, said=said, publication=publication, at=moment,
            decision=plan.decision,
        )  # fmt: skip
    return plan


def advertise(
    domain: Domain,
    name: str | TypeName,
    *,
    client: ProvenClient,
    version: str | None = None,
    said: str | None = None,
    at: datetime | None = None,
) -> TypeName:
    """Let a client, whose key was proven, announce that it will publish a version; remembered and audited.

    Nothing else is made: no key, no lane, no evidence in the log.

    Args:
        domain: Whose broker it is.
        name: The type.
        client: Who will publish.
        version: The version, when the name does not say.
        said: What it will publish, as a filter whose constraints are alternatives; it is held to it.
        at: Now.

    Raises:
        MaiaError: The type is unknown, the client or the broker has no right, or what is said is out of bounds.
    """
    moment = domain.follow(at=at)
    known = domain.known(at=moment)
    found = name if isinstance(name, TypeName) else find_type(domain.home, name, version, among=known.names)
    with refusals(domain.home, client, found, at=moment):
        made = domain.planner.advertise(known, found, client.key, said=said, at=moment)
    keep_advertisement(domain.home, client, made.event_type, made.clauses, said=said, at=moment, decision=made.decision)
    return found


def unadvertise(
    domain: Domain,
    name: str | TypeName,
    *,
    client: ProvenClient,
    version: str | None = None,
    at: datetime | None = None,
) -> None:
    """Take back what a client advertised of a type, in all versions unless one is named.

    Raises:
        DeniedError: It advertised none of it: ``NOT_ADVERTISED``.
        NotFoundError: The type is unknown.
    """
    moment = domain.clock() if at is None else at
    full = domain.config.names == "full"
    if isinstance(name, TypeName):
        names: tuple[TypeName, ...] = (name,)
    else:
        names = find_versions(domain.home, name, version, among=domain.known(at=moment).names, full=full)
    withdraw_advertisements(domain.home, client, names, at=moment)


def advertisements(domain: Domain) -> tuple[ShownAdvertisement, ...]:
    """List what the clients of this domain have advertised, and what they took back."""
    return read_advertisements(domain.path)


def learn(
    domain: Domain, definition: bytes, *, client: ProvenClient, action: Action, at: datetime | None = None
) -> TypeName:
    """Keep a signed definition that a client brought, if it verifies here, the network's demands included.

    From then on its name is enough. What is known already is as well to be brought again.

    Args:
        domain: The domain.
        definition: The signed definition.
        client: Who brought it.
        action: What for: to publish, or to subscribe.
        at: Now.

    Raises:
        MalformedError: It is no definition, or contradicts one that was accepted.
        VerificationError: It is not its owner's, may not be installed here, or the client or the broker has no
            right on it; nothing is kept.
    """
    moment = domain.clock() if at is None else at
    brought = parse_event_type(definition)
    known = domain.known(at=moment)
    if all(raw != brought.raw for _, raw in known.types):
        # SECURITY: by the broker's own roots and network, before anything of it is kept.
        verified = verify_with_registry(
            domain.home.types, brought, verifier=known.verifier, at=moment, network=domain.home.network
        )
        # SECURITY: anybody can sign a type of its own; what nobody here may use takes no name.
        with refusals(domain.home, client, brought.definition.name, at=moment):
            domain.planner.check_rights(known, verified.definition, client.key, action, at=moment)
        domain.home.types.put(brought.raw, at=moment)
    return brought.definition.name


def deliver_plan(
    domain: Domain,
    name: str | TypeName,
    *,
    client: ProvenClient,
    where: str = "",
    version: str | None = None,
    commits: Sequence[Commit],
    at: datetime | None = None,
    followed: bool = False,
    history: bool = True,
    tell: bool = True,
    frames: FrameLabels | None = None,
    known: Snapshot | None = None,
) -> DeliverPlan:
    """Subscribe for a client, whose key was proven, and compile what it will see; ``tell`` the audit of a refusal.

    With ``frames`` a labelled frame reads, which checks labels again where something leaves it. Whoever
    ``followed`` the log just now, to find the commits, gives the instant that `follow` returned, and may give what is
    ``known`` at it.

    Raises:
        MaiaError: The type is unknown, the client has no right, or the filter is refused.
    """
    moment = at if followed and at is not None else domain.follow(at=at)
    known = domain.known(at=moment) if known is None else known
    found = name if isinstance(name, TypeName) else find_type(domain.home, name, version, among=known.names)
    with refusals(domain.home, client, found, at=moment, tell=tell):
        made = domain.planner.subscription(
            known, found, client.key, holder=client.name, identity=client.name, where=where, at=moment, proven=True,
            frames=frames,
        )  # fmt: skip
        return domain.planner.deliver(known, (made,), commits, at=moment, history=history)
