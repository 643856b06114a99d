"""Certificates pushed to a domain's brokers over the log: a lane of each sender for each domain (rows 13.18 and 23.08).

    (certificates <signed certificate> …)

A message hands over a new certificate together with its chain, from the owner on. A message that is one certificate by
itself counts as well. Rules kept here:

- only lanes of keys that the home knows are read. What others put into the log costs nothing;
- every signature of a message is verified, or nothing of it is kept;
- its first issuer is a key that the home knows, and each later issuer is the subject of one before it or known too, so
  nobody fills a home with certificates that can prove nothing here;
- what has expired is not kept, and each sender has a share of a home (`shares`): whoever fills it takes no room from
  others. What is refused is counted, and told by the audit and by ``maia status``.

Keeping a certificate grants nothing: it becomes evidence, and every decision verifies it again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from maia.domain.operations import audit_of
from maia.domain.shares import SHARES_FILE, Share, read_shares, share_of, write_shares
from maia.domain.statements import file_mark
from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, MalformedError, NotFoundError, UnavailableError, VerificationError
from maia.home import Home, list_files, read_public_key
from maia.log import START, AuditRow, LaneRecord, NoticeKind, NoticeLog
from maia.principals import (
    CERTIFICATE_LIMITS,
    Certificate,
    KeyHash,
    KeyId,
    Name,
    PublicKey,
    Signer,
    parse_certificate,
    verify_certificate,
)

MAX_CHAIN = 64
_PAGE = 1000
_MAX_KNOWN = 1_000
_LIMITS = SexpLimits(max_bytes=8 << 20, max_depth=CERTIFICATE_LIMITS.max_depth, max_atom=1 << 16)
_log = logging.getLogger(__name__)


def push_certificates(
    notices: NoticeLog, signer: Signer, domain: KeyId, chain: Sequence[Certificate], *, at: datetime
) -> int:
    """Send a certificate and its chain, owner first, to all brokers of a domain with one message.

    Args:
        notices: The notices of the log, with the sender's own record.
        signer: Who sends it; the domain must know this key.
        domain: To whom.
        chain: What is sent.
        at: Now.

    Returns:
        The number of the message.
    """
    body = encode((b"certificates", *(certificate.raw for certificate in chain)))
    return notices.say(NoticeKind.CERTIFICATE, signer, domain, body, at=at).number


class CertificateFollower:
    """Keeps what was sent to a home's domain; how far it read, and whose is what, is in the home (``pushed``)."""

    def __init__(self, home: Home, notices: NoticeLog) -> None:
        """Follow a home's log."""
        self._home = home
        self._notices = notices
        self._path = home.path / SHARES_FILE
        self._known: tuple[object, frozenset[KeyId]] = (None, frozenset())

    def follow(self, *, at: datetime) -> None:
        """Keep what was sent since."""
        home = self._home
        try:
            domain = home.key(home.config.domain).key_id
        except NotFoundError:
            return  # a home that does not know its domain's key follows nobody
        known = self._known_keys()
        shares = read_shares(self._path)
        most, fresh = share_of(len(known)), False
        for sender in sorted(known):
            share = shares.get(sender, Share())
            refused = share.refused
            try:
                read = self._read(sender, domain, share, known, most=most, at=at)
            except UnavailableError as error:
                _log.warning("certificates of %s cannot be read: %s", sender.hex()[:16], error.code)
                continue
            if read:
                shares[sender], fresh = share, True
            if share.refused > refused:
                self._tell(sender, share.refused - refused, at)
        if fresh:
            write_shares(self._path, shares)

    def _read(
        self, sender: KeyId, domain: KeyId, share: Share, known: frozenset[KeyId], *, most: int, at: datetime
    ) -> bool:
        """Read on in the lane of a sender; tell whether there was something."""
        reader = self._notices.reader(NoticeKind.CERTIFICATE, sender, domain)
        if reader.record(share.place.number + 1) is None and (share.place != START or reader.head() is None):
            return False
        found = reader.since(share.place, limit=_PAGE)
        if found.alarm is not None:
            _log.warning("certificates of %s: %s", sender.hex()[:16], found.alarm.code)
            if found.alarm.code == "LANE_EXPIRED" and found.head is not None:
                share.place = found.head.floor
                return True
            if found.alarm.code == "LANE_FORKED" and not found.records:
                share.place = START  # the sender is not what it was; what it has here still counts
                return True
        if found.records:
            self._home.certificates.discard(share.expire(at=at))
        for record in found.records:
            self._keep(record, share, known, most=most, at=at)
        share.place = found.place
        return bool(found.records)

    def _keep(self, record: LaneRecord, share: Share, known: frozenset[KeyId], *, most: int, at: datetime) -> None:
        try:
            chain = read_chain(record.body, known)
        except (MalformedError, VerificationError) as error:
            _log.warning("certificates in record %d of %s are refused: %s", record.number, record.lane, error.code)
            return
        held = self._home.certificates
        for certificate in chain:
            ends = certificate.body.period.not_after
            if (ends is None or ends >= at) and not held.has(certificate.certificate_id):
                if not share.take(certificate, most=most):
                    continue
                held.add(certificate)

    def _tell(self, sender: KeyId, refused: int, at: datetime) -> None:
        """Put into the audit that a sender's share is full."""
        _log.warning("%d certificates of %s found no room", refused, sender.hex()[:16])
        row = AuditRow(
            at=at, kind="alarm", principal=self._home.broker.public_key.fingerprint, type_id="", source="certificates",
            subject=KeyHash(sender).fingerprint, code="SHARE_FULL", events=refused,
        )  # fmt: skip
        audit_of(self._home).note([row])

    def _known_keys(self) -> frozenset[KeyId]:
        """List the keys that the home knows; read again when the folder changed."""
        folder = self._home.path / "keys"
        mark = file_mark(folder)
        if self._known[0] != mark:
            self._known = (mark, _known_keys(self._home))
        return self._known[1]


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
