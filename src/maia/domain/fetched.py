"""What certificates say can be fetched: validity lists, one-time answers, and themselves anew.

    <address>/v1/open/statements    the lists of an issuer that count now
    <address>/v1/open/answer        its answer to one question of this home, for one decision
    <address>/v1/open/renewal       a certificate of a key of this home, issued anew

An address with a path is a document by itself: a list, or a bundle of some, which any web server can offer.

Rules kept here:

- whoever writes a certificate does not send this home anywhere: an address is asked only when ``fetch`` in
  ``maia.toml`` names its host, within the limits of `maia.home.providers.fetch`, and no redirect is followed;
- nothing is believed for where it came from: a list or an answer is one of the signer that the certificate names, and a
  renewal is by the same issuer, for the same subject, of the same right, and lasts longer;
- an answer serves one decision: each plan asks anew, about that request, and is over when the question is;
- asking is bounded in addresses and time; whoever does not answer is left alone for a while. Silence denies.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from urllib.parse import urlencode, urlsplit

from maia.authority import (
    MAX_BUNDLE,
    CertificatePool,
    Challenge,
    ListStatement,
    OneTimeAnswer,
    Request,
    Statement,
    StatementBook,
    open_bundle,
    parse_statement,
    verify_statement,
)
from maia.domain.statements import accept_statements, usable_lists
from maia.errors import KeyFormatError, MaiaError, NotFoundError
from maia.home import Home, providers
from maia.principals import (
    Authorisation,
    Certificate,
    KeyHash,
    KeyId,
    KeySigner,
    OnlineTest,
    PublicKey,
    TestKind,
    UnverifiedCertificate,
    parse_certificate,
    prove_by_stamp,
    verify_certificate,
)

_EVERY = timedelta(minutes=1)
_REST = timedelta(seconds=5)
_SECONDS = 3.0
_STEP_SECONDS = 6.0
_MAX_ASKED = 16
_WAIT = timedelta(minutes=2)
_LATE = timedelta(days=7)
_EARLY = timedelta(hours=1)
_log = logging.getLogger(__name__)


class Fetcher:
    """Asks the addresses in a home's certificates."""

    def __init__(self, home: Home) -> None:
        """Serve a home; nothing is asked yet."""
        self._home = home
        self._next: dict[object, datetime] = {}

    def follow(self, pool: CertificatePool, *, at: datetime) -> None:
        """Take up lists and renewals, each address once a minute at most; what fails stops nobody."""
        if self._home.config.fetch is None:
            return
        ends = time.monotonic() + _STEP_SECONDS
        found: list[Statement] = []
        for test in _due(_lists_in(pool), self._next, at):
            found += self._lists(test, at=at, deadline=ends)
        if found:
            accept_statements(self._home.statements, found, at)
        for certificate in list(_ending(pool, at=at)):
            if self._next.get(certificate.certificate_id, at) <= at and time.monotonic() < ends:
                self._next[certificate.certificate_id] = at + _EVERY
                self._renew(certificate, at=at)

    def challenge(
        self,
        pool: CertificatePool,
        principal: PublicKey | KeyHash,
        request: Request,
        book: StatementBook,
        *,
        at: datetime,
    ) -> Challenge | None:
        """Ask whoever has to confirm, for this decision, the certificates that lead to a principal.

        Returns:
            The question whose answers the book holds now; nothing where no certificate demands one.
        """
        if self._home.config.fetch is None:
            return None
        wanted: dict[OnlineTest, list[UnverifiedCertificate]] = {}
        for certificate in leading_to(pool, principal.key_id):
            for test in certificate.body.tests:
                if test.kind is TestKind.ONE_TIME and test.uris:
                    wanted.setdefault(test, []).append(certificate)
        if not wanted:
            return None
        made = Challenge(
            nonce=secrets.token_bytes(32), verifier=self._home.broker.public_key.fingerprint, until=at + _WAIT,
            request=request.digest,
        )  # fmt: skip
        book.forget_before(at)
        ends = time.monotonic() + _STEP_SECONDS
        for test, certificates in list(wanted.items())[:_MAX_ASKED]:
            for answer in self._answers(test, made, certificates, ends=ends):
                book.accept(answer)
        return made

    def _lists(self, test: OnlineTest, *, at: datetime, deadline: float) -> Sequence[Statement]:
        for address in test.uris:
            try:
                data = self._get(address, "/v1/open/statements", {}, ends=deadline)
                found = [item for item in _statements(data) if item.signer_id == test.signer.key_id]
            except MaiaError as error:
                _log.warning("no lists of %s at its address: %s", test.signer.fingerprint, error.code)
                self._next[_track(test)] = at + _REST
                continue
            usable = usable_lists(found, at)
            ends = [item.body.ends for item in usable if isinstance(item.body, ListStatement) and item.body.ends]
            self._next[_track(test)] = min(at + _EVERY, max(ends, default=at + _EVERY))
            return usable
        return ()

    def _answers(
        self, test: OnlineTest, challenge: Challenge, certificates: Iterable[UnverifiedCertificate], *, ends: float
    ) -> Iterator[Statement]:
        query: dict[str, str | Sequence[str]] = {
            "nonce": challenge.nonce.hex(), "verifier": challenge.verifier, "until": challenge.until.isoformat(),
            "request": (challenge.request or b"").hex(),
            "certificate": [item.certificate_id.hex() for item in certificates][:_MAX_ASKED],
        }  # fmt: skip
        for address in test.uris:
            try:
                found = _statements(self._get(address, "/v1/open/answer", query, ends=ends))
            except MaiaError as error:
                _log.warning("no answer of %s: %s", test.signer.fingerprint, error.code)
                continue
            yield from (
                item
                for item in found
                if item.signer_id == test.signer.key_id and isinstance(item.body, OneTimeAnswer)
            )  # fmt: skip
            return

    def _renew(self, old: UnverifiedCertificate, *, at: datetime) -> None:
        """Ask the issuer for a certificate of a key of this home anew, and keep it."""
        signer, address = self._own_signer(old), _says_where(old)
        if signer is None or address is None:
            return
        proof = prove_by_stamp(signer, audience=old.body.issuer_id, at=at)
        query = {
            "certificate": old.certificate_id.hex(), "key": signer.public_key.raw.hex(),
            "stamp": proof.stamp.isoformat(), "proof": proof.signature.hex(),
        }  # fmt: skip
        try:
            data = self._get(address, "/v1/open/renewal", query, ends=time.monotonic() + _SECONDS)
            for raw in open_bundle(b"certificates", data):
                fresh = verify_certificate(parse_certificate(raw))
                if _renews(old, fresh):
                    self._home.certificates.add(fresh)
        except MaiaError as error:
            _log.warning("certificate %s is not renewed: %s", old.certificate_id.hex()[:16], error.code)

    def _own_signer(self, certificate: UnverifiedCertificate) -> KeySigner | None:
        """Open the key that a certificate is for, when it is one of this home that works unattended."""
        folder, subject = self._home.folder, certificate.body.subject
        name = folder.names.get(subject.key_id) if isinstance(subject, PublicKey | KeyHash) else None
        try:
            return None if name is None else self._home.signer(name)
        except (NotFoundError, KeyFormatError):
            return None

    def _get(self, address: str, path: str, query: Mapping[str, str | Sequence[str]], *, ends: float) -> bytes:
        parts = urlsplit(address)
        url = address if parts.path.strip("/") else f"{address.rstrip('/')}{path}"
        if query:
            url += f"?{urlencode(query, doseq=True)}"
        limits = providers.FetchLimits(
            hosts=frozenset((self._home.config.fetch or "").split()), loopback=is_loopback(parts.hostname or ""),
            octets=MAX_BUNDLE, seconds=max(0.0, min(_SECONDS, ends - time.monotonic())),
        )  # fmt: skip
        return providers.fetch(url, limits, accept="application/octet-stream")


