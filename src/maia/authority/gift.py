"""Whether an issuer can give a right: what it holds with delegation, as a verifier proves it, against what is given.

Rules kept here: the owner needs nothing, and a member of an owner of several keys gives its share; everybody else needs
chains that a `Verifier` accepts now and that may be passed on; what they do not cover is named, and so is what the
right speaks of though it is closed to the issuer (see `speech`). Nothing here weakens verification: a capability that
is wider than its issuer's right is worth the intersection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from maia.authority.book import StatementBook
from maia.authority.known_versions import KnownVersions
from maia.authority.pool import CertificatePool
from maia.authority.request import Request
from maia.authority.speech import narrow, scope_of
from maia.authority.succession import speaks_for
from maia.authority.tag_forms import Tag, is_nothing, one_of
from maia.authority.tags import alternatives, covers, intersect, parse_tag
from maia.authority.tuples import Root
from maia.authority.verifier import Verifier
from maia.encoding import Sexp
from maia.principals import Principal, PublicKey

_RIGHTS = (b"maia-type", b"maia-network")
_ACTION, _UIDS = 4, 5
_MAX_PARTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """What an issuer has of a right that it wants to give.

    Attributes:
        missing: The alternatives that are not covered, whole or in part.
        held: What of the right the issuer holds and may pass on.
        kept: What of the right the issuer holds but may not pass on.
        until: When the chains that cover it end, if they do.
        closed: The uids that it speaks of and that are closed to the issuer; for them, something is missing.
    """

    missing: tuple[Tag, ...]
    held: Tag
    kept: Tag
    until: datetime | None
    closed: tuple[str, ...] = ()

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
    conditions: Iterable[str] = (),
    versions: KnownVersions | None = None,
) -> Gift:
    """Compare a right with what its issuer may pass on.

    Args:
        tag: The right.
        issuer: Who wants to give it.
        owner: Who owns what it is about, where its name says so.
        roots: Who else is trusted with it.
        pool: The certificates that the issuer can show.
        book: The validity statements that are known.
        at: When it is given.
        conditions: The conditions that it will carry.
        versions: What the versions of the type have that it is about, where one is named and known.

    Raises:
        UncheckedError: The evidence is more than the verifier's limits allow.

    >>> from datetime import UTC
    >>> from maia.authority.rights import type_right
    >>> from maia.principals import KeySigner
    >>> pito, met = KeySigner(bytes(32)).public_key, KeySigner(bytes(31) + b"1").public_key
    >>> at = datetime(2026, 6, 1, tzinfo=UTC)
    >>> known = {"roots": (), "pool": CertificatePool(), "book": StatementBook(), "at": at}
    >>> can_give(type_right(pito, "Numberplate"), issuer=pito, owner=pito, **known).possible
    True
    >>> can_give(type_right(pito, "Numberplate"), issuer=met, owner=pito, **known).possible
    False
    """
    if speaks_for(issuer, owner, book.successions):  # a share, which counts when enough members give theirs
        return Gift(missing=(), held=tag, kept=one_of(()), until=None)
    verifier = Verifier(roots, statements=book)
    request = Request(wanted=scope_of(tag, every_version=versions is not None), owner=owner, versions=versions)
    clauses = verifier.clauses(request, principal=issuer, evidence=pool, at=at)
    added = tuple(conditions)
    heard = [
        narrow(item.tag, tag, conditions=added, known=item.conditions, versions=versions)
        for item in clauses
        if item.delegate
    ]
    held = one_of(item.tag for item in heard)
    kept = one_of(intersect(tag, clause.tag) for clause in clauses if not clause.delegate)
    missing = tuple(part for part in _parts(tag) if is_nothing(held) or not covers(held, part))
    ends = [c.period.not_after for c in clauses if c.delegate and c.period.not_after is not None]
    unending = any(c.delegate and c.period.not_after is None for c in clauses)
    closed = tuple(sorted({uid for item in heard for uid in item.closed})) if missing else ()
    return Gift(missing=missing, held=held, kept=kept, until=None if unending or not ends else max(ends), closed=closed)


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
