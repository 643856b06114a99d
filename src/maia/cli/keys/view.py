"""Key groups as people name and see them: `Type/attribute`, instants, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.cli.show.output import printable
from maia.cli.show.tables import draw_table
from maia.domain import open_key_manager
from maia.encoding import counted, did_you_mean
from maia.encryption import WHOLE_EVENT, KeyGroupId
from maia.errors import NotFoundError, UsageError
from maia.events import TypeId
from maia.home import Folder, Home
from maia.kernel import instant_at
from maia.key_manager import EpochRecord, GroupStatus, KeyManager, MembershipRecord
from maia.principals import KeyId, fingerprint


@dataclass(frozen=True, slots=True)
class Keys:
    """A home's key manager, with the names of types, attributes and brokers that the home knows."""

    manager: KeyManager
    types: dict[TypeId, str]
    attributes: dict[KeyGroupId, str]
    brokers: dict[KeyId, str]

    @classmethod
    def open(cls, path: Path) -> Keys:
        """Open the key manager of a home.

        Raises:
            NotFoundError: There is no home, or it has no key to manage with.
            UsageError: The home's keys are managed by a service elsewhere.
        """
        home = Home.open(path)
        if home.config.key_manager is not None:
            raise UsageError(
                f"this home's keys are managed by `{home.config.key_manager}`, not here", code="KEY_MANAGER_ELSEWHERE"
            )
        manager, _ = open_key_manager(home)
        attributes = {}
        for name in home.types.names():
            for item in home.read_type(name).attributes:
                attributes[KeyGroupId(name.type_id, item.uid.encode())] = item.name
        types = {name.type_id: name.name for name in home.types.names()}
        return cls(manager, types, attributes, dict(Folder(path).names))

    def name(self, group: KeyGroupId) -> str:
        """Name a group as it is written on the command line."""
        type_ = self.types.get(group.type_id, group.type_id.hex()[:16])
        label = self.attributes.get(group, group.label.decode("utf-8", "replace"))
        return printable(f"{type_}/{label}")

    def broker(self, member: bytes) -> str:
        """Name a broker: by the home's name for its key, or by the key's fingerprint."""
        return self.brokers.get(KeyId(member)) or fingerprint(KeyId(member))

    def instant(self, milliseconds: int | None) -> str | None:
        """Write an instant of a message."""
        if milliseconds is None:
            return None
        return instant_at(milliseconds).isoformat(timespec="milliseconds")

    def type_ids(self, name: str) -> frozenset[TypeId]:
        """Return the types of a readable name.

        Raises:
            NotFoundError: There is none.
        """
        found = frozenset(type_id for type_id, known in self.types.items() if name in (known, type_id.hex()[:16]))
        if not found:
            raise NotFoundError(
                f"there is no type `{name}`{did_you_mean(name, self.types.values())}", code="TYPE_NOT_FOUND"
            )
        return found

    def find(self, text: str) -> KeyGroupId:
        """Find a group by `Type/attribute`.

        Raises:
            NotFoundError: This home manages no such group.
            UsageError: The text names none, or several.
        """
        type_, mark, attribute = text.rpartition("/")
        if not mark or not type_ or not attribute:
            raise UsageError(f"`{text}` is no key group; write TYPE/ATTRIBUTE", code="KEY_GROUP_TEXT")
        types = self.type_ids(type_)
        found = [
            status.group
            for status in self.manager.status()
            if status.group.type_id in types
            and attribute in (status.group.label.decode("utf-8", "replace"), self.attributes.get(status.group))
        ]
        if not found:
            raise NotFoundError(f"this home manages no key group `{text}`", code="KEY_GROUP_UNKNOWN")
        if len(found) > 1:
            raise UsageError(f"`{text}` may be any of several key groups; name the attribute by uid", code="AMBIGUOUS")
        return found[0]

    def to_json(self, status: GroupStatus) -> dict[str, object]:
        """Write where a group stands."""
        group = status.group
        return {
            "group": self.name(group), "type_id": group.type_id.hex(),
            "uid": None if group.label == WHOLE_EVENT else group.label.decode("utf-8", "replace"),
            "epoch": status.number, "start": self.instant(status.start), "members": status.members,
            "due": self.instant(status.due), "unpublished": status.unpublished, "behind": status.behind,
        }  # fmt: skip


def epoch_to_json(keys: Keys, epoch: EpochRecord) -> dict[str, object]:
    """Write one epoch."""
    return {
        "epoch": epoch.number, "start": keys.instant(epoch.start), "at": epoch.at.isoformat(),
        "causes": list(epoch.causes), "members": epoch.members, "keys": epoch.keys, "octets": epoch.octets,
        "published": epoch.published,
    }  # fmt: skip


def draw_groups(keys: Keys, found: Sequence[GroupStatus]) -> None:
    """Draw a table of groups."""
    rows = [
        (
            keys.name(item.group), str(item.number), keys.instant(item.start) or "-", str(item.members),
            keys.instant(item.due) or "-", "repair" if item.behind else "publish" if item.unpublished else "",
        )
        for item in found
    ]  # fmt: skip
    draw_table(("group", "epoch", "since", "brokers", "changes by", "waits for"), rows, right=("epoch", "brokers"))


def draw_history(keys: Keys, epochs: Sequence[EpochRecord], changes: Sequence[MembershipRecord]) -> None:
    """Draw epochs and changes as one list, by time."""
    lines: list[tuple[datetime, tuple[str, ...]]] = []
    for epoch in epochs:
        cost = ", ".join((counted(epoch.members, "broker"), counted(epoch.keys, "key"), counted(epoch.octets, "octet")))
        begins = f"{cost}, begins {keys.instant(epoch.start)}"
        lines.append((epoch.at, (f"epoch {epoch.number}", " ".join(epoch.causes), begins)))
    lines += [(item.at, (item.kind, keys.broker(item.member), "")) for item in changes]
    lines.sort(key=lambda line: line[0])
    draw_table(("at", "what", "why or who", ""), [(f"{at:%Y-%m-%d %H:%M:%S}", *cells) for at, cells in lines])
