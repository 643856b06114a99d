"""Definitions in a folder: found by the names that people write, and signed with the credentials their signer needs.

What is signed here is verified as a stranger would before it is kept, so a folder never keeps what speaks for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from maia.authority import MANAGE_PARTS, Action, Request, VerifiedEventType, Verifier, ask_network, ask_type
from maia.encoding import did_you_mean
from maia.errors import MalformedError, NotFoundError, UsageError
from maia.events import (
    EVENT_TYPE_LIMITS,
    MAX_LINEAGE,
    EventType,
    Registry,
    TypeName,
    UnverifiedEventType,
    check_owner,
    inherit,
    parse_event_type,
    parse_version,
    sign_event_type,
)
from maia.home.files import read_file
from maia.home.folder import Folder
from maia.home.types import MAX_PARENTS, fetch_type, verify_with_registry
from maia.home.words import split_type
from maia.principals import Principal, Signer, UnverifiedCertificate, parse_certificate


def find_definition(home: Folder, text: str) -> UnverifiedEventType:
    """Find a definition: a file, or ``[OWNER/]NAME[@VERSION]`` among those that are kept; it is not verified.

    Raises:
        NotFoundError: There is none: ``TYPE_NOT_FOUND``.
        UsageError: No version is named and there are several, or none of the owners is meant.
    """
    if Path(text).is_file():
        return parse_event_type(read_file(Path(text), limit=EVENT_TYPE_LIMITS.max_bytes))
    owner, name, version = split_type(text, home)
    found = home.types.versions(check_owner(owner), name)
    if version is not None:
        found = tuple(item for item in found if item.definition.name.version == parse_version(version))
    if not found:
        near = did_you_mean(name, {item.name for item in home.types.names()} - {name})
        raise NotFoundError(f"no type `{text}` in this home{near}", code="TYPE_NOT_FOUND")
    versions = sorted({item.definition.name.version.text for item in found})
    if len(versions) > 1:
        raise UsageError(f"`{text}` has the versions {', '.join(versions)}; add @VERSION", code="TYPE_AMBIGUOUS")
    return found[0]


def extended_definitions(home: Folder, definition: EventType) -> tuple[EventType, ...]:
    """List the definitions that one extends, the nearest first, as far as some that speak for their owners are kept."""
    found: list[EventType] = []
    wanted = definition.extends
    while wanted is not None and len(found) < MAX_PARENTS:
        kept = (item for item in home.versions(wanted.owner_id, wanted.name) if item.name == wanted)
        parent = next(kept, None)
        if parent is None:
            break
        found.append(parent)
        wanted = parent.extends
    return tuple(found)


def whole_type(home: Folder, definition: EventType) -> EventType:
    """Put a definition together with what it inherits.

    Raises:
        NotFoundError: A type that it extends is not kept: ``PARENT_NOT_KEPT``.
        MalformedError: They do not fit together.
    """
    lineage = (definition, *extended_definitions(home, definition))
    whole = lineage[-1]
    if whole.extends is not None:
        raise NotFoundError(f"the type `{whole.extends}` that is extended is not kept here", code="PARENT_NOT_KEPT")
    for item in reversed(lineage[:-1]):
        whole = inherit(item, whole)
    return whole


def fetch_into(
    home: Folder, registry: Registry, name: TypeName, *, at: datetime, network: tuple[Principal, str] | None = None
) -> VerifiedEventType:
    """Fetch a version from a registry, verify it as a stranger would, and keep it with what it refers to.

    Raises:
        NotFoundError: The registry has nothing under this name: ``TYPE_NOT_FOUND``.
        VerificationError: Nothing it has under this name verifies; nothing is kept.
        MalformedError: It contradicts a version that is kept.
    """
    found = fetch_type(registry, name, verifier=Verifier(statements=home.book()), at=at, network=network)
    for item in reversed(found.lineage):
        for raw in _with_previous(registry, item):
            home.types.put(raw, at=at)
    return found


def _with_previous(registry: Registry, verified: VerifiedEventType) -> list[bytes]:
    """List a definition after the versions that it came from, as far as a registry has them."""
    found = [verified.raw]
    reference = verified.definition.previous
    while isinstance(reference, bytes) and len(found) <= MAX_LINEAGE:
        try:
            previous = registry.get(reference)
        except NotFoundError:
            break
        found.insert(0, previous.raw)
        reference = previous.definition.previous
    return found


def sign_definition(
    home: Folder, definition: EventType, signer: Signer, *, at: datetime, network: tuple[Principal, str] | None = None
) -> UnverifiedEventType:
    """Embed the credentials the signer needs, sign, verify as a stranger would, and keep the definition.

    Raises:
        VerificationError: The certificates of this home do not prove the signer's right; nothing is kept.
        MalformedError: A topic of its owner is above it, and it is none; or the other way round: ``TOPIC_SHAPE``.
    """
    _check_tree(home, definition)
    credentials = _credentials(definition, signer, home, at, network)
    signed = sign_event_type(replace(definition, credentials=credentials), signer)
    verify_with_registry(home.types, signed, verifier=Verifier(statements=home.book()), at=at, network=network)
    home.types.put(signed.raw, at=at)
    return signed


def _check_tree(home: Folder, definition: EventType) -> None:
    """Refuse a new type below a topic of its owner, and a new topic above a type: rights on topics reach below them."""
    name, topic = definition.name, definition.options.topic
    kept = {item.name for item in home.types.names() if item.owner_id == name.owner_id}
    if name.name in kept:
        return  # it has its place
    for other in sorted(kept):
        near = other.startswith(f"{name.name}.") if topic else name.name.startswith(f"{other}.")
        if near and any(item.options.topic is not topic for item in home.versions(name.owner_id, other)):
            # SECURITY: a right on a topic and its sub-topics is on names, and would open what is no topic.
            what = f"`{other}` is no topic and would be below one" if topic else f"`{other}` is a topic above it"
            raise MalformedError(f"{what}; choose another name", code="TOPIC_SHAPE")


def _credentials(
    definition: EventType, signer: Signer, home: Folder, at: datetime, network: tuple[Principal, str] | None
) -> tuple[UnverifiedCertificate, ...]:
    """Pick from the home the certificates that prove what the definition needs; what is missing is found out later."""
    name = definition.name
    whole = ask_type(Action.MANAGE, name.owner, name.name, name.version.text)
    parts = [ask_type(action, name.owner, name.name, name.version.text) for action in MANAGE_PARTS]
    proven = _prove([whole], signer, home, at)
    found = proven if proven is not None else _prove(parts, signer, home, at) or {}
    wanted = []
    if definition.extends is not None:
        parent = definition.extends
        wanted.append(ask_type(Action.EXTEND, parent.owner, parent.name, parent.version.text))
    if network is not None:
        wanted.append(ask_network(Action.INSTALL, *network))
    found |= _prove(wanted, signer, home, at) or {}
    return tuple(found.values())


def _prove(
    requests: Iterable[Request], signer: Signer, home: Folder, at: datetime
) -> dict[bytes, UnverifiedCertificate] | None:
    verifier, pool = Verifier(statements=home.book()), home.pool()
    found: dict[bytes, UnverifiedCertificate] = {}
    proven = False
    for request in requests:
        decision = verifier.decide(request, principal=signer.public_key, evidence=pool, at=at)
        if decision.grant is not None:
            proven = True
            found |= {item.certificate_id: parse_certificate(item.raw) for item in decision.grant.certificates}
    return found if proven else None
