"""What answers are about: the certificates, the statements and the types that are known, at one moment.

Nothing is decided here or anywhere on this floor. A world asks the kernel for the clauses of a principal, by the same
call with which a broker serves it: signatures, periods, statements, names, thresholds, the law of speech, versions,
topics, inheritance and conditions count as they do there, because it is there that they are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from maia.authority import Action, CertificatePool, intersect, type_right
from maia.errors import DeniedError, NotFoundError, UncheckedError, VerificationError
from maia.events import EventType, TypeId
from maia.kernel import Clause, Sessions, requests_for
from maia.principals import (
    Certificate,
    CertificateId,
    KeyHash,
    KeyId,
    Principal,
    PublicKey,
    Threshold,
    UnverifiedCertificate,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that an answer depends on.

    Attributes:
        sessions: Knows the types, the statements, the network and the surroundings; makes the decisions.
        pool: The certificates.
        at: The moment.
    """

    sessions: Sessions
    pool: CertificatePool
    at: datetime

    def without(self, identities: Iterable[CertificateId]) -> World:
        """Give the world as it would be without some certificates."""
        return replace(self, pool=self.pool.without(frozenset(identities)))

    def having(self, certificates: Iterable[bytes | UnverifiedCertificate | Certificate]) -> World:
        """Give the world as it would be with more certificates.

        Raises:
            UncheckedError: There is no room for them.
        """
        pool = self.pool.without(())
        for certificate in certificates:
            pool.add(certificate)
        return replace(self, pool=pool)

    def versions(self, type_id: TypeId | None = None) -> tuple[EventType, ...]:
        """List the versions that are known and hold at this moment."""
        return self.sessions.versions(type_id, at=self.at)

    def candidates(self, action: Action, event_type: EventType, uid: str | None = None) -> Candidates:
        """Name whoever may have a right on a version by a certificate: all that do, and some that do not.

        Args:
            action: To do what.
            event_type: The version.
            uid: Only a right on this attribute is of interest.

        Raises:
            UncheckedError: There is more evidence than one search may look at.
        """
        request, inherits = requests_for(action, event_type)[0], len(self.sessions.lineage(event_type)) > 1
        if uid is not None and not inherits:  # every link of a chain permits what the chain gives
            request = replace(request, wanted=intersect(request.wanted, type_right(None, attributes=[uid])))
        keys, unknown = self.sessions.verifier.reached(request, evidence=self.pool, at=self.at)
        if inherits:
            # An owner has its own type without a certificate, and what the type inherits by one on the parent.
            keys |= frozenset(_keys(event_type.name.owner))
        return Candidates(tuple(sorted(keys)), unknown)

    def clauses(self, key: KeyId, action: Action, event_type: EventType) -> tuple[Clause, ...]:
        """Decide for a principal, as its broker does: what it may see or set of a version now, if anything.

        This world's broker decides for its own clients. Of the clients of other brokers only their rights are known.

        Raises:
            UncheckedError: It cannot be told.
        """
        granted = self._asked(self.sessions.granted, key, action, event_type)
        return granted or self.elsewhere(key, action, event_type)

    def elsewhere(self, key: KeyId, action: Action, event_type: EventType) -> tuple[Clause, ...]:
        """Tell what a principal holds that is no client of this world's broker; its own broker may show it less.

        Raises:
            UncheckedError: It cannot be told.
        """
        serving = self.sessions.serving
        return () if serving is None else self._asked(serving.elsewhere, key, action, event_type)

    def _asked(
        self, question: Callable[..., tuple[Clause, ...]], key: KeyId, action: Action, event_type: EventType
    ) -> tuple[Clause, ...]:
        try:
            return question(KeyHash(key), action, event_type, self.pool, at=self.at)
        except UncheckedError:
            raise
        except (VerificationError, DeniedError, NotFoundError):
            return ()


def _keys(principal: Principal) -> Iterator[KeyId]:
    """List the keys that an owner is made of."""
    if isinstance(principal, Threshold):
        for member in principal.members:
            yield from _keys(member)
    elif isinstance(principal, PublicKey | KeyHash):
        yield principal.key_id


@dataclass(frozen=True, slots=True)
class Candidates:
    """Who may have a right.

    Attributes:
        keys: Nobody else has it by a certificate.
        unknown: Certificates of which it could not be told whether they are in force: statements are missing.
    """

    keys: tuple[KeyId, ...]
    unknown: tuple[CertificateId, ...]
