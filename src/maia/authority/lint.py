"""What an issuer should know before it signs: rights that will not do what they seem to.

Findings are warnings. A right with a finding is sound, takes part in every intersection, and may be issued.
"""

from __future__ import annotations

from dataclasses import dataclass

from maia.authority.rights import cell_rights, may_publish
from maia.authority.tag_forms import OneOf, Tag
from maia.errors import TagError
from maia.principals import Authorisation, Name, Subject, TestKind

UNENFORCEABLE = "UNENFORCEABLE_FOR_DOMAIN"
TRUSTED = "DOMAIN_ENFORCES"
ONE_TIME_ORIGIN = "ONE_TIME_ORIGIN"


@dataclass(frozen=True, slots=True)
class RightFinding:
    """A warning about a right."""

    code: str
    message: str


def lint_right(body: Authorisation, tag: Tag) -> tuple[RightFinding, ...]:
    """Find what an issuer should know about an authorisation.

    A constraint on values binds clients: their own broker enforces it. Keys open whole columns, so nothing in the
    network can hold a domain with keys to it (row 5.13); a right that may be passed on is one for a domain, and so is
    one for `X: brokers`. Its brokers therefore get no keys (C42), unless the right says that the domain is trusted to
    enforce the constraint.

    A right to publish that one-time answers confirm serves clients. A broker publishes nothing by one: an answer shows
    nothing to those who judge its events later.

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
    found = _answered(body, tag)
    if not body.delegate and not _names_brokers(body.subject):
        return found
    for option in tag.members if isinstance(tag, OneOf) else (tag,):
        try:
            constrained = any(cells.constraints or cells.bounds for cells in cell_rights(option))
        except TagError:
            continue
        if constrained:
            return (_finding(trusted=not any(cells.served for cells in cell_rights(option))), *found)
    return found


def _names_brokers(subject: Subject) -> bool:
    """Tell whether a right is for whatever a domain calls its brokers, or its sub-domains, which have some."""
    return isinstance(subject, Name) and subject.parts[-1] in ("brokers", "domains")


def _answered(body: Authorisation, tag: Tag) -> tuple[RightFinding, ...]:
    brokers = body.delegate or isinstance(body.subject, Name)
    if not brokers or not may_publish(tag) or all(test.kind is not TestKind.ONE_TIME for test in body.tests):
        return ()
    return (
        RightFinding(
            ONE_TIME_ORIGIN,
            "no broker can publish by a right that one-time answers confirm, since they show nothing to those who "
            "judge its events later; `--test crl:KEY` or `--test revalidation:KEY` can",
        ),
    )


def _finding(*, trusted: bool) -> RightFinding:
    if trusted:
        return RightFinding(
            TRUSTED,
            "the receiving domain is trusted to enforce the demand on the row: its brokers get the keys of whole "
            "columns, and nothing in the network keeps them from opening other rows",
        )
    return RightFinding(
        UNENFORCEABLE,
        "keys open whole columns, so a right on some rows gives a domain's brokers none: your brokers serve its rows "
        "to its clients; `--enforced` says that the domain is trusted to enforce the demand itself",
    )
