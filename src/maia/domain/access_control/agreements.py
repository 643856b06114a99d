"""The agreements of a home with other domains: files ``policy/*.agreement``."""

from __future__ import annotations

from datetime import datetime

from maia.domain.agreement_files import AGREEMENT_SUFFIX, POLICY_FOLDER, read_agreement
from maia.domain.snapshot import FileState, file_state
from maia.errors import MaiaError
from maia.home import Home
from maia.policy import SignedAgreement, verify_agreement
from maia.principals import KeyId

_MAX_AGREEMENTS = 1_000


class HomeAgreements:
    """The agreements of a home, read again when its policy folder has changed; only what verifies counts."""

    def __init__(self, home: Home, domain: KeyId) -> None:
        """Serve a home whose domain has this key."""
        self._home = home
        self._domain = domain
        self._known: tuple[FileState, tuple[SignedAgreement, ...]] | None = None

    def all(self) -> tuple[SignedAgreement, ...]:
        """List the agreements that can be read, signed or not."""
        folder = self._home.path / POLICY_FOLDER
        state = file_state(folder)
        if self._known is None or self._known[0] != state:
            found: list[SignedAgreement] = []
            for path in sorted(folder.glob(f"*{AGREEMENT_SUFFIX}"))[:_MAX_AGREEMENTS]:
                try:
                    found.append(read_agreement(path))
                except MaiaError:
                    continue  # a file that is no agreement gives nothing
            self._known = (state, tuple(found))
        return self._known[1]

    def named_roles(self, *, at: datetime) -> frozenset[str]:
        """Give the roles of this domain that agreements in force speak of."""
        roles: set[str] = set()
        for signed in self.all():
            if signed.agreement.receiver.key_id == self._domain:
                try:
                    verify_agreement(signed, at=at, statements=self._home.statements.load())
                except MaiaError:
                    continue
                roles |= signed.agreement.roles
        return frozenset(roles)
