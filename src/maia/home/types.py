"""The registry of event types: a directory of files.

It is a convenience, not an authority. `put` refuses what no reader could use: definitions that do not verify, that
give an old uid a new meaning, or that take a version number that is taken. What comes out is unverified all the same,
since whoever can write to the disk can put anything there; `fetch_type` is how a client asks and verifies for itself.

A definition is kept under the hash of its bytes and never changed, so putting it twice is putting it once. Writers take
turns, across processes too, so that no two versions that contradict each other slip in side by side. What a version
means is noted when its first definition is kept; a definition that contradicts the note is refused by `put` and not
found by anybody, however it came here.
"""

from __future__ import annotations

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from maia.authority import VerifiedEventType, Verifier, verify_event_type
from maia.errors import ExpiredError, MalformedError, NotFoundError, UncheckedError, VerificationError
from maia.events import (
    EVENT_TYPE_LIMITS,
    MAX_FOUND,
    EventType,
    EventTypeId,
    Owner,
    Registry,
    TypeId,
    TypeName,
    UnverifiedEventType,
    check_meanings,
    parse_event_type,
    type_id,
)
from maia.home.accepted import accept_meaning, accepted_meaning
from maia.home.files import PUBLIC_FILE, PUBLIC_FOLDER, list_files, locked, make_folder, read_start, write_file
from maia.principals import Principal

_log = logging.getLogger(__name__)
Network: TypeAlias = "tuple[Principal, str]"
_Keep: TypeAlias = "Callable[[str, TypeId, bytes, bytes], None]"
MAX_PARENTS = 16
_MAX_KEPT = 100_000


def fetch_type(
    registry: Registry, name: TypeName, *, verifier: Verifier, at: datetime, network: Network | None = None
) -> VerifiedEventType:
    """Ask a registry for a version and verify what it gives, believing nothing.

    Previous versions and the types it extends are asked for and verified as well.

    Raises:
        NotFoundError: The registry has nothing under this name.
        VerificationError: Nothing it has under this name verifies; the error is about the first.
    """
    return _fetch(registry, name, verifier, at, network, MAX_PARENTS)


def verify_with_registry(
    registry: Registry,
    unverified: UnverifiedEventType,
    *,
    verifier: Verifier,
    at: datetime,
    network: Network | None = None,
    accept_compatible: bool = False,
) -> VerifiedEventType:
    """Verify a definition, looking in a registry for what it refers to; a compatible one only when told to.

    Raises:
        VerificationError: Not proven, for whatever reason.
    """
    return _verify(registry, unverified, verifier, at, network, MAX_PARENTS, accept_compatible=accept_compatible)


def _fetch(
    registry: Registry, name: TypeName, verifier: Verifier, at: datetime, network: Network | None, parents: int
) -> VerifiedEventType:
    refusal: VerificationError | None = None
    found: VerifiedEventType | None = None
    for candidate in registry.find(name):
        if candidate.definition.name != name:
            refusal = refusal or VerificationError("the registry gave another type", code="REGISTRY_MISMATCH")
            continue
        try:
            verified = _verify(registry, candidate, verifier, at, network, parents)
        except VerificationError as error:
            refusal = refusal or error
            continue
        if found is not None and found.event_type.meaning != verified.event_type.meaning:
            raise VerificationError(f"two definitions of `{name}` contradict each other", code="TYPE_CONFLICT")
        found = found or verified
    if found is not None:
        return found
    raise refusal or NotFoundError(f"there is no type `{name}`", code="TYPE_NOT_FOUND")


def _verify(
    registry: Registry,
    unverified: UnverifiedEventType,
    verifier: Verifier,
    at: datetime,
    network: Network | None,
    parents: int,
    *,
    accept_compatible: bool = False,
) -> VerifiedEventType:
    parent = None
    extends = unverified.definition.extends
    if extends is not None:
        if parents <= 0:
            raise UncheckedError(f"more than {MAX_PARENTS} types extend each other", code="LIMIT_EXCEEDED")
        try:
            parent = _fetch(registry, extends, verifier, at, None, parents - 1)
        except NotFoundError:
            parent = None  # the verifier says what is missing
    mine = unverified.definition.type_id
    find = registry.get if not isinstance(registry, _Registry) else lambda identity: registry.get(identity, of=mine)
    return verify_event_type(
        unverified, verifier=verifier, at=at, network=network, find_previous=find, parent=parent,
        accept_compatible=accept_compatible,
    )  # fmt: skip


