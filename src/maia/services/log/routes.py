"""The routes of a served log: read, never write.

    POST /v1/log/introduction     who asks shows what lets it connect; the broker shows its own
    GET  /v1/log/folders          folders of lanes, in order
    GET  /v1/log/records          records of a lane, one behind the other
    POST /v1/log/unwanted         which segments, from a record on, no filter of the caller wants
    GET  /v1/log/objects          a part of a record, a head, a segment, or evidence

Rules kept here:

- each request is signed by a key that was proven, and that key may connect to the network at that moment;
- what belongs to a type that goes direct is given and listed to whom it is for, and to nobody when it is a copy;
- nothing is given that is no object of a lane and no evidence, and a store says nothing else of itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from maia.domain import MAX_FILTERS
from maia.encryption import MAX_FILTER
from maia.errors import DeniedError, EncodingError, NotFoundError, UsageError
from maia.log import Store
from maia.principals import PublicKey
from maia.services.http import Body, Signed, blob_field
from maia.services.log.neighbours import Neighbours
from maia.wire import (
    ABSENT,
    LOG_FOLDERS,
    LOG_PART,
    LOG_RECORDS,
    UNFIT,
    decode_blob,
    encode_octets,
    folder_shape,
    is_log_object,
    split_record,
    write_part,
    write_records,
)

_MAX_CERTIFICATE = 64 << 10
_MAX_SHOWN = 64
_MAX_OBJECT = 1 << 40
_MEDIA = "application/octet-stream"
_Name = Annotated[str, Query(max_length=400)]


class IntroductionBody(Body):
    """What lets somebody connect: certificates, and the lists that they demand."""

    certificates: list[Annotated[str, blob_field(_MAX_CERTIFICATE)]] = Field(max_length=_MAX_SHOWN)
    statements: list[Annotated[str, blob_field(_MAX_CERTIFICATE)]] = Field(max_length=_MAX_SHOWN)


class IntroductionView(Body):
    """What lets the broker of this log connect."""

    certificates: list[str]
    statements: list[str]


class FoldersView(Body):
    """Folders, in order; ask again after the last one until none come."""

    folders: list[str]


class FiltersBody(Body):
    """From which record on is asked, and what is wanted, sealed."""

    name: Annotated[str, Field(max_length=400)]
    filters: list[Annotated[str, blob_field(MAX_FILTER)]] = Field(min_length=1, max_length=MAX_FILTERS)


class UnwantedView(Body):
    """Segments that nothing of that wants, and the last record that was looked at."""

    segments: list[str]
    last: int


def log_routes(store: Callable[[], Store], neighbours: Neighbours) -> APIRouter:
    """Make the routes of a log."""
    router = APIRouter()

    @router.post("/log/introduction")
    def introduce(body: IntroductionBody, caller: Signed) -> IntroductionView:
        """Show what lets the caller connect, and see what lets this broker."""
        neighbours.admit(caller.key, _read(body.certificates), _read(body.statements))
        shown = neighbours.credentials()
        return IntroductionView(
            certificates=[encode_octets(raw) for raw in shown.certificates],
            statements=[encode_octets(raw) for raw in shown.statements],
        )

    @router.get("/log/folders")
    def folders(folder: _Name, after: _Name, caller: Signed) -> FoldersView:
        """List folders of lanes that sort after one."""
        _let_in(caller.key)
        shape = folder_shape(folder)
        if shape is None:
            raise UsageError("no folder of lanes", code="LOG_NAME")
        found: list[str] = []
        while len(found) < LOG_FOLDERS:  # who asks takes a short answer for the end
            page = store().list_folders(folder, after, limit=LOG_FOLDERS, shape=shape)
            found += [name for name in page if _is_for(caller.key, f"{folder}/{name}".lstrip("/"))]
            if len(page) < LOG_FOLDERS:
                break
            after = page[-1]
        return FoldersView(folders=found[:LOG_FOLDERS])

    @router.get("/log/records", response_class=Response)
    def records(name: _Name, caller: Signed) -> Response:
        """Give a record and those that follow it, as many as one answer holds; none when the first is too large."""
        _let_in(caller.key)
        neighbours.check_object(caller.key, name)
        return Response(_records(store(), name), media_type=_MEDIA)

    @router.post("/log/unwanted")
    def unwanted(body: FiltersBody, caller: Signed) -> UnwantedView:
        """Tell which segments the caller's filters do not want."""
        _let_in(caller.key)
        neighbours.check_object(caller.key, body.name)
        filters = [decode_blob(item, limit=MAX_FILTER) for item in body.filters]
        segments, last = neighbours.unwanted(caller.key, body.name, filters)
        return UnwantedView(segments=segments, last=last)

    @router.get("/log/objects", response_class=Response)
    def objects(
        name: _Name, start: Annotated[int, Query(ge=0, le=_MAX_OBJECT)], length: Annotated[int, Query(ge=0)],
        caller: Signed,
    ) -> Response:  # fmt: skip
        """Give a part of an object."""
        _let_in(caller.key)
        neighbours.check_object(caller.key, name)
        return Response(_part(store(), name, start, min(length, LOG_PART)), media_type=_MEDIA)

    def _let_in(key: PublicKey) -> None:
        # SECURITY: judged anew, so that a right that was revoked ends for whoever is connected already.
        neighbours.check(key)

    def _is_for(key: PublicKey, name: str) -> bool:
        try:
            neighbours.check_object(key, name)
        except DeniedError:
            return False
        return True

    return router


def _records(store: Store, name: str) -> bytes:
    found = split_record(name)
    if found is None:
        raise UsageError("no name of a record", code="LOG_NAME")
    lane, number = found
    taken: list[bytes] = []
    left = LOG_PART
    for step in range(LOG_RECORDS):
        try:
            data = store.get(f"{lane}/{number + step:012d}.record", limit=left)
        except NotFoundError:
            if not step:
                return ABSENT
            break
        except EncodingError:
            break
        taken.append(data)
        left -= len(data)
    return write_records(taken)


def _part(store: Store, name: str, start: int, length: int) -> bytes:
    # SECURITY: a store may hold more than lanes, and none of that is for neighbours.
    if not is_log_object(name):
        raise UsageError("no object of a log", code="LOG_NAME")
    try:
        with store.open(name, limit=_MAX_OBJECT) as opened:
            return write_part(opened.size, opened.get_range(start, min(length, max(0, opened.size - start))))
    except NotFoundError:
        return ABSENT
    except EncodingError:
        return UNFIT


def _read(items: list[str]) -> tuple[bytes, ...]:
    return tuple(decode_blob(item, limit=_MAX_CERTIFICATE) for item in items)
