"""Facts from a service: one question, one small answer, within the limits of `fetch`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from maia.errors import DeniedError, UnavailableError, UsageError
from maia.home.providers.fetching import FetchLimits, fetch
from maia.policy import Atom, Constant, Predicate

_PLACE = re.compile(r"\{([0-9]{1,2})\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFacts:
    """The facts of one predicate, asked for one by one; the service answers ``{"holds": true}`` or ``false``.

    Attributes:
        predicate: Which facts.
        url: Where to ask; ``{1}`` is the first parameter, escaped.
        limits: Hosts, octets and seconds.
    """

    predicate: Predicate
    url: str
    limits: FetchLimits

    def __post_init__(self) -> None:
        """Refuse a template whose host could be a parameter, or that leaves a parameter out."""
        used = {int(number) for number in _PLACE.findall(self.url)}
        scheme, _, rest = self.url.partition("://")
        host = rest.partition("/")[0]
        if used != set(range(1, self.predicate.arity + 1)) or "{" in scheme + host or "{" in _PLACE.sub("", self.url):
            message = f"the address of `{self.predicate}` needs its parameters `{{1}}` and so on, after the host"
            raise UsageError(message, code="PROVIDER_CONFIG")

    def ask(self, fact: Atom, *, at: datetime) -> bool:  # noqa: ARG002 - a service tells what is
        """Ask the service."""
        values = []
        for term in fact.arguments:
            if not isinstance(term, Constant) or term.value in {"", ".", ".."}:
                raise UnavailableError("a service is asked about plain words", code="PROVIDER_VALUE")
            values.append(quote(term.value, safe=""))
        url = _PLACE.sub(lambda found: values[int(found[1]) - 1], self.url)
        try:
            answer = json.loads(fetch(url, self.limits), object_pairs_hook=_object)
        except DeniedError as error:
            raise UnavailableError("a service is not where it may be", code=error.code) from error
        except (ValueError, RecursionError) as error:
            raise UnavailableError("a service answers with no JSON", code="PROVIDER_VALUE") from error
        match answer:
            case {"holds": bool() as holds} if len(answer) == 1:
                return holds
            case _:
                raise UnavailableError("a service answers with something else", code="PROVIDER_VALUE")

    def facts(self, *, at: datetime) -> None:
        """List nothing: a service is asked."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Read an object in which no key comes twice, so that it has one meaning."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found
