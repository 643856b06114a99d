"""A pool of certificates to search, indexed for the search and still unverified.

Rules kept here: reading costs no more than a fixed price for each octet, and a certificate whose tag costs more is
refused by itself; nothing is searched, and no signature checked, until a decision reaches it from a root.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import partial

from maia.authority.budget import Budget
from maia.authority.graph import mentioned
from maia.authority.limits import DEFAULT_VERIFIER_LIMITS, VerifierLimits
from maia.authority.names import LocalName
from maia.authority.tag_forms import Tag
from maia.authority.tags import parse_tag
from maia.authority.tuples import FiveTuple, FourTuple, Node, five_tuple, four_tuple
from maia.encoding import Sexp, SexpLimits
from maia.errors import MalformedError, TagError, UncheckedError
from maia.principals import (
    CERTIFICATE_LIMITS,
    Authorisation,
    Certificate,
    CertificateId,
    KeyId,
    UnverifiedCertificate,
    parse_certificate,
)

_READING_STEPS = 48  # and one for each sixteen octets


class CertificatePool:
    """Evidence: certificates as they came. What cannot be read is counted and left out; it can prove nothing.

    The same certificate twice is one certificate, and the order of adding never matters.
    """

    def __init__(
        self,
        evidence: Iterable[bytes | UnverifiedCertificate | Certificate] = (),
        *,
        limits: VerifierLimits = DEFAULT_VERIFIER_LIMITS,
    ) -> None:
        """Read evidence into the pool.

        Raises:
            UncheckedError: There is more evidence than the limits allow.
        """
        self._limits = limits
        self._sexp_limits = SexpLimits(
            max_bytes=limits.max_certificate_bytes,
            max_depth=CERTIFICATE_LIMITS.max_depth,
            max_atom=CERTIFICATE_LIMITS.max_atom,
        )
        self.links: dict[KeyId, list[FiveTuple]] = defaultdict(list)
        self.namings: dict[LocalName, list[FourTuple]] = defaultdict(list)
        self.refused: list[MalformedError] = []
        self._spellings: dict[CertificateId, dict[bytes, UnverifiedCertificate]] = {}
        self._mentions: dict[KeyId, dict[KeyId, None]] = {}
        self._tags: dict[Sexp, Tag] = {}
        self._read = 0
        self.octets = 0
        self.token = object()  # replaced at every change; remembers decisions by the evidence they saw
        self._turns: tuple[object, list[datetime], list[datetime]] | None = None
        for item in evidence:
            self.add(item)

    def __len__(self) -> int:
        """Count the distinct certificates."""
        return len(self._spellings)

    def __iter__(self) -> Iterator[UnverifiedCertificate]:
        """Go through the certificates, one spelling each."""
        return (next(iter(spellings.values())) for spellings in self._spellings.values())

    def __contains__(self, identity: object) -> bool:
        """Tell whether a certificate is in the pool."""
        return identity in self._spellings

    def add(self, item: bytes | UnverifiedCertificate | Certificate) -> None:
        """Add one certificate; an unreadable one is remembered in ``refused`` and otherwise ignored.

        Raises:
            UncheckedError: The pool is full.
        """
        self._read += 1
        if self._read > self._limits.max_certificates:
            raise UncheckedError(f"more than {self._limits.max_certificates} certificates", code="LIMIT_EXCEEDED")
        self.octets += len(item if isinstance(item, bytes) else item.raw)
        if self.octets > self._limits.max_evidence_bytes:
            raise UncheckedError(
                f"more than {self._limits.max_evidence_bytes} octets of evidence", code="LIMIT_EXCEEDED"
            )
        try:
            certificate = self._parse(item)
            if certificate.certificate_id in self._spellings:
                # A second signature over one body is no second certificate, but perhaps the one that verifies.
                spellings = self._spellings[certificate.certificate_id]
                if certificate.raw not in spellings:
                    spellings[certificate.raw] = certificate
                    self.token = object()
                return
            self._index(certificate)
        except MalformedError as error:
            self.refused.append(error)
            return
        self._spellings[certificate.certificate_id] = {certificate.raw: certificate}
        self.token = object()

    def without(self, identities: Collection[CertificateId]) -> CertificatePool:
        """Give the pool as it would be without some certificates; nothing is read again."""
        left = CertificatePool(limits=self._limits)
        left._read, left.octets, left.refused = self._read, self.octets, list(self.refused)
        for identity, spellings in self._spellings.items():
            if identity in identities:
                left._read -= len(spellings)
                left.octets -= sum(map(len, spellings))
            else:
                left._spellings[identity] = dict(spellings)
        for link in (link for links in self.links.values() for link in links if link.source not in identities):
            left.links[link.issuer].append(link)
            left._mention(link.issuer, link.subject)
        for naming in (one for named in self.namings.values() for one in named if one.source not in identities):
            left.namings[naming.issuer, naming.name].append(naming)
            left._mention(naming.issuer, naming.subject)
        left._tags = dict(self._tags)
        return left

    def phase(self, at: datetime) -> tuple[int, int]:
        """Number the stretches of time in which the same certificates are inside their periods.

        Two instants with the same phase see the same certificates valid, so an answer for one serves the other.
        """
        if self._turns is None or self._turns[0] is not self.token:
            periods = [certificate.body.period for certificate in self]
            starts = sorted(period.not_before for period in periods if period.not_before is not None)
            ends = sorted(period.not_after for period in periods if period.not_after is not None)
            self._turns = (self.token, starts, ends)
        _, starts, ends = self._turns
        return bisect_right(starts, at), bisect_left(ends, at)

    def leading_to(self, principal: KeyId, budget: Budget) -> frozenset[KeyId]:
        """Tell which keys may have to do with a principal: it, and whoever wrote of one that may.

        No certificate is believed for it, so it says too much and never too little: a right, or a name, that ends at
        the principal passes through these keys only.
        """
        seen, queue = {principal}, [principal]
        while queue:
            issuers = self._mentions.get(queue.pop(), {})
            budget.spend(1 + len(issuers))
            for issuer in issuers:
                if issuer not in seen:
                    seen.add(issuer)
                    queue.append(issuer)
        return frozenset(seen)

    def led_to(self, identities: Collection[CertificateId]) -> frozenset[KeyId]:
        """Tell which keys may hold something by certificates: those they name, and whoever these wrote of, and so on.

        No certificate is believed for it, so it says too much and never too little.
        """
        written: dict[KeyId, set[KeyId]] = defaultdict(set)
        start: set[KeyId] = set()
        for links in self.links.values():
            for link in links:
                written[link.issuer].update(mentioned(link.subject))
                if link.source in identities:
                    start.update(mentioned(link.subject))
        for namings in self.namings.values():
            for naming in namings:
                written[naming.issuer].update(mentioned(naming.subject))
                if naming.source in identities:
                    start.update(mentioned(naming.subject))
        seen, queue = set(start), list(start)
        while queue:
            for key in written.get(queue.pop(), ()):
                if key not in seen:
                    seen.add(key)
                    queue.append(key)
        return frozenset(seen)

    def spellings(self, identity: CertificateId) -> tuple[UnverifiedCertificate, ...]:
        """Return the signed forms in which a certificate came."""
        return tuple(self._spellings[identity].values())

    def get(self, identity: CertificateId) -> UnverifiedCertificate:
        """Return a certificate by its identity."""
        return next(iter(self._spellings[identity].values()))

    def _parse(self, item: bytes | UnverifiedCertificate | Certificate) -> UnverifiedCertificate:
        if isinstance(item, UnverifiedCertificate):
            return item
        return parse_certificate(item.raw if isinstance(item, Certificate) else item, limits=self._sexp_limits)

    def _index(self, certificate: UnverifiedCertificate) -> None:
        if isinstance(certificate.body, Authorisation):
            link = five_tuple(certificate, partial(self._read_tag, len(certificate.raw)))
            self.links[link.issuer].append(link)
            self._mention(link.issuer, link.subject)
        else:
            naming = four_tuple(certificate)
            self.namings[naming.issuer, naming.name].append(naming)
            self._mention(naming.issuer, naming.subject)

    def _mention(self, issuer: KeyId, subject: Node) -> None:
        for key in mentioned(subject):
            self._mentions.setdefault(key, {})[issuer] = None

    def _read_tag(self, octets: int, expression: Sexp) -> Tag:
        """Read a tag within what its certificate's octets allow; equal ones become one object, asked once."""
        known = self._tags.get(expression)
        if known is None:
            budget = Budget(steps=_READING_STEPS + octets // 16, signatures=1)
            try:
                known = self._tags[expression] = parse_tag(expression, budget)
            except UncheckedError as error:
                raise TagError("a tag that takes too long to read", code="TAG_TOO_LARGE") from error
        return known
