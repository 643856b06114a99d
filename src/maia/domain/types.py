"""The types that a home keeps: found by the names that people write, ``owner/name@version``, and verified."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime

from maia.authority import VerifiedEventType, Verifier
from maia.encoding import did_you_mean
from maia.errors import MaiaError, NotFoundError, UsageError, VerificationError
from maia.events import TypeId, TypeName, UnverifiedEventType
from maia.home import DirectoryRegistry, Home, verify_with_registry
from maia.principals import Principal, PublicKey

_log = logging.getLogger(__name__)


def find_type(
    home: Home, text: str, version: str | None = None, *, among: Iterable[TypeName] | None = None
) -> TypeName:
    """Find a type that a home keeps by ``name``, ``name@version``, ``owner/name`` or ``owner/name@version``.

    Args:
        home: Whose types.
        text: The name. The owner is the name of a key of the home, or its fingerprint; it may be left out when one
            owner has the name, unless the home wants full names, and the version when one is kept.
        version: The version, when the text does not say.
        among: The names to look among, when they are known already.

    Raises:
        NotFoundError: There is none: ``TYPE_NOT_FOUND``.
        UsageError: Several fit, and the message lists them: ``TYPE_AMBIGUOUS``; or the owner has to be named:
            ``TYPE_TEXT``.
    """
    found = find_versions(home, text, version, among=among, full=home.config.names == "full")
    if len(found) > 1:
        listed = ", ".join(f"`{show_type(home, item)}`" for item in found)
        raise UsageError(f"`{text}` may be any of: {listed}", code="TYPE_AMBIGUOUS")
    return found[0]


def find_type_id(home: Home, text: str) -> TypeId:
    """Find the one type of all versions that `find_type` could mean.

    Raises:
        NotFoundError: There is none: ``TYPE_NOT_FOUND``.
        UsageError: Types of several owners fit: ``TYPE_AMBIGUOUS``; or the owner has to be named: ``TYPE_TEXT``.
    """
    wants_owner = home.config.names == "full"
    found = find_versions(home, text, full=wants_owner)
    if len({item.type_id for item in found}) > 1:
        listed = ", ".join(f"`{show_type(home, item)}`" for item in found)
        raise UsageError(f"`{text}` may be any of: {listed}", code="TYPE_AMBIGUOUS")
    return found[0].type_id


def find_versions(
    home: Home, text: str, version: str | None = None, *, among: Iterable[TypeName] | None = None, full: bool = False
) -> tuple[TypeName, ...]:
    """Find all that `find_type` could mean, at least one; with ``full``, by names that say whose the type is.

    Raises:
        NotFoundError: There is none: ``TYPE_NOT_FOUND``.
        UsageError: The owner has to be named: ``TYPE_TEXT``.
    """
    known = home.types.names() if among is None else tuple(among)
    owner, name, wanted = _reading(text)
    found = [item for item in known if item.name == name]
    if full and owner is None and found:
        raise UsageError(f"`{text}` does not say whose it is; write OWNER/NAME", code="TYPE_TEXT")
    said = {item for item in (wanted, version) if item is not None}
    found = [item for item in found if said <= {item.version.text}]
    if owner is not None:
        found = [item for item in found if is_owner(home, owner, item.owner)]
    if found:
        return tuple(found)
    which = f"`{text}`{'' if version is None else f' version {version}'}"
    names = [spelling for item in known for spelling in (item.name, show_type(home, item))]
    raise NotFoundError(f"there is no type {which}{did_you_mean(text, names)}", code="TYPE_NOT_FOUND")


def show_type(home: Home, name: TypeName) -> str:
    """Write a type as people name it here, with its owner and version."""
    owner = name.owner
    shown = _name_of(home, owner) if isinstance(owner, PublicKey) else str(owner)
    return f"{shown}/{name.name}@{name.version.text}"


def check_types(
    home: Home, *, verifier: Verifier, at: datetime, type_id: TypeId | None = None
) -> Iterator[tuple[UnverifiedEventType, VerifiedEventType | None]]:
    """Walk the definitions that a home keeps, of one type or of all, each verified at an instant, or with nothing.

    INVARIANT: all that verify of one version say the same. What contradicts the definition that was accepted first, and
    two that contradict each other where none was, come with nothing, and with an alarm in the program's log.
    """
    registry = home.types
    for name, kept, others in _by_version(registry, type_id):
        found = [(item, _verified(home, registry, item, verifier, at)) for item in kept]
        meanings = {verified.event_type.meaning for _, verified in found if verified is not None}
        beside = [(item, _verified(home, registry, item, verifier, at)) for item in others]
        if len(meanings) > 1 or any(verified is not None for _, verified in beside):
            _log.error("two signed definitions of `%s` version %s: TYPE_CONFLICT", name.name, name.version.text)
        for item, verified in found:
            yield item, verified if len(meanings) == 1 else None
        yield from ((item, None) for item, _ in beside)


def why_refused(home: Home, item: UnverifiedEventType, *, verifier: Verifier, at: datetime) -> VerificationError:
    """Tell why a definition that a home keeps does not count."""
    try:
        verify_with_registry(home.types, item, verifier=verifier, at=at, network=home.network)
    except VerificationError as error:
        return error
    return VerificationError("another definition of this version contradicts it", code="TYPE_CONFLICT")


def type_conflicts(home: Home, *, verifier: Verifier, at: datetime) -> tuple[TypeName, ...]:
    """List the versions of which a home holds two definitions that verify and contradict each other."""
    registry, found = home.types, []
    for name, kept, beside in _by_version(registry):
        checked = (_verified(home, registry, item, verifier, at) for item in (*kept, *beside))
        if len({item.event_type.meaning for item in checked if item is not None}) > 1:
            found.append(name)
    return tuple(found)


def _by_version(
    registry: DirectoryRegistry, type_id: TypeId | None = None
) -> Iterator[tuple[TypeName, list[UnverifiedEventType], list[UnverifiedEventType]]]:
    """Walk the versions that a registry keeps: what is found of each, and what contradicts it."""
    read: dict[TypeId, tuple[tuple[UnverifiedEventType, ...], tuple[UnverifiedEventType, ...]]] = {}
    for name in registry.names():
        identity = name.type_id
        if type_id in (None, identity):
            if identity not in read:
                read[identity] = registry.sorted_out(identity)
            kept, beside = ([item for item in some if item.definition.name == name] for some in read[identity])
            yield name, kept, beside


def _verified(
    home: Home, registry: DirectoryRegistry, item: UnverifiedEventType, verifier: Verifier, at: datetime
) -> VerifiedEventType | None:
    try:
        return verify_with_registry(registry, item, verifier=verifier, at=at, network=home.network)
    except VerificationError:
        return None


def _reading(text: str) -> tuple[str | None, str, str | None]:
    """Split ``owner/name@version``, which has one reading: no name of a type holds a slash or an at sign."""
    owner, slash, rest = text.partition("/")
    name, mark, version = (rest if slash else text).partition("@")
    return owner if slash else None, name, version if mark else None


def _name_of(home: Home, owner: PublicKey) -> str:
    """Name a key as it is called here, or by its fingerprint; another key file that is damaged does not matter."""
    try:
        return home.folder.names.get(owner.key_id, owner.fingerprint)
    except MaiaError:
        return owner.fingerprint


def is_owner(home: Home, text: str, owner: Principal) -> bool:
    """Tell whether a key of this name or fingerprint is the owner; only the files that were named have to be whole."""
    for find in (home.key, home.folder.key):
        try:
            return find(text) == owner
        except MaiaError:
            continue
    return False
