"""What the known versions of a type have: what *all attributes* means under a right that is bound to a version.

A right names its version, or leaves it open, and ``(*)`` for its attributes. Left open, the right is on every version,
and closes nothing; bound to a version, it opens the attributes of that version and no others, however it lists them.
Which those are stands in the definitions, not in certificates: whoever applies a right to data knows them and says so.

Rules kept here: a right is on every version only when its version is ``(*)``, or as wide by the hand of whoever holds
that; of a version that is not known here, no attribute is known to be open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.authority.budget import Budget
from maia.authority.tag_forms import Exactly, ListTag, Tag, one_of
from maia.authority.tags import permits
from maia.encoding import Sexp

# No version is a list, so of what a version can be compared with (texts, prefixes, ranges) only `(*)` permits it.
_EVERY: Sexp = (b"every-version",)
EVERY_VERSION = ListTag((Exactly(b"every-version"),))
"""Stands beside the version that is asked about, and is lost where a link binds the right to versions."""


@dataclass(frozen=True, slots=True)
class KnownVersions:
    """The versions of one type that are known where a right is judged, each with the uids of its attributes."""

    uids: tuple[tuple[str, frozenset[str]], ...]

    @classmethod
    def of(cls, versions: Iterable[tuple[str, Iterable[str]]]) -> KnownVersions:
        """Take versions in any order.

        >>> KnownVersions.of([("1", ["7"])]).knows(Exactly(b"1"))
        True
        """
        return cls(tuple(sorted((version, frozenset(uids)) for version, uids in versions)))

    def opened(self, version: Tag, uids: Tag, budget: Budget | None = None) -> Tag:
        """Tell which uids a right opens that is on these versions and on these attributes of them.

        >>> from maia.authority.tag_forms import EVERYTHING
        >>> known = KnownVersions.of([("1", ["7"]), ("2", ["7", "8"])])
        >>> known.opened(Exactly(b"1"), EVERYTHING).to_sexp(), known.opened(EVERYTHING, EVERYTHING).to_sexp()
        (b'7', (b'*',))
        """
        if permits(version, _EVERY):
            return uids
        found = sorted({uid for known, listed in self.uids if permits(version, _octets(known)) for uid in listed})
        if budget is not None:
            budget.spend(len(self.uids) + len(found))
        return one_of(Exactly(_octets(uid)) for uid in found if permits(uids, _octets(uid)))

    def knows(self, version: Tag) -> bool:
        """Tell whether a right is on every version, or on one that is known."""
        return permits(version, _EVERY) or any(permits(version, _octets(known)) for known, _ in self.uids)


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