class _Registry(ABC):
    """What both registries share: admission, and looking through what is kept."""

    def __init__(self, *, verifier: Verifier | None = None, network: Network | None = None) -> None:
        self._verifier = verifier if verifier is not None else Verifier()
        self._network = network
        self._by_id: dict[EventTypeId, UnverifiedEventType] = {}

    @abstractmethod
    def _writing(self) -> AbstractContextManager[_Keep]:
        """Keep other writers waiting, and give the function that keeps kind, type, identity and bytes."""

    @abstractmethod
    def _accepted(self, name: TypeName) -> bytes | None:
        """Tell what a version means here, once something of it was accepted."""

    @abstractmethod
    def _accept(self, name: TypeName, meaning: bytes) -> None:
        """Note what a version means, unless that is known."""

    @abstractmethod
    def _list(self, kind: str, identity: TypeId | None) -> Iterable[bytes]:
        """Give what is kept of a kind: of one type, or all."""

    def put(self, raw: bytes, *, at: datetime) -> EventTypeId:
        """Keep a definition, after verifying it and comparing it with the versions that are kept."""
        unverified = parse_event_type(raw)
        definition = unverified.definition
        with self._writing() as keep:
            verified = verify_with_registry(self, unverified, verifier=self._verifier, at=at, network=self._network)
            kept = self._kept(definition.type_id)
            if self._accepted(definition.name) not in (None, definition.meaning):
                raise _taken(definition.name)
            if all(item.raw != unverified.raw for item in kept):
                _check_room(len(kept))
                counted = [lineage for item in kept if (lineage := self._lineage(item, at))]
                _check_consistent(definition, [lineage[0] for lineage in counted])
                _check_holders(verified, counted)
                keep("type", definition.type_id, unverified.definition_id, unverified.raw)
            self._accept(definition.name, definition.meaning)
        return unverified.definition_id

    def _lineage(self, kept: UnverifiedEventType, at: datetime) -> list[EventType]:
        """Give a kept version that binds later ones, with the definitions that it extends; nothing for another.

        It binds when it verifies, or did before it expired: what was planted in the store must not keep the owner's own
        versions out.
        """
        try:
            verified = verify_with_registry(self, kept, verifier=self._verifier, at=at)
        except ExpiredError:
            return [kept.definition]
        except VerificationError:
            return []
        return [item.definition for item in verified.lineage]

    def find(self, name: TypeName) -> tuple[UnverifiedEventType, ...]:
        """Return what is kept under a full name."""
        found = tuple(item for item in self.versions(name.owner, name.name) if item.definition.name == name)
        if not found:
            raise NotFoundError(f"there is no type `{name}`", code="TYPE_NOT_FOUND")
        return found

    def versions(self, owner: Owner, name: str) -> tuple[UnverifiedEventType, ...]:
        """Return all versions of a type; none when it is unknown."""
        return self.sorted_out(type_id(owner, name))[0]

    def sorted_out(self, identity: TypeId) -> tuple[tuple[UnverifiedEventType, ...], tuple[UnverifiedEventType, ...]]:
        """Return the versions of a type, and what lies beside them and contradicts what was accepted.

        Nobody finds the latter otherwise.
        """
        found = self._kept(identity)
        meanings = {item: self._accepted(item) for item in {item.definition.name for item in found}}
        good = [meanings[item.definition.name] in (None, item.definition.meaning) for item in found]
        return (
            tuple(item for item, fits in zip(found, good, strict=True) if fits),
            tuple(item for item, fits in zip(found, good, strict=True) if not fits),
        )

    def _kept(self, identity: TypeId) -> tuple[UnverifiedEventType, ...]:
        found = _read(self._list("type", identity), MAX_FOUND)
        return tuple(item for item in found if item.definition.type_id == identity)

    def genuine(self, owner: Owner, name: str, *, at: datetime) -> tuple[UnverifiedEventType, ...]:
        """Return the versions of a type that verify, or did before they expired."""
        return tuple(item for item in self.versions(owner, name) if self._lineage(item, at))

    def get(self, definition_id: EventTypeId, *, of: TypeId | None = None) -> UnverifiedEventType:
        """Return a definition by its identity; of one type, when that is known, and then nothing else is read."""
        # What has an identity never changes, so it is read and hashed once, however many versions come after it.
        if definition_id not in self._by_id:
            for item in _read(self._list("type", of), _MAX_KEPT):
                self._by_id.setdefault(item.definition_id, item)
        found = self._by_id.get(definition_id)
        if found is None or of not in (None, found.definition.type_id):
            raise NotFoundError(f"there is no definition `{definition_id.hex()}`", code="TYPE_NOT_FOUND")
        return found

    def names(self) -> tuple[TypeName, ...]:
        """List the full names of all that is kept, sorted by readable name and version."""
        found = {item.definition.name for item in _read(self._list("type", None), _MAX_KEPT)}
        return tuple(sorted(found, key=lambda name: (name.name, name.version.text, name.owner_id)))


def _check_room(kept: int) -> None:
    if kept >= MAX_FOUND:
        raise MalformedError(f"a registry keeps at most {MAX_FOUND} definitions of one type", code="REGISTRY_FULL")


def _check_consistent(new: EventType, kept: list[EventType]) -> None:
    """Refuse a version that contradicts one that is kept.

    Raises:
        MalformedError: A uid would change its type or, having been removed, come back under another name; or the
            version number is taken by another definition.
    """
    for item in kept:
        if item.name == new.name and item.meaning != new.meaning:
            raise _taken(new.name)
    check_meanings(new, _previous(new, kept), kept)


