"""What a home lends to its access control: types, certificates and statements, and what its providers say is true."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from maia.authority import CertificatePool, StatementBook
from maia.domain.snapshot import FileState, file_state
from maia.domain.types import check_types
from maia.errors import MaiaError
from maia.home import Home
from maia.policy import Atom, TypeCatalogue
from maia.principals import Certificate

_TYPES_LAST = timedelta(seconds=60)


class HomeHoldings:
    """Types, certificates and statements of a home, read again when its files have changed."""

    def __init__(self, home: Home) -> None:
        """Serve a home."""
        self._home = home
        self._types: tuple[FileState, datetime, TypeCatalogue] | None = None
        self._certificates = home.certificates

    def types(self, *, at: datetime) -> TypeCatalogue:
        """Give the types that verify now."""
        state = file_state(self._home.path / "types", depth=2) + file_state(self._home.path / "statements")
        known = self._types
        if known is None or known[0] != state or abs(at - known[1]) > _TYPES_LAST:
            networks = () if self._home.network is None else (self._home.network,)
            checked = check_types(self._home, verifier=self._home.verifier(), at=at)
            # nobody can be given a right on what does not verify
            found = (verified.definition for _, verified in checked if verified is not None)
            known = self._types = (state, at, TypeCatalogue(found, networks=networks, owners=self._home.folder.keys))
        return known[2]

    def evidence(self) -> CertificatePool:
        """Give the certificates of the home; only files that are new or changed are read."""
        return self._certificates.current_pool()

    def statements(self) -> StatementBook:
        """Give the statements that the home accepted."""
        return self._home.statements.load()

    def keep(self, certificate: Certificate) -> None:
        """Keep a certificate in the home."""
        self._home.certificates.add(certificate)


class HomeProviders:
    """What the providers of a home say now; one that fails says nothing."""

    def __init__(self, home: Home) -> None:
        """Serve a home."""
        self._home = home

    def facts(self, *, at: datetime) -> Iterable[Atom]:
        """List the facts of all providers that can list them."""
        environment = self._home.surroundings().environment
        found: set[Atom] = set()
        for provider in environment.providers():
            try:
                found |= environment.listed(provider, at=at) or frozenset()
            except MaiaError:
                continue  # counted by the environment; a provider that fails means no
        return frozenset(found)
