"""How a domain issues: lives, lists, addresses, and which roles are used anonymously.

Kept in the home as ``policy/domain.toml``, a file for people:

    life = 86400                         # seconds that a capability lives at most
    tests = ["crl"]                      # crl, revalidation, one-time
    period = 86400                       # seconds of a timed list; 0 for plain lists, which silence keeps alive
    lead = 3600                          # seconds before its start that a timed list is signed
    renew = "https://acs.met.example"    # where members ask for a fresh certificate
    connect = true                       # members may connect to the domain's network
    blanket = true                       # brokers may whatever the domain may; otherwise what their roles give
    anonymous = ["treating-doctor(h, *, p)"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from maia.authority import Rhythm
from maia.errors import MalformedError
from maia.policy import Atom, Fact, parse_fact
from maia.principals import OnlineTest, PublicKey, TestKind

_KEYS = frozenset(("life", "tests", "period", "lead", "renew", "connect", "blanket", "anonymous"))
_MAX_SECONDS = 10 * 366 * 86_400
_DAY, _HOUR = 86_400, 3_600
_HIDDEN = "*"
_PATTERN = re.compile(r"([^\W\d][\w.-]*)\(([^()'\"]*)\)")


DEFAULT_RHYTHM = Rhythm(period=timedelta(seconds=_DAY), lead=timedelta(seconds=_HOUR))
"""A list a day: what is revoked ends everywhere within a day and an hour, also where nobody hears of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a domain issues.

    Attributes:
        life: How long a capability lives at most; it ends earlier with the appointment behind it.
        tests: The statements that its certificates demand, signed by the domain itself.
        rhythm: When timed lists are signed; ``None`` for plain lists, whose revocations whoever can silence the log can
            keep from others.
        renew: Where members ask for fresh certificates, if anywhere.
        connect: Whether members may connect to the domain's network.
        blanket: Whether brokers may have whatever the domain has; otherwise only what their roles give them, so that
            they lose it, and their places in key groups, with a role.
        anonymous: Roles whose use leaves no name in the journal: name, and the positions that are not shown.
    """

    life: timedelta = timedelta(days=1)
    tests: tuple[TestKind, ...] = (TestKind.CRL,)
    rhythm: Rhythm | None = DEFAULT_RHYTHM
    renew: str | None = None
    connect: bool = True
    blanket: bool = True
    anonymous: tuple[tuple[str, int, frozenset[int]], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a life that is none, and a life beyond what a list could follow."""
        if not timedelta(seconds=1) <= self.life <= timedelta(seconds=_MAX_SECONDS):
            raise MalformedError("a capability lives from a second to ten years", code="DOMAIN_SETTINGS")
        if TestKind.REVALIDATION in self.tests and self.rhythm is None:
            raise MalformedError("revalidations are timed lists; give a period", code="DOMAIN_SETTINGS")

    def online_tests(self, signer: PublicKey) -> tuple[OnlineTest, ...]:
        """Write the tests as certificates carry them."""
        uris = () if self.renew is None else (self.renew,)
        return tuple(OnlineTest(kind, signer, uris) for kind in self.tests)

    def hides(self, role: Fact) -> bool:
        """Tell whether the use of a role is anonymous unless its holder wants to be named."""
        return any((name, arity) == role.atom.signature for name, arity, _ in self.anonymous)

    def shown(self, role: Fact, *, anonymous: bool) -> str:
        """Show a role for the journal; anonymously, nothing in it names its holder."""
        if not anonymous:
            return str(role.atom)
        hidden = {
            position
            for name, arity, positions in self.anonymous
            if (name, arity) == role.atom.signature
            for position in positions
        }
        shown = (
            _HIDDEN if position in hidden or _names(argument, role.holder) else str(argument)
            for position, argument in enumerate(role.atom.arguments)
        )
        return f"{role.atom.name}({', '.join(shown)})" if role.atom.arguments else role.atom.name

    @classmethod
    def from_toml(cls, data: bytes) -> Settings:
        """Read the file.

        Raises:
            MalformedError: It is not TOML, or has unknown or wrong settings.
        """
        try:
            value = tomllib.loads(data.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise MalformedError(f"`domain.toml` is not TOML: {error}", code="DOMAIN_SETTINGS") from error
        unknown = sorted(set(value) - _KEYS)
        if unknown:
            raise MalformedError(f"`domain.toml` has an unknown setting `{unknown[0]}`", code="DOMAIN_SETTINGS")
        try:
            return cls._build(value)
        except (TypeError, ValueError, KeyError) as error:
            raise MalformedError("`domain.toml` has a wrong setting", code="DOMAIN_SETTINGS") from error

    @classmethod
    def _build(cls, value: Mapping[str, object]) -> Settings:
        tests = value.get("tests", ["crl"])
        anonymous = value.get("anonymous", [])
        renew, connect, blanket = value.get("renew"), value.get("connect", True), value.get("blanket", True)
        if (
            not isinstance(tests, list)
            or not isinstance(anonymous, list)
            or not isinstance(connect, bool)
            or not isinstance(blanket, bool)
            or not isinstance(renew, str | None)
        ):
            raise TypeError
        rhythm: Rhythm | None = DEFAULT_RHYTHM
        if value.get("period") == 0:
            rhythm = None
        elif "period" in value:
            rhythm = Rhythm(period=_seconds(value["period"]), lead=_seconds(value.get("lead", 0)))
        if "lead" in value and not value.get("period"):
            raise MalformedError("a lead needs a period", code="DOMAIN_SETTINGS")
        return cls(
            life=_seconds(value.get("life", 86_400)),
            tests=tuple(TestKind(kind) for kind in tests),
            rhythm=rhythm,
            renew=renew,
            connect=connect,
            blanket=blanket,
            anonymous=tuple(parse_hidden(str(pattern)) for pattern in anonymous),
        )


def parse_hidden(pattern: str) -> tuple[str, int, frozenset[int]]:
    """Read ``treating-doctor(h, *, p)``: a role, and the positions that are not shown.

    >>> parse_hidden("treating-doctor(h, *, p)")
    ('treating-doctor', 3, frozenset({1}))

    Raises:
        MalformedError: It is no such pattern.
    """
    found = _PATTERN.fullmatch(pattern.strip())
    words = [] if found is None else [word.strip() for word in found[2].split(",")]
    if found is None or not all(words) or _HIDDEN not in words:
        raise MalformedError(f"`{pattern}` does not say what is hidden; write `role(a, *)`", code="DOMAIN_SETTINGS")
    parse_fact(f"{found[1]}({', '.join('x' if word == _HIDDEN else word for word in words)})")
    return found[1], len(words), frozenset(place for place, word in enumerate(words) if word == _HIDDEN)


def _names(argument: object, holder: str) -> bool:
    """Tell whether a parameter is the holder's name, or has it inside."""
    if isinstance(argument, Atom):
        return any(_names(inner, holder) for inner in argument.arguments)
    return getattr(argument, "value", None) == holder


def _seconds(value: object) -> timedelta:
    if type(value) is not int or not 0 <= value <= _MAX_SECONDS:
        raise TypeError
    return timedelta(seconds=value)
