"""Keys to seal with: a home's keyring that looks into the log before each parcel.

A plan lives as long as its micro-batch, and an epoch may begin meanwhile. Rules kept here:

- the stamp of a parcel is reserved first; then the log is asked; then the epoch is chosen by the stamp. A manager
  announces an epoch before it begins, so whoever stamps after the beginning finds it: nothing is sealed under a key
  that its readers have replaced;
- nothing is sealed whose stamp lies behind what the group's manager has promised (`memberships`): a broker that hears
  nothing cannot know whom the key has left;
- each use of a key is counted in the home before it happens (`key_uses`), over all tasks;
- asking costs one look per group. Only when there is something new is it read, verified and taken up, by the rules of
  `memberships`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from maia.domain.heard import Heard, require_heard
from maia.domain.memberships import GroupKeys
from maia.encryption import DEFAULT_CAP, EpochId, KeyGroupId, Keyring, rekey_topic
from maia.home import Home, KeyUses
from maia.log import LaneReader, NoticeKind, NoticeLog


def _now() -> datetime:
    return datetime.now(UTC)


class SealingKeys(Keyring):
    """A home's keyring for one task that publishes."""

    __slots__ = ("_clock", "_counts", "_heard", "_home", "_next", "_notices", "_stamp")

    def __init__(self, home: Home, *, clock: Callable[[], datetime] = _now, cap: int = DEFAULT_CAP) -> None:
        """Open the keyring; keys that come later come by themselves. ``cap`` bounds how many blocks one key seals."""
        super().__init__(cap=cap)
        self._counts = KeyUses(home.path / "key-uses", cap)
        self._home = home
        self._clock = clock
        self._notices = NoticeLog(home.log_store)
        self._stamp = -1
        self._heard: dict[KeyGroupId, Heard] = {}
        self._next: list[tuple[LaneReader, int]] = []
        self._load()

    def sealing_epoch(self, group: KeyGroupId, stamp: int) -> EpochId:
        """Return the epoch to seal an event of this stamp in, and count the use; asks the log once a stamp.

        Raises:
            SealError: There is no key for the stamp, or it was used too often.
            UnavailableError: The group's manager was not heard for too long: ``KEYS_STALE``.
            MaiaError: The counts of uses are damaged, or the home cannot be read.
        """
        if stamp != self._stamp:
            if self._is_over(stamp) or any(reader.record(number) is not None for reader, number in self._next):
                GroupKeys(self._home).follow(self._notices, at=self._clock())
                self._load()
            self._stamp = stamp
        require_heard(self._home, self._heard.get(group), now=stamp)
        epoch = super().sealing_epoch(group, stamp)
        self._counts.take(self, group, epoch, stamp=stamp)
        return epoch

    def _is_over(self, stamp: int) -> bool:
        return any(heard.alarm or stamp > heard.due for heard in self._heard.values())

    def _load(self) -> None:
        self._heard = GroupKeys(self._home).heard()
        self._next = [
            (self._notices.reader(NoticeKind.REKEY, heard.manager.key_id, rekey_topic(group)), heard.place.number + 1)
            for group, heard in self._heard.items()
        ]
        self.adopt(self._home.keyring())
