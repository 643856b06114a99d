"""The law of speech where a domain issues: what it says of attributes that are closed to it gives nothing.

Rules kept here: a right is refused when, by what the domain holds now, its certificate would speak of a closed
attribute. A domain that holds nothing yet is not refused: whoever uses the certificate decides, with the chain of then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from maia.access_control.register import Register
from maia.authority import SPEAKS_OF_CLOSED, Tag, can_give, parse_tag, speaks
from maia.errors import DeniedError, UncheckedError
from maia.policy import CompiledRight
from maia.principals import Authorisation, Body, Principal


class DomainSpeech:
    """Tells whether rights speak of what is closed to a domain at an instant; each is looked at once."""

    def __init__(self, register: Register, *, at: datetime) -> None:
        """Look at what the domain holds."""
        self._register, self._at = register, at
        self._known: dict[tuple[Tag, Principal, tuple[str, ...]], bool] = {}

    def offends(self, right: CompiledRight) -> bool:
        """Tell whether a right of the policy speaks of what is closed to the domain."""
        return self._offends(right.tag, right.owner, ())

    def check(self, bodies: Iterable[Body]) -> None:
        """Refuse certificates that would give nothing.

        Raises:
            DeniedError: ``SPEAKS_OF_CLOSED``.
        """
        owners = frozenset(known.owner for known in self._register.holdings.types(at=self._at).types())
        for body in bodies:
            if not isinstance(body, Authorisation):
                continue
            tag = parse_tag(body.tag)
            if any(self._offends(tag, owner, body.conditions) for owner in owners):
                raise DeniedError(
                    "the right speaks of an attribute that is closed to the domain", code=SPEAKS_OF_CLOSED
                )

    def _offends(self, tag: Tag, owner: Principal, conditions: tuple[str, ...]) -> bool:
        key = (tag, owner, conditions)
        if key not in self._known:
            self._known[key] = speaks(tag, conditions) and self._closed(tag, owner, conditions)
        return self._known[key]

    def _closed(self, tag: Tag, owner: Principal, conditions: tuple[str, ...]) -> bool:
        holdings = self._register.holdings
        try:
            gift = can_give(
                tag, issuer=self._register.key, owner=owner, roots=(), pool=holdings.evidence(),
                book=holdings.statements(), at=self._at, conditions=conditions,
            )  # fmt: skip
        except UncheckedError:
            return False
        return bool(gift.closed)
