"""The key manager's routes: parse, ask the manager, render.

Rules kept here:

- a broker asks for itself only: the key that signed the HTTP request is the key of the request inside;
- rekey messages are given to members, and states and histories to operators; to everybody else a group that is there
  and one that is not look alike.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from maia.encryption import KeyGroupId, verify_group_request
from maia.errors import DeniedError
from maia.events import TypeId
from maia.key_manager import KeyManager
from maia.principals import PublicKey
from maia.services.http import Body, Caller, Signed, blob_field
from maia.wire import decode_blob, decode_octets, encode_octets

MAX_REQUEST = 16 << 10
MAX_ANSWER = 180 << 10
MAX_EVIDENCE = 256
MAX_CERTIFICATE = 64 << 10
MAX_LABEL = 64
_PAGE = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TypeText = Annotated[str, Path(min_length=43, max_length=43, pattern="^[A-Za-z0-9_-]+$")]
LabelText = Annotated[str, Path(min_length=1, max_length=86, pattern="^[A-Za-z0-9_-]+$")]


class JoinBody(Body):
    """A broker's signed request to join, the certificates that give it the right, and the lists that they demand."""

    request: str = blob_field(MAX_REQUEST)
    evidence: list[Annotated[str, blob_field(MAX_CERTIFICATE)]] = Field(max_length=MAX_EVIDENCE)


class AnswerView(Body):
    """The manager's signed answer: the broker's places, sealed to it."""

    answer: str


class RequestBody(Body):
    """A broker's signed request to leave, or its count of use."""

    request: str = blob_field(MAX_REQUEST)


class GroupView(Body):
    """A key group's name."""

    type_id: str
    label: str


class GroupsView(Body):
    """Key groups."""

    groups: list[GroupView]


class StatusView(Body):
    """Where a group stands."""

    type_id: str
    label: str
    number: int
    start: datetime | None
    members: int
    due: datetime | None
    unpublished: int
    behind: bool


class StatusesView(Body):
    """Where all groups stand."""

    groups: list[StatusView]


class NumberView(Body):
    """The number of an epoch."""

    number: int


class RekeyView(Body):
    """A rekey message as it stands in the log."""

    number: int
    body: str


class RekeysView(Body):
    """Rekey messages, oldest first; ask again after the last one's number until none come."""

    rekeys: list[RekeyView]


class EpochView(Body):
    """One epoch of a group."""

    number: int
    start: datetime
    causes: list[str]
    members: int
    keys: int
    octets: int


class EpochsView(Body):
    """The newest epochs of a group, oldest first."""

    epochs: list[EpochView]


def key_manager_routes(manager: KeyManager, operators: frozenset[PublicKey]) -> APIRouter:
    """Give the routes of a key manager.

    Args:
        manager: The logic.
        operators: Who may see all groups and order refreshes.
    """
    router = APIRouter(prefix="/key-groups", tags=["key groups"])

    @router.post("/join")
    def join(body: JoinBody, caller: Signed) -> AnswerView:
        """Admit the broker that asks to all groups of a type that its certificates open."""
        request = _own_request(manager, body.request, caller)
        evidence = [decode_blob(text, limit=MAX_CERTIFICATE) for text in body.evidence]
        return AnswerView(answer=encode_octets(manager.join(request, evidence, at=caller.at)))

    @router.post("/leave")
    def leave(body: RequestBody, caller: Signed) -> GroupsView:
        """Let the broker that asks go; the groups that it was in."""
        return _groups(manager.leave(_own_request(manager, body.request, caller), at=caller.at))

    @router.post("/uses")
    def uses(body: RequestBody, caller: Signed) -> GroupsView:
        """Take the broker's count of what it sealed; the groups that were refreshed for it."""
        return _groups(manager.count_use(_own_request(manager, body.request, caller), at=caller.at))

    @router.get("")
    def status(caller: Signed) -> StatusesView:
        """Show where every group stands, to operators."""
        _require_operator(caller, operators)
        return StatusesView(
            groups=[
                StatusView(
                    type_id=encode_octets(item.group.type_id),
                    label=encode_octets(item.group.label),
                    number=item.number,
                    start=_instant(item.start),
                    members=item.members,
                    due=_instant(item.due),
                    unpublished=item.unpublished,
                    behind=item.behind,
                )
                for item in manager.status()
            ]
        )

    @router.post("/{type_id}/{label}/refresh")
    def refresh(type_id: TypeText, label: LabelText, caller: Signed) -> NumberView:
        """Change a group's key now, for operators; the number of the new epoch."""
        _require_operator(caller, operators)
        return NumberView(number=manager.refresh(_group(type_id, label), at=caller.at))

    @router.get("/{type_id}/{label}/epochs")
    def epochs(type_id: TypeText, label: LabelText, caller: Signed) -> EpochsView:
        """Show the newest epochs of a group, to operators."""
        _require_operator(caller, operators)
        return EpochsView(
            epochs=[
                EpochView(
                    number=item.number,
                    start=_EPOCH + timedelta(milliseconds=item.start),
                    causes=list(item.causes),
                    members=item.members,
                    keys=item.keys,
                    octets=item.octets,
                )
                for item in manager.history(_group(type_id, label))[-_PAGE:]
            ]
        )

    @router.get("/{type_id}/{label}/rekeys")
    def rekeys(
        type_id: TypeText,
        label: LabelText,
        caller: Signed,
        after: Annotated[
            int, Query(ge=-1, le=2**53 - 1, description="The number of the last message that is known.")
        ] = -1,
    ) -> RekeysView:
        """Give the messages that a member has not read yet, a part at a time."""
        group = _group(type_id, label)
        picture = manager.picture(group)
        inside = {member for _, member in picture.places} | set(picture.waiting)
        if caller.key.key_id not in inside and caller.key not in operators:
            raise DeniedError("only members follow a key group", code="NOT_A_MEMBER")
        found: list[RekeyView] = []
        size = 0
        for record in manager.rekeys(group, after=after, limit=_PAGE):
            size += len(record.body)
            if found and size > MAX_ANSWER:
                break
            found.append(RekeyView(number=record.number, body=encode_octets(record.body)))
        return RekeysView(rekeys=found)

    return router


def _own_request(manager: KeyManager, text: str, caller: Caller) -> bytes:
    request = decode_blob(text, limit=MAX_REQUEST)
    # SECURITY: somebody else's request, however good, is not this caller's.
    if verify_group_request(request, manager.public_key.key_id).sender != caller.key:
        raise DeniedError("a broker asks for itself", code="NOT_YOUR_REQUEST")
    return request


def _require_operator(caller: Caller, operators: frozenset[PublicKey]) -> None:
    if caller.key not in operators:
        raise DeniedError("only operators of the key manager may do this", code="NOT_OPERATOR")


def _group(type_id: str, label: str) -> KeyGroupId:
    return KeyGroupId(TypeId(decode_octets(type_id, length=32)), decode_blob(label, limit=MAX_LABEL))


def _groups(groups: tuple[KeyGroupId, ...]) -> GroupsView:
    return GroupsView(
        groups=[GroupView(type_id=encode_octets(item.type_id), label=encode_octets(item.label)) for item in groups]
    )


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)