def _due(tests: Iterable[OnlineTest], planned: dict[object, datetime], at: datetime) -> list[OnlineTest]:
    """Leave out what was asked a while ago, or did not answer; bounded."""
    return [test for test in tests if planned.get(_track(test), at) <= at][:_MAX_ASKED]


def _track(test: OnlineTest) -> tuple[KeyId, TestKind]:
    return test.signer.key_id, test.kind


def _lists_in(pool: CertificatePool) -> Iterable[OnlineTest]:
    """List the tests that lists with an address satisfy, one for each signer and kind."""
    tests = (test for certificate in pool for test in certificate.body.tests)
    return {_track(test): test for test in tests if test.uris and test.kind is not TestKind.ONE_TIME}.values()


def leading_to(pool: CertificatePool, principal: KeyId) -> Iterator[UnverifiedCertificate]:
    """Give the certificates that may end in a principal, or in who gave to it; a name or a threshold may be anybody."""
    wanted, found = [principal], dict[KeyId, list[UnverifiedCertificate]]()
    by_subject: dict[KeyId | None, list[UnverifiedCertificate]] = {}
    for certificate in pool:
        subject = certificate.body.subject
        key = subject.key_id if isinstance(subject, PublicKey | KeyHash) else None
        by_subject.setdefault(key, []).append(certificate)
    while wanted:  # bounded: each key is looked at once
        key = wanted.pop()
        if key not in found:
            found[key] = by_subject.get(key, []) + by_subject.pop(None, [])
            wanted += [item.body.issuer_id for item in found[key]]
    for certificates in found.values():
        yield from certificates


def _ending(pool: CertificatePool, *, at: datetime) -> Iterator[UnverifiedCertificate]:
    """Give the certificates that end soon, or just ended, and say where they are renewed; not those that were."""
    for old in pool:
        ends = old.body.period.not_after
        if not _says_where(old) or ends is None or not ends - _EARLY <= at <= ends + _LATE:
            continue
        if not any(_renews(old, other) for other in pool):
            yield old


def _says_where(certificate: UnverifiedCertificate) -> str | None:
    return certificate.body.renew if isinstance(certificate.body, Authorisation) else None


def _renews(old: UnverifiedCertificate, fresh: Certificate | UnverifiedCertificate) -> bool:
    """Tell whether a certificate gives the same as an older one, for longer."""
    was, now = old.body, fresh.body
    if not isinstance(was, Authorisation) or not isinstance(now, Authorisation):
        return False
    same = (now.issuer_id, now.subject, now.delegate, now.tag) == (was.issuer_id, was.subject, was.delegate, was.tag)
    lasts = now.period.not_after is None or (
        was.period.not_after is not None and now.period.not_after > was.period.not_after
    )
    return same and lasts


def _statements(data: bytes) -> list[Statement]:
    """Read a bundle of statements, or one by itself; each is verified under the key that it names."""
    try:
        raws = open_bundle(b"statements", data)
    except MaiaError:
        raws = (data,)
    return [verify_statement(parse_statement(raw)) for raw in raws]


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, by its name."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
