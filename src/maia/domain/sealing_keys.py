"""Keys to seal with: a home's keyring that looks into the log before each parcel.

A plan lives as long as its micro-batch, and an epoch may begin meanwhile. Rules kept here:

- the stamp of a parcel is reserved first; then the log is asked; then the epoch is chosen by the stamp. A manager
  announces an epoch before it begins, so whoever stamps after the beginning finds it: nothing is sealed under a key
  that its readers have replaced;
- each use of a key is counted in the home before it happens (`key_uses`), over all tasks;
- asking costs one look per group. Only when there is something new is it read, verified and taken up, by the rules of
  `group_keys`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from maia.domain.memberships import GroupKeys
from maia.encryption import DEFAULT_CAP, EpochId, KeyGroupId, Keyring, rekey_topic
from maia.home import Home, KeyUses
from maia.log import NoticeKind, NoticeLog


def _now() -> datetime:
    return datetime.now(UTC)


class SealingKeys(Keyring):
    """A home's keyring for one task that publishes."""

    __slots__ = ("_clock", "_counts", "_home", "_next", "_notices", "_stamp")

    def __init__(self, home: Home, *, clock: Callable[[], datetime] = _now, cap: int = DEFAULT_CAP) -> None:
        """Open the keyring; keys that come later come by themselves. ``cap`` bounds how many blocks one key seals."""
        super().__init__(cap=cap)
        self._counts = KeyUses(home.path / "key-uses", cap)
        self._home = home
        self._clock = clock
        self._notices = NoticeLog(home.log_path)
        self._stamp = -1
        self._next: dict[bytes, int] = {}
        self._load()

    def sealing_epoch(self, group: KeyGroupId, stamp: int) -> EpochId:
        """Return the epoch to seal an event of this stamp in, and count the use; asks the log once a stamp.

        Raises:
            SealError: There is no key for the stamp, or it was used too often.
            MaiaError: A notice in the log or the counts of uses are damaged.
        """
        if stamp != self._stamp:
            if any(self._notices.has(NoticeKind.REKEY, topic, number) for topic, number in self._next.items()):
                GroupKeys(self._home).follow(self._notices, at=self._clock())
                self._load()
            self._stamp = stamp
        epoch = super().sealing_epoch(group, stamp)
        self._counts.take(self, group, epoch, stamp=stamp)
        return epoch

    def _load(self) -> None:
        self._next = {rekey_topic(group): number for group, number in GroupKeys(self._home).next_notices().items()}
        self.adopt(self._home.keyring())
