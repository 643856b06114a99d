"""What a broker heard of the manager of a key group, and whether that is enough to seal.

Rule kept here: keys whose manager is not heard seal nothing. It may have put somebody out, and said so to others.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.errors import UnavailableError
from maia.home import Home
from maia.log import Place
from maia.principals import PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What was heard of a group's manager.

    Attributes:
        manager: Whose lane.
        place: Up to where it was read.
        due: Until when its word holds, in milliseconds: it promised to speak again by then.
        promised: The longest time within which it promised to speak again, in milliseconds.
        alarm: Why nothing behind the place can be read though there is more; empty when that is not so.
    """

    manager: PublicKey
    place: Place
    due: int
    promised: int
    alarm: str


def require_heard(home: Home, heard: Heard | None, *, now: int) -> None:
    """See that the keys of a group may seal: its manager's word holds, or nobody else manages it.

    Raises:
        UnavailableError: This broker is blind in the group: ``KEYS_STALE``.
    """
    if heard is None or (not heard.alarm and now <= heard.due + home.config.silence * 1000):
        return
    why = f"its lane shows {heard.alarm}" if heard.alarm else "it promised to speak by now, and was not heard"
    raise UnavailableError(
        f"nothing is sealed without a word of the key manager {heard.manager.fingerprint}: {why}; see that it runs, "
        "that `log` in maia.toml names the log it writes to, or ask it anew with `maia keys join TYPE`",
        code="KEYS_STALE",
    )
