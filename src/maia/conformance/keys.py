"""The verbs of keys: which epoch's key opens an event, and when a group's key must change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from maia.conformance.fields import Json, VerbAnswer, field, instant, objects, wrong
from maia.encryption import ChangeKind, EpochId, GroupChange, Tolerance, plan_refreshes, select_epoch
from maia.errors import SealError
from maia.kernel import milliseconds


def select(request: Json) -> VerbAnswer | int:
    """``key.select``: the index of the key, or refused."""
    epochs = epochs_of(request)
    try:
        chosen = select_epoch(
            epochs,
            stamp=_moment(request.get("stamp"), "stamp"),
            arrives=_moment(request.get("arrives"), "arrives"),
            tolerance=tolerance_of(request),
        )
    except SealError as error:
        return VerbAnswer("refused", error.code)
    return epochs.index(chosen)


def refreshes(request: Json) -> list[int | float | str]:
    """``key.refreshes``: when the rules refresh, up to and including ``until``; written as ``until`` is."""
    until = request.get("until")
    planned = plan_refreshes(
        [_change(item) for item in objects(request, "timeline")],
        period=None if request.get("period") is None else _seconds(request, "period"),
        until=_moment(until, "until"),
    )
    return [_written(refresh.at, like=until) for refresh in planned]


def _change(item: Json) -> GroupChange:
    try:
        kind = _CHANGES[field(item, "do", str)]
    except KeyError as error:
        raise wrong("do", "`refresh`, `join`, `leave` or `revoke`") from error
    return GroupChange(
        at=_moment(item.get("at"), "at"),
        kind=kind,
        member=b"" if kind is ChangeKind.REFRESH else field(item, "member", str).encode("utf-8", "surrogatepass"),
        valid_from=_open_moment(item, "valid_from"),
        valid_to=_open_moment(item, "valid_to"),
    )


def _open_moment(item: Json, name: str) -> int | None:
    return None if item.get(name) is None else _moment(item[name], name)


def _written(moment: int, *, like: object) -> int | float | str:
    if isinstance(like, str):
        written = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment)
        return written.isoformat().replace("+00:00", "Z")
    return moment / 1000 if moment % 1000 else moment // 1000


def epochs_of(request: Json) -> list[EpochId]:
    """Read the starts of the epochs."""
    values = request.get("epochs")
    if not isinstance(values, list):
        raise wrong("epochs", "a list of times")
    return [EpochId(_moment(value, "epochs")) for value in values]


def tolerance_of(request: Json) -> Tolerance:
    """Read grace and skew, in seconds."""
    return Tolerance(grace=_seconds(request, "grace"), skew=_seconds(request, "skew"))


def _seconds(request: Json, name: str) -> int:
    value = request.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise wrong(name, "a number of seconds")
    return round(value * 1000)


def _moment(value: object, name: str) -> int:
    return milliseconds(instant(value, name))


_CHANGES = {kind.value: kind for kind in (ChangeKind.REFRESH, ChangeKind.JOIN, ChangeKind.LEAVE, ChangeKind.REVOKE)}
VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"key.select": select, "key.refreshes": refreshes}
