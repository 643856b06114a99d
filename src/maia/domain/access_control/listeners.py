"""Those who must hear what a domain's access control decided: its home, its log, and the key groups it manages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from maia.access_control import Withdrawn
from maia.authority import parse_statement, verify_statement
from maia.database import OpenDatabase
from maia.domain.certificates import push_certificates
from maia.domain.key_groups import open_key_manager
from maia.domain.own_notices import home_notices
from maia.domain.statements import accept_statements
from maia.errors import KeyFormatError, NotFoundError, UsageError, VerificationError
from maia.home import Home, SeriesFile, now
from maia.key_manager import KeyManager
from maia.log import publish_statement
from maia.principals import Certificate, KeyId, Signer, parse_certificate, verify_certificate

_MAX_CHAIN = 64


class HomeTelling:
    """Tells the home itself and its log; others follow the log. More listeners may be added."""

    def __init__(self, home: Home, signer: Signer, *, listeners: Iterable[Callable[[Withdrawn], object]] = ()) -> None:
        """Serve a home.

        Args:
            home: The home, with its log.
            signer: The key that speaks for the domain: what is said in the log is said by it.
            listeners: Are called with each withdrawal, in order: subscriptions before key groups.
        """
        self._home = home
        self._signer = signer
        self._notices = home_notices(home)
        self._listeners = tuple(listeners)

    def statement(self, signer: KeyId, raw: bytes) -> None:
        """Accept a list in the home, and publish it in the log."""
        statement = verify_statement(parse_statement(raw))
        if signer != self._signer.public_key.key_id:
            raise UsageError("a domain publishes its own statements", code="WRONG_SIGNER")
        series = SeriesFile(self._home.path, signer)
        series.note([statement])
        accept_statements(self._home.statements, [statement])
        publish_statement(self._notices, self._signer, raw, at=now())
        series.note([statement], told=True)

    def certificate(self, domain: KeyId, raw: bytes) -> None:
        """Publish a right of the domain to its brokers, in the log, with the certificates that lead to it."""
        chain = self._chain(verify_certificate(parse_certificate(raw)))
        push_certificates(self._notices, self._signer, domain, chain, at=now())

    def _chain(self, last: Certificate) -> list[Certificate]:
        """Put what the home holds of the chain in front of a certificate, owner first."""
        chain = [last]
        known, wanted = {last.certificate_id}, {last.body.issuer_id}
        pool = self._home.pool()
        while wanted and len(chain) < _MAX_CHAIN:  # bounded: each certificate enters once
            above = [
                item
                for item in pool
                if getattr(item.body.subject, "key_id", None) in wanted and item.certificate_id not in known
            ][: _MAX_CHAIN - len(chain)]
            wanted = {item.body.issuer_id for item in above}
            for item in above:
                known.add(item.certificate_id)
                with suppress(VerificationError):  # what is forged leads nowhere
                    chain.insert(0, verify_certificate(item))
        return chain

    def withdrawn(self, notice: Withdrawn) -> None:
        """Tell the listeners."""
        for listener in self._listeners:
            listener(notice)


class HomeKeyGroups:
    """Puts brokers out of the key groups that a home manages in process when what admitted them is withdrawn."""

    def __init__(self, home: Home, engine: OpenDatabase | None = None) -> None:
        """Serve a home; its key manager is opened when something is withdrawn, on the database that is open."""
        self._home = home
        self._engine = engine
        self._manager: KeyManager | None = None

    def __call__(self, notice: Withdrawn) -> None:
        """Admit nobody on these certificates any more, and refresh the keys of whoever goes."""
        if self._home.config.key_manager is not None:
            return  # it follows the domain's lists in the log by itself
        if self._manager is None:
            try:
                self._manager = open_key_manager(self._home, engine=self._engine)[0]
            except (NotFoundError, KeyFormatError):
                return  # a home without a key that works unattended manages no groups
        if self._manager.status():
            self._manager.revoke(notice.certificates, at=notice.at)
