"""The port to a registry of types.

A registry is a convenience, not an authority: whatever it gives back is unverified, and whoever asked verifies for
itself. It is separate from the brokers' interface; definitions are put there by owners and managers.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from maia.events.definition import EventTypeId, UnverifiedEventType
from maia.events.names import Owner, TypeName

MAX_FOUND = 1024
"""How many definitions one question may bring; a registry that holds more of one type refuses further ones."""


class Registry(Protocol):
    """Keeps signed definitions and finds them by name."""

    def put(self, raw: bytes, *, at: datetime) -> EventTypeId:
        """Keep a definition, after refusing what no reader could use.

        Raises:
            MalformedError: The bytes are no definition, or it contradicts a version that is kept.
            VerificationError: The signer shows no right to speak for the owner at this time.
        """
        ...

    def find(self, name: TypeName) -> tuple[UnverifiedEventType, ...]:
        """Return what is kept under a full name; more than one when managers issued equal versions.

        Of definitions that contradict each other, only those that say what was accepted first.

        Raises:
            NotFoundError: Nothing is.
        """
        ...

    def versions(self, owner: Owner, name: str) -> tuple[UnverifiedEventType, ...]:
        """Return all versions of a type; none when it is unknown."""
        ...

    def get(self, definition_id: EventTypeId) -> UnverifiedEventType:
        """Return a definition by its identity.

        Raises:
            NotFoundError: There is none.
        """
        ...

    def names(self) -> tuple[TypeName, ...]:
        """List the full names of all that is kept, sorted by readable name and version."""
        ...
