"""Whether an issuer can give a right: what it holds with delegation, as a verifier proves it, against what is given.

Rules kept here: the owner needs nothing; everybody else needs chains that a `Verifier` accepts now and that may be
passed on; what they do not cover is named. Nothing here weakens verification: a capability that is wider than its
issuer's right is worth the intersection, which is what ``--blanket`` makes use of. A condition is checked before it is
signed: what cannot be evaluated would deny for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.authority import (
    CertificatePool,
    Request,
    Root,
    StatementBook,
    Tag,
    Verifier,
    covers,
    intersect,
    is_nothing,
    one_of,
    parse_tag,
)
from maia.cli.show.rights import alternatives
from maia.encoding import Sexp
from maia.principals import Principal, PublicKey

_RIGHTS = (b"maia-type", b"maia-network")
_ACTION, _UIDS = 4, 5
_MAX_PARTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Giving:
    """What an issuer has of a right that it wants to give.

    Attributes:
        missing: The alternatives that are not covered, whole or in part.
        held: What of the right the issuer holds and may pass on.
        kept: What of the right the issuer holds but may not pass on.
        until: When the chains that cover it end, if they do.
    """

    missing: tuple[Tag, ...]
    held: Tag
    kept: Tag
    until: datetime | None

    @property
    def possible(self) -> bool:
        """Tell whether everything is covered."""
        return not self.missing


def can_give(
    tag: Tag,
    *,
    issuer: PublicKey,
    owner: Principal | None,
    roots: Sequence[Root],
    pool: CertificatePool,
    book: StatementBook,
    at: datetime,
) -> Giving:
    """Compare a right with what its issuer may pass on.

    Raises:
        UncheckedError: The folder holds more than the verifier's limits allow.
    """
    verifier = Verifier(roots, statements=book)
    request = Request(wanted=tag, owner=owner)
    clauses = verifier.clauses(request, principal=issuer, evidence=pool, at=at)
    held = one_of(intersect(tag, clause.tag) for clause in clauses if clause.delegate)
    kept = one_of(intersect(tag, clause.tag) for clause in clauses if not clause.delegate)
    missing = tuple(part for part in _parts(tag) if is_nothing(held) or not covers(held, part))
    ends = [c.period.not_after for c in clauses if c.delegate and c.period.not_after is not None]
    unending = any(c.delegate and c.period.not_after is None for c in clauses)
    return Giving(missing=missing, held=held, kept=kept, until=None if unending or not ends else max(ends))


def check_conditions(sources: Iterable[str], home: Path) -> tuple[str, ...]:
    """Check the conditions of a certificate that is to be issued, with the facts that the home declares.

    Raises:
        ConditionSyntaxError: One is no condition; the message says where it stops making sense.
        MalformedError: The home's declaration of providers cannot be read.
    """
    found = tuple(sources)
    if found:
        from maia.home import providers
        from maia.policy import compile_condition

        facts = providers.read_providers(home / "policy").environment.predicates
        for source in found:
            compile_condition(source, facts=facts)
    return found


def _parts(tag: Tag) -> list[Tag]:
    """Take a right apart as finely as it can be named: by alternative, action and attribute."""
    parts: list[Sexp] = []
    for item in alternatives(tag.to_sexp()):
        split = [item]
        for position in (_UIDS, _ACTION) if isinstance(item, tuple) and item[0] in _RIGHTS else ():
            finer = [
                (*one[:position], choice, *one[position + 1 :])
                for one in split
                if isinstance(one, tuple)
                for choice in (alternatives(one[position]) if position < len(one) else [None])
                if choice is not None
            ]
            split = list(finer) if 0 < len(finer) <= _MAX_PARTS else split
        parts.extend(split)
    return [parse_tag(part) for part in parts]
