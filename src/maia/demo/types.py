"""The type part of the demonstration, ready to be shown: versions, their changes, one event as each version sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from maia.demo.type_evolution import VersionStory
from maia.events import Publication, Value, diff, to_transit, value_to_json
from maia.principals import fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionView:
    """One version: what changed, who signed, what its subscribers see."""

    version: str
    change: str
    signer: str
    attributes: tuple[tuple[str, str, str], ...]
    seen: Mapping[str, object]

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "version": self.version, "change": self.change, "signer": self.signer, "seen": dict(self.seen),
            "attributes": [{"name": name, "uid": uid, "type": kind} for name, uid, kind in self.attributes],
        }  # fmt: skip


def version_views(story: VersionStory) -> list[VersionView]:
    """Describe the versions in the order in which they were made."""
    found: list[VersionView] = []
    previous = None
    for verified, seen in zip(story.verified, story.seen, strict=True):
        new = verified.event_type
        changes = ["defined"] if previous is None else [str(change) for change in diff(previous, new).changes]
        found.append(
            VersionView(
                version=str(new.name.version),
                change="; ".join(changes),
                signer=fingerprint(verified.signer.key_id),
                attributes=tuple((item.name, str(item.uid), item.type.value) for item in new.attributes),
                seen={name: _plain(value) for name, value in seen.items()},
            )
        )
        previous = new
    return found


def in_transit(story: VersionStory) -> dict[str, object]:
    """Give the event as it travels: uids, no names, no version."""
    event = to_transit(Publication(story.verified[0].event_type, story.event))
    return {str(uid): _plain(value) for uid, value in event.values.items()}


def _plain(value: Value) -> object:
    return None if value is None else value_to_json(value)
