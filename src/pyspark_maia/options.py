"""The options of the data source: named as Spark names its own, checked, with the nearest name for a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from maia.errors import UsageError

_KNOWN = {
    "home": "home",
    "type": "type",
    "as": "as_",
    "where": "where",
    "version": "version",
    "startingoffsets": "starting_offsets",
    "witheventid": "with_event_id",
    "maxeventsperparcel": "max_events",
    "maxcommitspertrigger": "max_commits",
    "publication": "publication",
    "checkpointlocation": "",  # Spark's own; it reaches writers of streams
    "path": "home",
}
_SPELLINGS = ("home", "type", "as", "where", "version", "startingOffsets", "withEventId", "maxEventsPerParcel",
              "maxCommitsPerTrigger", "publication")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a reader or writer was asked for, and the columns that Spark was promised."""

    home: str
    type: str
    as_: str
    where: str = ""
    version: str | None = None
    starting_offsets: str = "earliest"
    with_event_id: str = "false"
    max_events: str = "16384"
    max_commits: str = "64"
    publication: str | None = None
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Read Spark's options.

        Raises:
            UsageError: One is unknown or missing.
        """
        found: dict[str, str] = {}
        for key, value in options.items():
            name = _KNOWN.get(key.lower())
            if name is None:
                near = difflib.get_close_matches(key.lower(), [item.lower() for item in _SPELLINGS], n=1)
                close = next((item for item in _SPELLINGS if near and item.lower() == near[0]), None)
                hint = f"; did you mean `{close}`?" if close else ""
                raise UsageError(f"unknown option `{key}`{hint}", code="UNKNOWN_OPTION")
            if name:
                found[name] = value
        for spelling, name in (("home", "home"), ("type", "type"), ("as", "as_")):
            if name not in found:
                raise UsageError(f"option `{spelling}` is missing", code="MISSING_OPTION")
        return cls(**found, columns=None)

    @property
    def shows_event_id(self) -> bool:
        """Whether rows carry ``_event`` and ``_stamp``."""
        return self.with_event_id.lower() == "true"
