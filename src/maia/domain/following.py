"""Following the log's notices: a home is brought up to date before each plan, on the driver.

Rules kept here:

- a home that holds the key of an issuer renews its lists before it reads what others said;
- what the home's own keys said is compared with the log, so it is never deaf to itself;
- every plan is made after its home has read what the log says by then, so a right or a key that ended is not in it;
- notices are hints, not orders: each step verifies the objects that it takes up, and its place in the log is its own;
- time never runs back: the instant to plan with is the one that `follow` returns;
- a step may run in several processes at once and any number of times: it locks what it changes.
"""

from __future__ import annotations

from datetime import datetime

from maia.domain.certificates import CertificateFollower
from maia.domain.fetched import Fetcher
from maia.domain.lists import OwnLists
from maia.domain.memberships import GroupKeys
from maia.domain.own_key_manager import OwnKeyManager
from maia.domain.own_notices import OwnNotices
from maia.domain.peers.welcomes import take_welcomes
from maia.domain.statements import StatementFollower
from maia.home import ClockFile, Home
from maia.log import LogDirectory, NoticeLog
from maia.principals import KeyId


class Follower:
    """Brings a home up to date with the notices of its log."""

    def __init__(self, home: Home, own: OwnKeyManager, log: LogDirectory | None = None) -> None:
        """Follow a home's log.

        Args:
            home: The home.
            own: The key manager that it runs itself.
            log: Its log, with somebody who judges whose lanes of events count.
        """
        self._home = home
        self._log = log
        self._own = own
        self._folder = home.certificates
        self._notices = NoticeLog(home.log_store)
        self._certificates = CertificateFollower(home, self._notices)
        self._statements = StatementFollower(home, self._notices)
        self._said = OwnNotices(home)
        self._own_lists = OwnLists(home)
        self.fetcher = Fetcher(home)

    def follow(self, *, at: datetime, also: frozenset[KeyId] = frozenset()) -> datetime:
        """Read what was said since; called before each plan of a micro-batch.

        Args:
            at: Now, as the clock says.
            also: Signers whose lists count besides those that the home's certificates name.

        Returns:
            The instant to plan with: now, or the highest so far after the clock was set back a little.

        Raises:
            UnavailableError: The clock was set back by more than a little: ``CLOCK_BACK``.
            MaiaError: The home cannot be read or written; no plan is made then.
        """
        moment = ClockFile(self._home.path / "clock").steady(at)
        self._own_lists.keep(at=moment)
        self._said.keep(at=moment)
        self._certificates.follow(at=moment)
        self.fetcher.follow(self._folder.current_pool(), at=moment)
        self._statements.follow(self._folder.current_pool(), at=moment, also=also)
        take_welcomes(self._home, self._notices, at=moment)
        if (self._home.path / "groups").exists():
            self._own.tick(at=moment)
            GroupKeys(self._home).follow(self._notices, at=moment, log=self._log)
        return moment
