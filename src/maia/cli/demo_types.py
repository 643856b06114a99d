"""The type part of the scenario: Numberplate defined, evolved twice, and one event as three versions see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from maia.authority import VerifiedEventType, Verifier, verify_event_type
from maia.events import (
    Add,
    AttributeType,
    EventType,
    Operation,
    Publication,
    Remove,
    Rename,
    TypeName,
    Uid,
    UnverifiedEventType,
    Version,
    attribute,
    evolve,
    sign_event_type,
    to_transit,
    translate,
    value_to_json,
)
from maia.principals import parse_certificate
from maia.testing import NETWORK_NAME, TYPE_NAME, NumberplateNetwork

PLATE = "AE05 XYZ"


@dataclass(frozen=True, slots=True)
class Seen:
    """The event as one version sees it."""

    version: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Three verified versions of a type, and one event."""

    versions: tuple[VerifiedEventType, ...]
    changes: tuple[str, ...]
    event: Publication

    def seen(self) -> list[Seen]:
        """See the event as each version sees it."""
        found = []
        for verified in self.versions:
            seen = translate(self.event, verified.event_type)
            values = {name: None if value is None else value_to_json(value) for name, value in seen.values.items()}
            found.append(Seen(str(verified.definition.name.version), values))
        return found

    def transit(self) -> dict[str, object]:
        """Give the event as it travels: uids, no names, no version."""
        return {
            str(uid): None if value is None else value_to_json(value)
            for uid, value in to_transit(self.event).values.items()
        }

    def to_json(self) -> dict[str, object]:
        """Give all of it for machines."""
        return {
            "name": self.event.event_type.name.name,
            "versions": [
                {
                    "version": str(verified.definition.name.version), "change": change,
                    "signer": verified.signer.fingerprint,
                    "attributes": [
                        {"name": item.name, "uid": str(item.uid), "type": item.type.value}
                        for item in verified.event_type.attributes
                    ],
                }
                for verified, change in zip(self.versions, self.changes, strict=True)
            ],
            "published": {"version": str(self.event.event_type.name.version), "in_transit": self.transit()},
            "seen": [{"version": seen.version, "values": dict(seen.values)} for seen in self.seen()],
        }  # fmt: skip


def numberplate_versions(network: NumberplateNetwork) -> Versions:
    """Define the type as PITO, evolve it as the type manager, verify each version, and publish one event.

    The manager holds Cap11 (manage) and Cap11b (install) and embeds them; verifiers find the owner by themselves.
    """
    owner = network.people["PITO"]
    first = EventType(
        name=TypeName(owner.public_key, TYPE_NAME, Version("4799")),
        attributes=(attribute("license-plate", 9525, "string"), attribute("location", 3467, "string")),
    )
    signed: list[UnverifiedEventType] = [sign_event_type(first, owner)]
    steps: tuple[tuple[str, str, tuple[Operation, ...]], ...] = (
        (
            "8516",
            "license-plate is renamed to numberplate and keeps its uid",
            (Rename("license-plate", "numberplate"),),
        ),
        (
            "9000",
            "numberplate goes; a new attribute takes the old name, with a uid of its own",
            (Remove("numberplate"), Add("license-plate", AttributeType.STRING, Uid("3879"))),
        ),
    )
    for version, _, operations in steps:
        new = evolve(signed[-1], operations, version=Version(version), embed=True)
        signed.append(_signed_by_manager(network, new))
    place = (owner.public_key, NETWORK_NAME)
    verified = tuple(verify_event_type(item, verifier=Verifier(), at=network.now, network=place) for item in signed)
    published = Publication(first, {"license-plate": PLATE, "location": "Victoria"})
    changes = ("defined by its owner", *(text for _, text, _ in steps))
    return Versions(versions=verified, changes=changes, event=published)


def _signed_by_manager(network: NumberplateNetwork, definition: EventType) -> UnverifiedEventType:
    credentials = tuple(parse_certificate(item.raw) for item in network.some("Cap11", "Cap11b"))
    return sign_event_type(replace(definition, credentials=credentials), network.people["TM"])
