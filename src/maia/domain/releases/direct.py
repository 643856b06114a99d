"""Types whose events go direct: they stay in a log that nobody else reads, and leave only by a release.

Rule kept here: what has to stay secret for a life does not lie, even sealed, where others can keep it until its cipher
is broken. So its events are not put into a log that is shared, no agreement gives rights on them, and no peer is
invited to a log that holds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from maia.domain.agreement_files import AGREEMENT_SUFFIX, POLICY_FOLDER
from maia.errors import DeniedError, MaiaError
from maia.events import EventType, Release, TypeName
from maia.home import Home

DIRECT_SHARED = "DIRECT_SHARED"
"""The code of what is refused here."""


def is_direct(event_type: EventType) -> bool:
    """Tell whether events of a type may not travel through a shared log."""
    return event_type.options.release is Release.DIRECT


def shares_log(home: Home) -> bool:
    """Tell whether others read the log of a home: it lies elsewhere, or there is an invitation or an agreement."""
    inside = Path(home.log_place).is_relative_to(home.path.resolve())  # an address is nowhere inside
    invited = any((home.path / "peers").glob("*.sent"))
    return not inside or invited or any((home.path / POLICY_FOLDER).glob(f"*{AGREEMENT_SUFFIX}"))


def check_direct(home: Home, event_type: EventType) -> None:
    """Refuse to publish a type that goes direct into a log that is shared.

    Raises:
        DeniedError: ``DIRECT_SHARED``.
    """
    if is_direct(event_type) and shares_log(home):
        raise DeniedError(
            f"`{event_type.name.name}` goes direct, and others read this log; publish it in a home whose log is its "
            "own, and release to a file what may leave",
            code=DIRECT_SHARED,
        )


def check_no_direct(home: Home) -> None:
    """Refuse to share a log that holds events of a type that goes direct.

    Raises:
        DeniedError: ``DIRECT_SHARED``.
    """
    store = home.log_store
    for name in direct_types(home, home.types.names()):
        if any(store.list_folders(f"type={item.hex()}", "", limit=1) for item in home.wire_ids(name.type_id)):
            raise DeniedError(
                f"this log holds events of `{name.name}`, which goes direct; share another log", code=DIRECT_SHARED
            )


def direct_types(home: Home, names: Iterable[TypeName]) -> list[TypeName]:
    """List the versions that go direct; one that does not verify counts as it says."""
    found = []
    for name in names:
        try:
            definitions = [item.definition for item in home.types.find(name)]
        except MaiaError:
            continue
        if any(map(is_direct, definitions)):
            found.append(name)
    return found
