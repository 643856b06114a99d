"""Certificates pushed to a domain's brokers over the log: one topic per domain (rows 13.18 and 23.08).

    (certificates <signed certificate> …)

A message hands over a new certificate together with its chain, from the owner on. A message that is one certificate by
itself counts as well. Rules kept here:

- every signature of a message is verified, or nothing of it is kept;
- its first issuer is a key that the home knows, and each later issuer is the subject of one before it or known too, so
  nobody fills a home with certificates that can prove nothing here;
- what has expired is not kept, and a home has room for so many.

Keeping a certificate grants nothing: it becomes evidence, and every decision verifies it again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, MaiaError, MalformedError, NotFoundError, UnavailableError, VerificationError
from maia.home import Home, list_files, read_public_key
from maia.log import NoticeKind, NoticeLog
from maia.principals import (
    CERTIFICATE_LIMITS,
    Certificate,
    KeyHash,
    KeyId,
    Name,
    PublicKey,
    parse_certificate,
    verify_certificate,
)

MAX_CHAIN = 64
MAX_KEPT = 50_000
_PAGE = 1000
_MAX_KNOWN = 10_000
_LIMITS = SexpLimits(max_bytes=8 << 20, max_depth=CERTIFICATE_LIMITS.max_depth, max_atom=1 << 16)
_log = logging.getLogger(__name__)


def push_certificates(notices: NoticeLog, domain: KeyId, chain: Sequence[Certificate]) -> int:
    """Send a certificate and its chain, owner first, to all brokers of a domain with one message.

    Returns:
        The number of the message.
    """
    body = encode((b"certificates", *(certificate.raw for certificate in chain)))
    return notices.append(NoticeKind.CERTIFICATE, domain, body)


class CertificateFollower:
    """Keeps what was sent to a home's domain, and remembers how far it read; forgetting that costs time only."""

    def __init__(self, home: Home, notices: NoticeLog) -> None:
        """Follow a home's log."""
        self._home = home
        self._notices = notices
        self._after: dict[KeyId, int] = {}

    def follow(self, *, at: datetime) -> None:
        """Keep what was sent since."""
        home = self._home
        try:
            domain = home.key(home.config.domain).key_id
        except NotFoundError:
            return  # a home that does not know its domain's key follows no topic
        after = self._after.get(domain, -1)
        try:
            page = self._notices.read(NoticeKind.CERTIFICATE, domain, after=after, limit=_PAGE)
        except MaiaError as error:
            _log.warning("certificates of the domain cannot be read: %s", error.code)
            self._after.pop(domain, None)
            return
        if not page:
            return
        known = _known_keys(home)
        room = MAX_KEPT - len(list_files(home.certificates.path, suffix=".cert"))
        for notice in page:
            try:
                chain = read_chain(notice.body, known)
            except (MalformedError, VerificationError) as error:
                _log.warning("certificates in message %d are refused: %s", notice.number, error.code)
                continue
            for certificate in chain:
                ends = certificate.body.period.not_after
                if room > 0 and (ends is None or ends >= at):
                    home.certificates.add(certificate)
                    room -= 1
        self._after[domain] = page[-1].number


def read_chain(body: bytes, known: frozenset[KeyId]) -> tuple[Certificate, ...]:
    """Verify a message: every signature, and that each issuer is known or follows from those before it.

    Raises:
        MalformedError: It is no message.
        VerificationError: A signature does not verify, or a stranger speaks (``UNKNOWN_ISSUER``).
    """
    reached = set(known)
    chain = []
    for raw in _parts(body):
        certificate = verify_certificate(parse_certificate(raw))
        if certificate.body.issuer.key_id not in reached:
            raise VerificationError("a certificate of an issuer that is not known here", code="UNKNOWN_ISSUER")
        subject = certificate.body.subject
        if isinstance(subject, (PublicKey, KeyHash)):
            reached.add(subject.key_id)
        elif isinstance(subject, Name):
            reached.add(subject.base.key_id)
        chain.append(certificate)
    return tuple(chain)


def _parts(body: bytes) -> list[bytes]:
    match parse_canonical(body, limits=_LIMITS):
        case (b"certificates", *parts):
            found = [part for part in parts if isinstance(part, bytes)]
            if not 0 < len(parts) <= MAX_CHAIN or len(found) != len(parts):
                raise EncodingError(f"a message holds 1 to {MAX_CHAIN} certificates", code="CERTIFICATES_SHAPE")
            return found
        case _:
            return [body]


def _known_keys(home: Home) -> frozenset[KeyId]:
    found = set()
    for path in list_files(home.path / "keys", suffix=".pub")[:_MAX_KNOWN]:
        try:
            found.add(read_public_key(path).key_id)
        except (MalformedError, NotFoundError, UnavailableError):
            continue  # a file that is no key makes nobody known
    return frozenset(found)
