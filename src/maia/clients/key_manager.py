"""The client of a key manager: joins, leaves and counts for a broker, and looks for operators.

`KeyManagerClient.join` is the way to the manager that `maia.stores.join_key_groups` asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from maia.clients.service import ServiceClient
from maia.encryption import KeyGroupId
from maia.errors import MalformedError
from maia.events import TypeId
from maia.services import http

_MAX_BLOB = 1 << 20
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
        body = {"request": http.encode_octets(request), "evidence": [http.encode_octets(raw) for raw in evidence]}
        return _blob(_table(self.call("POST", "/v1/key-groups/join", body=body)), "answer")

    def leave(self, request: bytes) -> tuple[KeyGroupId, ...]:
        """Carry a broker's signed request to leave; give the groups that it was in."""
        return _groups(self.call("POST", "/v1/key-groups/leave", body={"request": http.encode_octets(request)}))

    def count_use(self, request: bytes) -> tuple[KeyGroupId, ...]:
        """Carry a broker's signed count of use; give the groups that were refreshed for it."""
        return _groups(self.call("POST", "/v1/key-groups/uses", body={"request": http.encode_octets(request)}))

    def status(self) -> tuple[RemoteStatus, ...]:
        """Ask where all groups stand, as an operator."""
        found = _list(_table(self.call("GET", "/v1/key-groups")), "groups")
        return tuple(
            RemoteStatus(
                group=_group(item),
                number=_number(item, "number"),
                start=_instant(item, "start"),
                members=_number(item, "members"),
                due=_instant(item, "due"),
                unpublished=_number(item, "unpublished"),
                behind=item.get("behind") is True,
            )
            for item in found
        )

    def refresh(self, group: KeyGroupId) -> int:
        """Order a new key for a group, as an operator; give the number of its epoch."""
        return _number(_table(self.call("POST", f"{_path(group)}/refresh")), "number")

    def rekeys(self, group: KeyGroupId, *, after: int = -1) -> tuple[RemoteRekey, ...]:
        """Ask for the rekey messages after one, oldest first; none when there are no more."""
        found = _list(_table(self.call("GET", f"{_path(group)}/rekeys", query={"after": after})), "rekeys")
        return tuple(RemoteRekey(number=_number(item, "number"), body=_blob(item, "body")) for item in found)


def _path(group: KeyGroupId) -> str:
    return f"/v1/key-groups/{http.encode_octets(group.type_id)}/{http.encode_octets(group.label)}"


def _group(table: dict[str, object]) -> KeyGroupId:
    type_id = http.decode_octets(_text(table, "type_id"), length=32)
    return KeyGroupId(TypeId(type_id), http.decode_blob(_text(table, "label"), limit=_MAX_LABEL))


def _groups(answer: object) -> tuple[KeyGroupId, ...]:
    return tuple(_group(item) for item in _list(_table(answer), "groups"))


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise MalformedError("an answer of another shape", code="ANSWER")
    return value


def _list(table: dict[str, object], name: str) -> list[dict[str, object]]:
    value = table.get(name)
    if not isinstance(value, list):
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return [_table(item) for item in value]


def _text(table: dict[str, object], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str):
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return value


def _blob(table: dict[str, object], name: str) -> bytes:
    return http.decode_blob(_text(table, name), limit=_MAX_BLOB)


def _number(table: dict[str, object], name: str) -> int:
    value = table.get(name)
    if type(value) is not int:
        raise MalformedError(f"an answer without `{name}`", code="ANSWER")
    return value


def _instant(table: dict[str, object], name: str) -> datetime | None:
    if table.get(name) is None:
        return None
    try:
        found = datetime.fromisoformat(_text(table, name))
    except ValueError as error:
        raise MalformedError(f"`{name}` is no instant", code="ANSWER") from error
    if found.tzinfo is None:
        raise MalformedError(f"`{name}` is no instant", code="ANSWER")
    return found
