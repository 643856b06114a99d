"""The numberplate type of the demonstration: three versions, and one event as each of them sees it.

PITO defines version 4799, a manager with the right to rename issues 8516, and PITO brings the old name back as a new
attribute in 9000. Every version is signed with real keys and verified before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from maia.authority import Action, VerifiedEventType, Verifier, type_right, verify_event_type
from maia.events import (
    Add,
    AttributeType,
    EventType,
    Publication,
    Rename,
    TypeName,
    Uid,
    UnverifiedEventType,
    Value,
    attribute,
    evolve,
    parse_version,
    sign_event_type,
    translate,
)
from maia.principals import Authorisation, Signer, issue, parse_certificate

TYPE = "uk.gov.pito.Numberplate"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionStory:
    """The versions in the order in which they were made, and one event seen by each.

    Attributes:
        versions: As they were signed.
        verified: The same, verified.
        event: What was published under the first version.
        seen: What subscribers of each version see.
    """

    versions: tuple[UnverifiedEventType, ...]
    verified: tuple[VerifiedEventType, ...]
    event: Mapping[str, Value]
    seen: tuple[Mapping[str, Value], ...]


def version_story(pito: Signer, manager: Signer, *, at: datetime) -> VersionStory:
    """Make the versions, verify them, and translate one event.

    Args:
        pito: Owns the type.
        manager: Gets the right to rename attributes, and uses it.
        at: The instant of the verification.

    >>> from datetime import UTC
    >>> from maia.principals import KeySigner
    >>> story = version_story(KeySigner(bytes(32)), KeySigner(bytes([1]) * 32), at=datetime(2026, 6, 1, tzinfo=UTC))
    >>> for version, seen in zip(story.versions, story.seen):
    ...     print(version.definition.name.version, dict(seen))
    4799 {'license-plate': 'AE05 XYZ', 'location': 'Victoria'}
    8516 {'numberplate': 'AE05 XYZ', 'location': 'Victoria'}
    9000 {'numberplate': 'AE05 XYZ', 'location': 'Victoria', 'license-plate': None}
    """
    first = EventType(
        name=TypeName(pito.public_key, TYPE, parse_version(4799)),
        attributes=(attribute("license-plate", 9525, "string"), attribute("location", 3467, "string")),
    )
    v4799 = sign_event_type(first, pito)
    right = type_right(pito.public_key, TYPE, actions=[Action.EDIT_ATTRIBUTE_NAME])
    given = issue(
        Authorisation(issuer=pito.public_key, subject=manager.public_key, delegate=False, tag=right.to_sexp()),
        pito,
    )
    renamed = evolve(v4799, [Rename("license-plate", "numberplate")], version=parse_version(8516), embed=True)
    v8516 = sign_event_type(replace(renamed, credentials=(parse_certificate(given.raw),)), manager)
    again = Add("license-plate", AttributeType.STRING, Uid("3879"))
    v9000 = sign_event_type(evolve(v8516, [again], version=parse_version(9000)), pito)
    versions = (v4799, v8516, v9000)
    verifier = Verifier()
    verified = tuple(verify_event_type(item, verifier=verifier, at=at) for item in versions)
    published = Publication(verified[0].event_type, {"license-plate": "AE05 XYZ", "location": "Victoria"})
    seen = tuple(translate(published, item.event_type).values for item in verified)
    return VersionStory(versions=versions, verified=verified, event=published.values, seen=seen)
