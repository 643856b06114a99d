"""What conditions may ask in a home: its clock, its declared providers and its ledger of rates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from maia.errors import MaiaError
from maia.home.providers.configuration import PROVIDERS_FILE, read_providers
from maia.home.rates import RateLedger
from maia.policy import Atom, Environment, Predicate, RateLimit

POLICY_FOLDER = "policy"
RATES_FILE = "rates.db"


@dataclass(frozen=True, slots=True)
class HomePlace:
    """The surroundings of a home, opened."""

    environment: Environment
    ledger: RateLedger

    @property
    def predicates(self) -> frozenset[Predicate]:
        """The facts that the home declares."""
        return self.environment.predicates

    def clock(self) -> datetime:
        """Read the clock."""
        return datetime.now(UTC)

    def ask(self, fact: Atom, at: datetime) -> bool:
        """Ask the provider of a fact."""
        return self.environment.ask(fact, at)

    def reserve(self, limit: RateLimit, *, bucket: bytes, reservation: bytes, count: int, at: datetime) -> int:
        """Draw from a rate."""
        return self.ledger.reserve(limit, bucket=bucket, reservation=reservation, count=count, at=at)


@dataclass(frozen=True, slots=True)
class HomeSurroundings:
    """A reference to a home's surroundings: builds them where it is called, and carries nothing but a path.

    Providers that cannot be read declare nothing, so every condition that needs one denies.
    """

    path: str

    def __call__(self) -> HomePlace:
        """Open the surroundings here; anew when their configuration has changed, or could not be read before."""
        try:
            return _opened(self.path, _state(Path(self.path) / POLICY_FOLDER / PROVIDERS_FILE))
        except MaiaError:
            return HomePlace(Environment(), RateLedger(Path(self.path) / RATES_FILE))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@lru_cache(maxsize=64)
def _opened(path: str, _state: tuple[int, int, int] | None) -> HomePlace:
    home = Path(path)
    return HomePlace(read_providers(home / POLICY_FOLDER).environment, RateLedger(home / RATES_FILE))
