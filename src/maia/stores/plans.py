"""Plans for a home: what a publisher may send and a subscriber may see, compiled for the workers.

This is the control plane's last step. Everything here asks the verifier through the broker's sessions; the plans that
come out hold clauses and references, never a key.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.authority import Action, Verifier, ask_type
from maia.broker import Clause, Sealing, Subscription, clauses_from, milliseconds
from maia.encryption import Tolerance
from maia.errors import VerificationError
from maia.events import EventType
from maia.pipeline import Commit, DeliverPlan, LogDirectory, Origin, PublishPlan
from maia.principals import KeyHash, KeyId
from maia.stores.following import follow
from maia.stores.home import Home

_FOREVER = 1 << 50


def publish_plan(
    home: Home,
    type_name: str,
    *,
    as_: str,
    version: str | None,
    publication: str,
    at: datetime,
    max_events: int = 16_384,
) -> PublishPlan:
    """Advertise for a client and compile what its rows will go through.

    Args:
        home: The publisher's domain.
        type_name: The type's readable name.
        as_: The client's key name.
        version: The version its rows have, when the home knows several.
        publication: Names the publication; the same after a retry.
        at: Now.
        max_events: Most events in one parcel.

    Raises:
        MaiaError: The type is unknown, or the client or the broker has no right.
    """
    at = follow(home, at=at)
    name = home.find_type(type_name, version)
    sessions = home.sessions(at=at)
    pool = home.pool()
    client = home.key(as_)
    advertised = sessions.advertise(client, name.type_id, name.version.text, pool, at=at)
    event_type = advertised.event_type
    clauses = sessions.clauses(client, Action.PUBLISH, event_type, pool, at=at)
    home.ensure_keys(event_type, at=at)
    certificates = home.publishing_evidence(event_type, at=at)
    ids, stamp = home.type_ids(), milliseconds(at)
    if ids is not None:
        certificates = (ids.seal_evidence(certificates, stamp),)
    evidence = LogDirectory(home.log_path).put_evidence(certificates)
    sealing = Sealing(
        type_id=event_type.type_id if ids is None else ids.at(event_type.type_id, stamp),
        key_type=event_type.type_id,
        mode=event_type.options.encryption,
        evidence=evidence,
        padding=event_type.options.padding,
    )
    return PublishPlan(
        publication=publication,
        principal=client.fingerprint,
        definition=home.definition(name),
        clauses=clauses,
        sealing=sealing,
        max_events=max_events,
    )


def deliver_plan(
    home: Home,
    type_name: str,
    *,
    as_: str,
    where: str = "",
    version: str | None = None,
    commits: Iterable[Commit],
    at: datetime,
    history: bool = False,
) -> DeliverPlan:
    """Subscribe for a client and compile what it will see of these commits.

    Args:
        home: The subscriber's domain.
        type_name: The type's readable name.
        as_: The client's key name.
        where: The client's filter.
        version: The version it wants to see, when the home knows several.
        commits: The part of the log that is read.
        at: Now; rights are those of this instant.
        history: Read old parcels with every key that is still held, however long ago they were replaced.

    Raises:
        MaiaError: The type is unknown, the client has no right, or the filter is refused.
    """
    at = follow(home, at=at)
    name = home.find_type(type_name, version)
    sessions = home.sessions(at=at)
    pool = home.pool()
    client = home.key(as_)
    made = sessions.subscribe(as_, client, name.type_id, name.version.text, where, pool, at=at)
    clauses = sessions.clauses(client, Action.SUBSCRIBE, made.event_type, pool, at=at)
    tolerance = Tolerance(grace=_FOREVER, skew=home.tolerance.skew) if history else home.tolerance
    return DeliverPlan(
        type_id=name.type_id,
        kinds=sessions.kinds(name.type_id),
        subscriptions=(Subscription(made.identity, made.event_type, made.filter, clauses),),
        origins=proven_origins(home, made.event_type, commits, verifier=sessions.verifier, at=at),
        arrives=milliseconds(at),
        tolerance=tolerance,
        modes=sessions.modes(name.type_id),
        aliases=home.wire_ids(name.type_id) - {name.type_id},
    )


def proven_origins(
    home: Home, event_type: EventType, commits: Iterable[Commit], *, verifier: Verifier, at: datetime
) -> dict[Origin, tuple[Clause, ...]]:
    """Tell which of the brokers that filled these commits may publish the type, and what they may set.

    The certificates are those that the parcels name by hash, and they must prove the right now. A clause with
    conditions does not count: what holds at another domain cannot be seen from here.
    """
    log = LogDirectory(home.log_path)
    name = event_type.name
    request = ask_type(Action.PUBLISH, name.owner, name.name, None)
    found: dict[Origin, tuple[Clause, ...]] = {}
    ids, known = home.type_ids(), {identity.hex() for identity in home.wire_ids(event_type.type_id)}
    for commit in commits:
        origin = (bytes.fromhex(commit.origin), bytes.fromhex(commit.evidence))
        if commit.type_id not in known or origin in found:
            continue
        principal, evidence = KeyHash(KeyId(origin[0])), log.evidence(origin[1])
        if ids is not None and len(evidence) == 1:
            evidence = ids.open_evidence(evidence[0]) or evidence
        try:
            rights = verifier.clauses(request, principal=principal, evidence=evidence, at=at)
        except VerificationError:
            rights = ()
        found[origin] = tuple(clause for clause in clauses_from(rights) if not clause.conditions)
    return {origin: clauses for origin, clauses in found.items() if clauses}
