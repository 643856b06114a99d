"""From roles to flow tags: a privilege of the policy is the right to add a tag, and its loss moves the tag on.

``treating_doctor(h, d, p) |- clinical(p)`` gives whoever holds the role the tag ``clinical(1234567768)`` for its
patient: what carries it may flow there. A tag is never taken away from somebody who has it, since that itself would
tell. When somebody loses the privilege, later data gets the next tag of a sequence, t1, t2, …, and those who still have
the privilege get that too. The old tag is worth nothing but what was open before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from maia import labels
from maia.labels import tag_of
from maia.policy.rules import Privilege
from maia.policy.terms import Atom, Constant


def flow_tag(privilege: Privilege, families: Collection[str]) -> str | None:
    """Name the flow tag of a privilege: a name, or a name with one constant, of these families.

    >>> from maia.policy import parse_privilege
    >>> flow_tag(parse_privilege("clinical('7')"), {"clinical"}), flow_tag(parse_privilege("read"), {"clinical"})
    ('clinical(7)', None)
    """
    if not isinstance(privilege, Atom) or privilege.name not in families:
        return None
    match privilege.arguments:
        case ():
            return privilege.name
        case (Constant(value=value),):
            return tag_of(privilege.name, value)
    return None


def numbered(tag: str, number: int) -> str:
    """Name a flow tag of a sequence.

    >>> numbered("clinical(7)", 1), numbered("clinical(7)", 2)
    ('clinical(7)', 'clinical(7)#2')
    """
    return tag if number == 1 else f"{tag}#{number}"


class TagBook:
    """Who may add which flow tag, by the privileges of a policy, and how often a tag moved on.

    >>> from maia.policy import parse_privilege
    >>> patterson = parse_privilege("clinical(patterson)")
    >>> book = TagBook({"clinical"})
    >>> book.follow([("ali", patterson), ("brown", patterson)])
    ()
    >>> book.follow([("ali", patterson)])
    ('clinical(patterson)',)
    >>> book.current("clinical(patterson)"), sorted(book.held("brown").add), sorted(book.held("ali").add)
    ('clinical(patterson)#2', ['clinical(patterson)'], ['clinical(patterson)', 'clinical(patterson)#2'])
    """

    def __init__(self, families: Collection[str]) -> None:
        """Follow the privileges of some names; each tag is at its first number."""
        self._families = frozenset(families)
        self._numbers: dict[str, int] = defaultdict(lambda: 1)
        self._supporters: dict[str, frozenset[str]] = {}
        self._held: dict[str, set[str]] = defaultdict(set)

    def follow(self, privileges: Iterable[tuple[str, Privilege]]) -> tuple[str, ...]:
        """Take over who has which privilege now; give the tags that moved on, because somebody lost one."""
        now: dict[str, set[str]] = defaultdict(set)
        for principal, privilege in privileges:
            tag = flow_tag(privilege, self._families)
            if tag is not None:
                now[tag].add(principal)
        moved = tuple(sorted(tag for tag, before in self._supporters.items() if before - now.get(tag, set())))
        for tag in moved:
            self._numbers[tag] += 1
        self._supporters = {tag: frozenset(found) for tag, found in now.items()}
        for tag, found in now.items():
            for principal in found:
                self._held[principal].add(self.current(tag))
        return moved

    def current(self, tag: str) -> str:
        """Name the tag that data gets from now on."""
        return numbered(tag, self._numbers.get(tag, 1))

    def held(self, principal: str) -> labels.Privilege:
        """Give the tags that somebody may add to its secrecy; none of them is ever taken back."""
        return labels.Privilege(add=frozenset(self._held.get(principal, ())))
