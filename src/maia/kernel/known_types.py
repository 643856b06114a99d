"""The types that a broker knows: verified definitions, by type and version, and how they descend from each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from maia.authority import VerifiedEventType
from maia.errors import NotFoundError, VerificationError
from maia.events import EncryptionMode, EventType, TypeId, TypeName, ValueType
from maia.kernel.descent import Descent, descent_of


@dataclass(slots=True)
class KnownTypes:
    """Verified definitions; what is not here is not known."""

    _types: dict[tuple[TypeId, str], VerifiedEventType] = field(init=False, default_factory=dict)
    _refused: dict[tuple[TypeId, str], VerificationError] = field(init=False, default_factory=dict)
    _children: dict[TypeId, dict[TypeId, Descent]] = field(init=False, default_factory=dict)

    def install(self, verified: VerifiedEventType) -> None:
        """Learn a verified definition; of two of one version the first counts."""
        name = verified.event_type.name
        self._types.setdefault((name.type_id, name.version.text), verified)
        self._children.clear()

    def refuse(self, name: TypeName, error: VerificationError) -> None:
        """Remember why the definition of a version that is kept here does not count."""
        self._refused[name.type_id, name.version.text] = error

    def event_type(self, type_id: TypeId, version: str, *, at: datetime) -> EventType:
        """Return a known, unexpired version.

        Raises:
            NotFoundError: The version was never here: ``UNKNOWN_TYPE``.
            VerificationError: Its credentials have expired (``TYPE_EXPIRED``), or its definition does not count for
                another reason: it may not be installed on the network (``NOT_INSTALLED``), a version or a parent to
                verify it by is missing (``PREVIOUS_MISSING``, ``PARENT_MISSING``), it is not its owner's.
        """
        known, refused = self._types.get((type_id, version)), self._refused.get((type_id, version))
        if known is None and refused is not None:
            raise type(refused)(f"the definition does not count here: {refused.message}", code=refused.code)
        if known is None:
            raise NotFoundError("the type, or this version of it, is not known here", code="UNKNOWN_TYPE")
        if not known.holds_at(at):
            raise VerificationError("the credentials of the type have expired", code="TYPE_EXPIRED")
        return known.event_type

    def versions(self, type_id: TypeId | None = None, *, at: datetime) -> tuple[EventType, ...]:
        """List the known versions whose credentials hold, of one type or of all, in a fixed order."""
        return tuple(
            verified.event_type
            for (identity, _), verified in sorted(self._types.items(), key=lambda item: item[0])
            if type_id in (None, identity) and verified.holds_at(at)
        )

    def kinds(self, type_id: TypeId) -> dict[str, ValueType]:
        """Return the attribute types by uid over all known versions of a type."""
        found: dict[str, ValueType] = {}
        for (identity, _), verified in sorted(self._types.items()):
            if identity == type_id:
                found.update({item.uid: item.type for item in verified.event_type.attributes})
        return found

    def lineage(self, event_type: EventType) -> tuple[EventType, ...]:
        """Return the definitions behind a version, each with its own attributes: it, what it extends, and so on."""
        known = self._types.get((event_type.type_id, event_type.name.version.text))
        return (event_type,) if known is None else tuple(item.definition for item in known.lineage)

    def descent(self, type_id: TypeId) -> Descent:
        """Tell from which types the attributes of a type come, over all known versions of it."""
        return descent_of(type_id, (item for (identity, _), item in self._types.items() if identity == type_id))

    def children(self, type_id: TypeId) -> dict[TypeId, Descent]:
        """Tell what of the events of other known types is a type's, since they extend it."""
        known = self._children.get(type_id)
        if known is None:
            found = {
                identity
                for (identity, _), item in self._types.items()
                if any(one.definition.type_id == type_id for one in item.lineage[1:])
            }
            own = self.descent(type_id)
            known = {identity: own.of_child(self.descent(identity)) for identity in sorted(found - {type_id})}
            self._children[type_id] = known
        return known

    def modes(self, type_id: TypeId) -> frozenset[EncryptionMode]:
        """Return how the known versions of a type let their events be sealed."""
        known = [verified for (identity, _), verified in self._types.items() if identity == type_id]
        return frozenset(verified.event_type.options.encryption for verified in known)
