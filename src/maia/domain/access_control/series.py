"""What was ever stated under a domain's key, as its home and its log show it, outside the service's database."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from maia.authority import ListStatement, Statement, serving_lists
from maia.errors import MaiaError
from maia.home import Home, SeriesFile
from maia.log import NoticeLog, StatementSubscription
from maia.principals import CertificateId, KeyId, TestKind

_log = logging.getLogger(__name__)


class HomeSeries:
    """The series file of the domain's key, and the lists of that key in the log."""

    def __init__(self, home: Home, signer: KeyId) -> None:
        """Serve the home of a domain with this key."""
        self._file = SeriesFile(home.path, signer)
        self._topic = StatementSubscription(NoticeLog(home.log_store), signer)
        self._heard: dict[TestKind, tuple[Statement, ...]] = {}

    def take(self, kind: TestKind, *, above: int) -> int:
        """Take the next number of a list, above all that were taken before."""
        return self._file.take(kind, above=above)

    def known(self, kind: TestKind) -> tuple[Statement, ...]:
        """Give the signed lists that the home and the log show."""
        try:
            found = self._topic.updates()
        except (MaiaError, OSError) as error:
            # SECURITY: what others can do to the log keeps nobody from revoking a right
            _log.warning("the domain's own lists cannot be read in the log: %s", getattr(error, "code", error))
            found = ()
        for statement in found:
            if isinstance(statement.body, ListStatement):
                of = statement.body.kind
                self._heard[of] = serving_lists((*self._heard.get(of, ()), statement))
        lists = (*self._file.record(kind).lists, *self._heard.get(kind, ()))
        return tuple({item.raw: item for item in lists}.values())

    def revoked(self, kind: TestKind) -> Mapping[CertificateId, datetime | None]:
        """Give what was revoked by hand."""
        return self._file.record(kind).revoked
