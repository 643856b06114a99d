"""The verbs of keys: which epoch's key opens an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from maia.broker import milliseconds
from maia.cli.conformance.fields import Json, instant, wrong
from maia.encryption import EpochId, Tolerance, select_epoch
from maia.errors import SealError


def select(request: Json) -> dict[str, object] | int:
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
        return {"result": "refused", "reason": error.code}
    return epochs.index(chosen)


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


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {"key.select": select}
