"""The validity lists that a key manager follows: those that its brokers' certificates demand.

A broker's certificates come from its domain, and so do the lists that say whether they still hold. They stand in the
log that the manager publishes to; a broker without a common log brings them. Rules kept here:

- what a broker shows is judged with the lists that the log holds at that moment, and again in every round;
- lists that a broker brings are kept like those of the log: an older one replaces nothing. Who brings none in time for
  the next round is put out in it;
- SECURITY: timed lists are taken from a broker, and plain ones beside those in force, where they only take away. Alone
  a plain one has no end, so whoever was revoked could bring the one before for ever;
- SECURITY: of evidence that nobody has judged yet, only lists count whose signers are named by certificates that owners
  signed, or that lead down from owners. A stranger cannot make a manager keep lists of his own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection, func, select

from maia.authority import CertificatePool, ListStatement, Statement
from maia.database import key_brokers
from maia.errors import VerificationError
from maia.events import TypeId
from maia.key_manager.brokers import list_brokers
from maia.key_manager.register import GroupRegister
from maia.principals import (
    KeyHash,
    KeyId,
    Name,
    Principal,
    PublicKey,
    Subject,
    TestKind,
    Threshold,
    UnverifiedCertificate,
    parse_certificate,
    threshold_leaves,
    verify_certificate,
)

Heed = Callable[[frozenset[KeyId], datetime], None]
"""Takes up what the log says of these signers' lists by an instant."""
Take = Callable[[Sequence[Statement], datetime], None]
"""Keeps verified lists beside those of the log, unless the verifier knows better."""
Mark = tuple[int, int]
"""Tells one state of the known brokers from another: a broker's stamps only grow."""


class DemandedLists:
    """Follows the lists that brokers' certificates demand."""

    def __init__(self, register: GroupRegister, heed: Heed | None, take: Take | None = None) -> None:
        """Follow by means of ``heed``; without it somebody else does. Without ``take`` nobody can bring lists."""
        self._register = register
        self._heed = heed
        self._take = take
        self._known: tuple[Mark, frozenset[KeyId]] = ((0, 0), frozenset())

    def follow_evidence(
        self, type_id: TypeId, evidence: Iterable[bytes], brought: Iterable[Statement], at: datetime
    ) -> None:
        """Take up the lists that a broker's evidence demands, and those of them that it brings, before it is judged."""
        owners: list[Principal] = [version.name.owner for version in self._register.versions(type_id, at)[:1]]
        if self._register.network is not None:
            owners.append(self._register.network[0])
        signers = demanded_by(CertificatePool(evidence), owners)
        if signers and self._heed is not None:
            self._heed(signers, at)
        lists = _in_time([item for item in brought if item.signer_id in signers], at)
        if lists and self._take is not None:
            self._take(lists, at)

    def follow_brokers(self, at: datetime) -> None:
        """Take up the lists on which the brokers that are known stand."""
        if self._heed is None:
            return
        with self._register.reading() as connection:
            mark = brokers_mark(connection)
            if mark != self._known[0]:
                self._known = (mark, demanded_by_brokers(connection))
        self._heed(self._known[1], at)


def demanded_by(pool: CertificatePool, owners: Iterable[Principal]) -> frozenset[KeyId]:
    """Name the signers whose lists evidence demands, as far as it leads down from owners.

    Args:
        pool: What a broker shows, unverified.
        owners: The principals where chains begin.
    """
    issued: dict[KeyId, list[UnverifiedCertificate]] = defaultdict(list)
    for certificate in pool:
        issued[certificate.body.issuer_id].append(certificate)
    found: set[KeyId] = set()
    known = {key for owner in owners for key in _keys(owner)}
    queue = list(known)
    while queue:  # bounded: each key enters once, and the pool is
        for certificate in issued.get(queue.pop(), ()):
            try:
                verify_certificate(certificate)
            except VerificationError:
                continue  # what is forged leads nowhere
            found |= _signers(certificate)
            fresh = _keys(certificate.body.subject) - known
            known |= fresh
            queue += fresh
    return frozenset(found)


def demanded_by_brokers(connection: Connection) -> frozenset[KeyId]:
    """Name the signers whose lists the certificates of the known brokers demand; all of these were judged."""
    found: set[KeyId] = set()
    for record in list_brokers(connection):
        for raw in record.evidence:
            found |= _signers(parse_certificate(raw))
    return frozenset(found)


def brokers_mark(connection: Connection) -> Mark:
    """Sum up the known brokers, to see that something about them changed."""
    wanted = select(func.count(), func.sum(key_brokers.c.stamp)).select_from(key_brokers)
    count, stamps = connection.execute(wanted).one()
    return int(count), int(stamps or 0)


def _in_time(statements: Iterable[Statement], at: datetime) -> list[Statement]:
    """Choose the timed lists that are in force, and plain ones of the same signers."""
    lists = [(item, item.body) for item in statements if isinstance(item.body, ListStatement)]
    timed = [
        (item, body)
        for item, body in lists
        if body.starts is not None and body.ends is not None and body.starts <= at < body.ends
    ]
    held = {(item.signer_id, body.kind) for item, body in timed}
    plain = [item for item, body in lists if not body.timed and (item.signer_id, body.kind) in held]
    return [*(item for item, _ in timed), *plain]


def _signers(certificate: UnverifiedCertificate) -> frozenset[KeyId]:
    tests = certificate.body.tests
    return frozenset(test.signer.key_id for test in tests if test.kind is not TestKind.ONE_TIME)


def _keys(subject: Subject) -> set[KeyId]:
    """List the keys that a principal stands for, or begins with."""
    match subject:
        case PublicKey() | KeyHash():
            return {subject.key_id}
        case Name():
            return {subject.base.key_id}
        case Threshold():
            return {key for leaf in threshold_leaves(subject) for key in _keys(leaf)}
    return set()
