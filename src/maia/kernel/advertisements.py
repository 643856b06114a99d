"""What clients have said that they publish, and the rule that nothing is published unsaid (rows 7.01, 7.03).

An advertisement is a client's word to its broker: it will publish one version of a type, perhaps only what a filter
admits. Rules kept here:

- a publication goes under an advertisement of its version by its publisher, and under no other's;
- where a domain lets the first publication be the advertisement, that is one, to be remembered and told as any other;
- what was withdrawn stays withdrawn: only a new advertisement ends that, never a publication;
- a publisher is held to its word: a publication without a filter goes under the filter that was advertised.

Whether the right to publish is held is no question of this book: it is proven when an advertisement is made and judged
again, from what was verified then, whenever something is published.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.errors import DeniedError
from maia.events import TypeId, TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAdvertisement:
    """An advertisement that a broker remembers.

    Attributes:
        principal: The id of the publisher's key, in hex.
        type_id: The type.
        version: The version of it.
        filter: What will be published, as a filter whose constraints are alternatives; everything without one.
        withdrawn: Whether the publisher took it back.
    """

    principal: str
    type_id: TypeId
    version: str
    filter: str | None = None
    withdrawn: bool = False

    def is_of(self, principal: str, name: TypeName) -> bool:
        """Tell whether it is somebody's, of a version."""
        return (self.principal, self.type_id, self.version) == (principal, name.type_id, name.version.text)


def standing_advertisement(
    kept: Iterable[KeptAdvertisement], principal: str, name: TypeName, *, said: str | None, explicit: bool
) -> KeptAdvertisement | None:
    """Find the advertisement that a publication goes under.

    Args:
        kept: What the broker remembers.
        principal: The id of the publisher's key, in hex; the key was proven.
        name: The version that is published.
        said: What this publication says of itself, as a filter, if it says anything.
        explicit: Whether the domain wants every advertisement to be made before the first publication.

    Returns:
        The advertisement; nothing when the publication itself is to become one.

    Raises:
        DeniedError: There is none, or it was withdrawn: ``NOT_ADVERTISED``.
    """
    found = next((item for item in kept if item.is_of(principal, name)), None)
    if found is not None and not found.withdrawn and said in (None, found.filter):
        return found
    if found is not None and found.withdrawn:
        raise DeniedError(f"the advertisement of `{name.name}` was taken back", code="NOT_ADVERTISED")
    if explicit:
        what = "is not what was advertised" if found is not None else "was not advertised"
        raise DeniedError(f"`{name.name}` {what}, and this domain wants that first", code="NOT_ADVERTISED")
    return None
