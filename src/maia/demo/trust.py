"""The certificate part of the numberplate scenario: facts found by real verifiers over real keys.

Nothing is written down here that a verifier can say: the tree follows from reduction, the matrix from decisions, and
the attributes from clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from maia.authority import Action, Decision, FiveTuple, NameNode, Request, Verifier, five_tuple, four_tuple, reduce_pair
from maia.encoding import Sexp
from maia.errors import MaiaError
from maia.home import Folder, words
from maia.principals import Authorisation, KeyId
from maia.testing import ATTRIBUTES, NumberplateNetwork

ACTIONS = ("connect", "install", "publish", "subscribe", "manage")
NAMES = MappingProxyType({uid: name for name, uid in ATTRIBUTES.items()})
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Branch:
    """One certificate of the delegation tree, and those that carry its right on."""

    name: str
    subject: str
    right: str
    delegate: bool
    via: tuple[str, ...]
    then: tuple[Branch, ...]

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        return {
            "certificate": self.name, "subject": self.subject, "grants": self.right, "delegate": self.delegate,
            "names": list(self.via), "then": [branch.to_json() for branch in self.then],
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """Certificates put together, and what comes out: a right, or the reason why not."""

    certificates: tuple[str, ...]
    holder: str
    result: str | None
    error: str | None
    message: str | None

    def to_json(self) -> dict[str, object]:
        """Give it for machines."""
        data: dict[str, object] = {"certificates": list(self.certificates), "holder": self.holder}
        if self.error is None:
            return data | {"allowed": True, "grants": self.result}
        return data | {"allowed": False, "error": self.error, "message": self.message}


def delegation_tree(network: NumberplateNetwork, home: Folder) -> tuple[Branch, ...]:
    """Follow the rights from PITO: a certificate stands below the one whose right it carries on."""
    links = {name: five_tuple(item) for name, item in network.certificates.items() if _is_right(network, name)}
    meanings = {name: four_tuple(item) for name, item in network.certificates.items() if not _is_right(network, name)}

    def members(link: FiveTuple) -> tuple[list[KeyId], tuple[str, ...]]:
        subject = link.subject
        if isinstance(subject, NameNode):
            place = (subject.base, subject.parts[0])
            found = [(label, item) for label, item in meanings.items() if (item.issuer, item.name) == place]
            keys = [item.subject for _, item in found if isinstance(item.subject, bytes)]
            return keys, tuple(f"{name}: {words.show_node(item.subject, home)}" for name, item in found)
        return [subject] if isinstance(subject, bytes) else [], ()

    def below(link: FiveTuple, depth: int) -> tuple[Branch, ...]:
        if depth >= _MAX_DEPTH:
            return ()
        keys, _ = members(link)
        return tuple(
            branch(name, following, depth)
            for name, following in links.items()
            if following.issuer in keys and _joins(link, following)
        )

    def branch(name: str, link: FiveTuple, depth: int) -> Branch:
        right = brief(link.tag.to_sexp(), home)
        return Branch(
            name, words.show_node(link.subject, home), right, link.delegate, members(link)[1], below(link, depth + 1)
        )

    owner = network.key("PITO").key_id
    return tuple(branch(name, link, 0) for name, link in links.items() if link.issuer == owner)


def _is_right(network: NumberplateNetwork, name: str) -> bool:
    return isinstance(network.certificates[name].body, Authorisation)


def _joins(first: FiveTuple, second: FiveTuple) -> bool:
    try:
        reduce_pair(first, second)
    except MaiaError:
        return False
    return True


def requests(network: NumberplateNetwork) -> dict[str, Request]:
    """Ask the five questions of the matrix."""
    on_type = {action: network.on_type(Action.parse(action)) for action in ("publish", "subscribe", "manage")}
    return {"connect": network.connect(), "install": network.install(), **on_type}


def matrix(network: NumberplateNetwork) -> dict[str, dict[str, Decision]]:
    """Decide every action for every principal, with all certificates as evidence."""
    verifier, evidence = Verifier(), tuple(network.certificates.values())
    asked = requests(network)
    return {
        who: {
            action: verifier.decide(asked[action], principal=network.key(who), evidence=evidence, at=network.now)
            for action in ACTIONS
        }
        for who in network.people
    }


def cells(network: NumberplateNetwork, home: Folder, who: str, action: Action) -> list[str]:
    """Say which attributes a principal may publish or read, one line per clause, with their demands."""
    evidence = tuple(network.certificates.values())
    request = network.on_type(action)
    clauses = Verifier().clauses(request, principal=network.key(who), evidence=evidence, at=network.now)
    shown = [view.cells(NAMES) for clause in clauses for view in words.views(clause.tag.to_sexp(), home) or ()]
    return list(dict.fromkeys(shown))


def brief(tag: Sexp, home: Folder) -> str:
    """Say a right in few words, with attribute names in the place of uids; certificates know uids alone."""
    found = words.views(tag, home)
    return words.describe_tag(tag, home) if found is None else "; ".join(view.brief(NAMES) for view in found)


def reductions(network: NumberplateNetwork, home: Folder) -> list[Reduction]:
    """Put the certificates of row 24.04 together, and Cap6 with Cap10, which do not join."""
    asked = requests(network)
    cases: Sequence[tuple[tuple[str, ...], str, str]] = (
        (("Cap1", "Cap3"), "Smith", "connect"),
        (("Cap1", "Cap2", "N1"), "MB", "connect"),
        (("Cap12", "Cap10"), "Smith", "subscribe"),
        (("Cap4", "Cap5"), "BO", "install"),
        (("Cap6", "Cap10"), "Smith", "subscribe"),
    )
    return [_reduce(network, home, names, who, asked[action]) for names, who, action in cases]


def _reduce(network: NumberplateNetwork, home: Folder, names: tuple[str, ...], who: str, request: Request) -> Reduction:
    decision = Verifier().decide(request, principal=network.key(who), evidence=network.some(*names), at=network.now)
    if decision.grant is not None:
        result = brief(decision.grant.tag.to_sexp(), home)
        return Reduction(certificates=names, holder=who, result=result, error=None, message=None)
    error = decision.error
    return Reduction(
        certificates=names, holder=who, result=None, error=None if error is None else error.code,
        message=None if error is None else home.decorate(error.message),
    )  # fmt: skip
