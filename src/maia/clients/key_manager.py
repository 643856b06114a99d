"""The client of a key manager: joins, leaves and counts for a broker, and looks for operators.

`KeyManagerClient.join` is the way to the manager that `maia.domain.join_key_groups` asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from maia import wire
from maia.clients.reading import read_blob, read_instant, read_list, read_number, read_table, read_text
from maia.clients.service import ServiceClient
from maia.encryption import KeyGroupId
from maia.events import TypeId

_MAX_LABEL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStatus:
    """Where a group of a key manager stands, as its service says."""

    group: KeyGroupId
    number: int
    start: datetime | None
    members: int
    due: datetime | None
    unpublished: int
    behind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRekey:
    """A rekey message and its number in the log; nothing in it is verified yet."""

    number: int
    body: bytes


class KeyManagerClient(ServiceClient):
    """Talks to a key manager."""

    def join(self, request: bytes, evidence: Sequence[bytes]) -> bytes:
        """Carry a broker's signed request and its certificates; give the manager's signed answer.

        Raises:
            MaiaError: As `ServiceClient.call` does.
        """
        body = {"request": wire.encode_octets(request), "evidence": [wire.encode_octets(raw) for raw in evidence]}
        return read_blob(read_table(self.call("POST", "/v1/key-groups/join", body=body)), "answer")

    def leave(self, request: bytes) -> tuple[KeyGroupId, ...]:
        """Carry a broker's signed request to leave; give the groups that it was in."""
        return _groups(self.call("POST", "/v1/key-groups/leave", body={"request": wire.encode_octets(request)}))

    def count_use(self, request: bytes) -> tuple[KeyGroupId, ...]:
        """Carry a broker's signed count of use; give the groups that were refreshed for it."""
        return _groups(self.call("POST", "/v1/key-groups/uses", body={"request": wire.encode_octets(request)}))

    def status(self) -> tuple[RemoteStatus, ...]:
        """Ask where all groups stand, as an operator."""
        found = read_list(read_table(self.call("GET", "/v1/key-groups")), "groups")
        return tuple(
            RemoteStatus(
                group=_group(item),
                number=read_number(item, "number"),
                start=read_instant(item, "start"),
                members=read_number(item, "members"),
                due=read_instant(item, "due"),
                unpublished=read_number(item, "unpublished"),
                behind=item.get("behind") is True,
            )
            for item in found
        )

    def refresh(self, group: KeyGroupId) -> int:
        """Order a new key for a group, as an operator; give the number of its epoch."""
        return read_number(read_table(self.call("POST", f"{_path(group)}/refresh")), "number")

    def rekeys(self, group: KeyGroupId, *, after: int = -1) -> tuple[RemoteRekey, ...]:
        """Ask for the rekey messages after one, oldest first; none when there are no more."""
        found = read_list(read_table(self.call("GET", f"{_path(group)}/rekeys", query={"after": after})), "rekeys")
        return tuple(RemoteRekey(number=read_number(item, "number"), body=read_blob(item, "body")) for item in found)


def _path(group: KeyGroupId) -> str:
    return f"/v1/key-groups/{wire.encode_octets(group.type_id)}/{wire.encode_octets(group.label)}"


def _group(table: dict[str, object]) -> KeyGroupId:
    type_id = wire.decode_octets(read_text(table, "type_id"), length=32)
    return KeyGroupId(TypeId(type_id), wire.decode_blob(read_text(table, "label"), limit=_MAX_LABEL))


def _groups(answer: object) -> tuple[KeyGroupId, ...]:
    return tuple(_group(item) for item in read_list(read_table(answer), "groups"))
