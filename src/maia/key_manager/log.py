"""Where a key manager's messages go: the notices of the log, one topic a group.

Rules kept here:

- the log is ahead of the database only when the database is not the one it was: a backup. Then no epoch is begun in
  that group before it is repaired, so that no number is used twice;
- messages are put into the log in the order of their numbers, each once, however often a crash interrupts it;
- what others write there counts for nothing: only messages that this manager signed are looked at.
"""

from __future__ import annotations

from maia.encryption import KeyGroupId, KeyTree, VerifiedRekey, parse_rekey, rekey_topic, verify_rekey
from maia.errors import MaiaError, UnavailableError
from maia.log import Notice, NoticeKind, NoticeLog
from maia.principals import PublicKey

_PAGE = 1000
_PAGES = 1000


class RekeyLog:
    """One manager's messages in a log."""

    def __init__(self, notices: NoticeLog, manager: PublicKey) -> None:
        """Use a log's notices."""
        self._notices = notices
        self._manager = manager

    def newest(self, group: KeyGroupId) -> VerifiedRekey | None:
        """Return the newest message of a group that this manager signed."""
        last = self._notices.latest(NoticeKind.REKEY, rekey_topic(group))
        if last is None:
            return None
        own = self._own(last)
        if own is not None:
            return own
        return max(self.after(group, 0), key=lambda message: message.rekey.number, default=None)

    def after(self, group: KeyGroupId, number: int) -> tuple[VerifiedRekey, ...]:
        """List this manager's messages of later epochs than one, by number, each once.

        Raises:
            UnavailableError: There are more than are read.
        """
        found: dict[int, VerifiedRekey] = {}
        place = -1
        for _ in range(_PAGES):
            page = self._notices.read(NoticeKind.REKEY, rekey_topic(group), after=place, limit=_PAGE)
            for notice in page:
                own = self._own(notice)
                if own is not None and own.rekey.number > number:
                    found.setdefault(own.rekey.number, own)
                place = notice.number
            if len(page) < _PAGE:
                return tuple(found[key] for key in sorted(found))
        raise UnavailableError("the log holds more rekey messages than are read", code="REKEY_BACKLOG")

    def check(self, tree: KeyTree) -> None:
        """Refuse to go on with a tree that is older than what the log shows.

        Raises:
            UnavailableError: ``KEY_MANAGER_BEHIND``.
        """
        newest = self.newest(tree.group)
        if newest is None or newest.rekey.number < tree.number:
            return
        if newest.rekey.number > tree.number or newest.message.digest != tree.digest:
            raise UnavailableError(
                f"the log shows epoch {newest.rekey.number} of a key group, the database ends at {tree.number} or "
                "differs: it was restored from a backup; repair the group",
                code="KEY_MANAGER_BEHIND",
            )

    def publish(self, group: KeyGroupId, number: int, body: bytes) -> None:
        """Put a message into the log unless it is there.

        Raises:
            UnavailableError: The log holds another message of that epoch (``KEY_MANAGER_BEHIND``), or cannot be used.
        """
        newest = self.newest(group)
        if newest is not None and newest.rekey.number >= number:
            same = newest if newest.rekey.number == number else self.after(group, number - 1)[0]
            if same.message.to_bytes() == body:
                return
            raise UnavailableError("the log holds another message of this epoch", code="KEY_MANAGER_BEHIND")
        self._notices.append(NoticeKind.REKEY, rekey_topic(group), body)

    def _own(self, notice: Notice) -> VerifiedRekey | None:
        try:
            return verify_rekey(parse_rekey(notice.body), self._manager)
        except MaiaError:
            return None
