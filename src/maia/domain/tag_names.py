"""Who says what a flow tag of another domain stands for: a name certificate of the tag's owner, in force now.

Rules kept here:

- the label policy says whose key speaks for addresses: the longest that the URI begins with counts, and no other;
- names of the own domain need nobody. Those of others are proven: in the owner's namespace the URI stands for the
  owner's own key, by a certificate that verifies now, as every name does;
- what cannot be proven, for whatever reason, is not known: it denies, and stops nothing else.
"""

from __future__ import annotations

from datetime import datetime

from maia.domain.snapshot import Snapshot
from maia.errors import MaiaError, UnavailableError
from maia.home import Home
from maia.kernel import MemberNames
from maia.labels import LabelPolicy
from maia.principals import PublicKey


def resolver_of(home: Home, policy: LabelPolicy, *, at: datetime, known: Snapshot | None = None) -> _Resolver:
    """Give what resolves the URIs of a home's label policy at an instant.

    Args:
        home: The home.
        policy: Its policy, which says whose names count.
        at: Now.
        known: The home's evidence, where somebody has it; else it is read when the first name is asked for.
    """
    return _Resolver(home, policy, at=at, known=known)


class _Resolver:
    def __init__(self, home: Home, policy: LabelPolicy, *, at: datetime, known: Snapshot | None) -> None:
        self._home, self._policy, self._at, self._known = home, policy, at, known
        self._proofs: MemberNames | None = None

    def __call__(self, uri: str) -> bool:
        """Say whether a URI stands for a tag.

        Raises:
            UnavailableError: That cannot be told: ``TAG_OWNER_AWAY``.
        """
        fitting = [prefix for prefix in self._policy.owners if uri.startswith(prefix)]
        if not fitting:
            return False
        owner = self._policy.owners[max(fitting, key=len)]
        if owner == self._home.config.domain:
            return True
        try:
            # SECURITY: only the owner's own word counts, by a certificate that verifies now.
            return self._proven(self._home.key(owner), uri)
        except MaiaError as error:
            raise UnavailableError("the names of a flow tag's owner cannot be asked", code="TAG_OWNER_AWAY") from error

    def _proven(self, owner: PublicKey, uri: str) -> bool:
        if self._proofs is None:
            pool = self._home.pool() if self._known is None else self._known.pool
            verifier = self._home.verifier() if self._known is None else self._known.verifier
            self._proofs = MemberNames(pool, verifier=verifier, at=self._at)
        return self._proofs.proof(owner.key_id, owner.key_id, uri) is not None
