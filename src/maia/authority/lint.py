"""What an issuer should know before it signs: rights that will not do what they seem to.

Findings are warnings. A right with a finding is sound, takes part in every intersection, and may be issued.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.authority.rights import cell_rights
from maia.authority.tag_forms import OneOf, Tag
from maia.errors import TagError
from maia.principals import Authorisation

UNENFORCEABLE = "UNENFORCEABLE_FOR_DOMAIN"


@dataclass(frozen=True, slots=True)
class RightFinding:
    """A warning about a right."""

    code: str
    message: str


def lint_right(body: Authorisation, tag: Tag) -> tuple[RightFinding, ...]:
    """Find what an issuer should know about an authorisation.

    A constraint on values binds clients: their own broker enforces it. Towards a domain or a broker, who hold the keys
    of whole attributes, nothing in the network can enforce it (row 5.13); a right that may be passed on is one for a
    domain.

    Args:
        body: What is to be signed.
        tag: Its tag, read.

    >>> from maia.authority.rights import Action, Constraint, type_right
    >>> from maia.principals import KeySigner
    >>> pito, ccs = KeySigner.generate().public_key, KeySigner.generate().public_key
    >>> right = type_right(pito, "T", actions=[Action.PUBLISH], constraints=[Constraint("7", "=", "Victoria")])
    >>> body = Authorisation(issuer=pito, subject=ccs, delegate=True, tag=right.to_sexp())
    >>> lint_right(body, right)[0].code
    'UNENFORCEABLE_FOR_DOMAIN'
    """
    if not body.delegate:
        return ()
    for option in tag.members if isinstance(tag, OneOf) else (tag,):
        try:
            constrained = any(cells.constraints for cells in cell_rights(option))
        except TagError:
            continue
        if constrained:
            return (
                RightFinding(
                    UNENFORCEABLE,
                    "a constraint on values binds the clients below, but nothing can hold a domain or a broker to it",
                ),
            )
    return ()