def _check_holders(new: VerifiedEventType, kept: list[list[EventType]]) -> None:
    """Refuse a version that takes an attribute from another type than a kept version does, itself included.

    Raises:
        MalformedError: A uid would be another type's, and so other rights would open it: ``UID_REUSED``.
    """
    holders: dict[str, TypeId] = {}
    for lineage in (*kept, [item.definition for item in new.lineage]):
        for definition in lineage:
            for uid in definition.uids:
                # SECURITY: events say uids and no version, so a uid that changes hands could be either's.
                if holders.setdefault(uid, definition.type_id) != definition.type_id:
                    raise MalformedError(
                        f"uid `{uid}` is inherited in one version and not in another", code="UID_REUSED"
                    )


def _taken(name: TypeName) -> MalformedError:
    return MalformedError(f"version `{name.version}` is taken by another definition", code="VERSION_TAKEN")


def _previous(new: EventType, kept: list[EventType]) -> EventType | None:
    if isinstance(new.previous, UnverifiedEventType):
        return new.previous.definition
    return next((item for item in kept if new.previous is not None and item.definition_id == new.previous), None)


def _read(stored: Iterable[bytes], limit: int) -> tuple[UnverifiedEventType, ...]:
    """Read what is kept, up to a limit; what is no definition is left out, since nobody could use it."""
    found: list[UnverifiedEventType] = []
    for raw in islice(stored, limit):
        try:
            found.append(_parse(raw))
        except MalformedError as error:
            _log.warning("the registry holds something that is no definition: %s", error.code)
    return tuple(found)


_parse = lru_cache(maxsize=1024)(parse_event_type)
"""Reads the same bytes once: parsing is most of what a registry does."""


class DirectoryRegistry(_Registry):
    """Keeps each definition in a file: ``<type id>/<hash of the bytes>.type``."""

    def __init__(self, folder: Path, *, verifier: Verifier | None = None, network: Network | None = None) -> None:
        """Use a folder, made when it is first written to.

        Args:
            folder: Where the files are.
            verifier: Verifies what is put.
            network: Demand that what is put may be installed on this network.
        """
        super().__init__(verifier=verifier, network=network)
        self._folder = Path(folder)

    @contextmanager
    def _writing(self) -> Iterator[_Keep]:
        make_folder(self._folder, mode=PUBLIC_FOLDER)
        with locked(self._folder / "registry"):
            yield self._keep

    def _keep(self, kind: str, identity: TypeId, _definition_id: bytes, raw: bytes) -> None:
        folder = self._folder / identity.hex()
        make_folder(folder, mode=PUBLIC_FOLDER)
        write_file(folder / f"{hashlib.sha256(raw).hexdigest()}.{kind}", raw, mode=PUBLIC_FILE)

    def draft(self) -> _Registry:
        """Give a registry in memory over this one: what is put there is judged as here, and nothing is kept."""
        return _Draft(self, verifier=self._verifier, network=self._network)

    def _list(self, kind: str, identity: TypeId | None) -> Iterable[bytes]:
        folders = [self._folder / identity.hex()] if identity is not None else self._folders()
        for folder in folders:
            for path in list_files(folder, suffix=f".{kind}"):
                # One octet more than a definition may have, so that a longer file is read as one that is refused.
                yield read_start(path, limit=EVENT_TYPE_LIMITS.max_bytes + 1)

    def _accepted(self, name: TypeName) -> bytes | None:
        return accepted_meaning(self._folder, name)

    def _accept(self, name: TypeName, meaning: bytes) -> None:
        accept_meaning(self._folder, name, meaning)

    def _folders(self) -> Iterable[Path]:
        return sorted(path for path in self._folder.iterdir() if path.is_dir()) if self._folder.is_dir() else ()


class _Draft(_Registry):
    """What a registry would say with some definitions more."""

    def __init__(self, base: DirectoryRegistry, *, verifier: Verifier, network: Network | None) -> None:
        super().__init__(verifier=verifier, network=network)
        self._base = base
        self._added: list[tuple[TypeId, bytes]] = []
        self._meanings: dict[TypeName, bytes] = {}

    @contextmanager
    def _writing(self) -> Iterator[_Keep]:
        yield lambda _kind, identity, _definition_id, raw: self._added.append((identity, raw))

    def _list(self, kind: str, identity: TypeId | None) -> Iterable[bytes]:
        yield from self._base._list(kind, identity)  # noqa: SLF001 - both are of this module
        yield from (raw for added, raw in self._added if identity in (None, added))

    def _accepted(self, name: TypeName) -> bytes | None:
        return self._base._accepted(name) or self._meanings.get(name)  # noqa: SLF001 - as above

    def _accept(self, name: TypeName, meaning: bytes) -> None:
        self._meanings.setdefault(name, meaning)
