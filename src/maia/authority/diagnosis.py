"""Why not? The nearest thing that is missing from a proof, found by relaxing one rule at a time.

Only evidence that the requester presented is spoken of. The order follows the stages of verification: what failed first
is reported first. An explanation draws from the budget of its decision. Certificates that nobody signed are looked at
with a small part of it only: they may name the fault, and never make a proven denial a doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from maia.authority.budget import Budget
from maia.authority.decision import Stage
from maia.authority.derive import derive
from maia.authority.graph import Graph
from maia.authority.limits import VerifierLimits
from maia.authority.pool import CertificatePool
from maia.authority.proof import Held, Joined, Proof, walk
from maia.authority.request import Request
from maia.authority.search import Reach, find_proof, reach
from maia.authority.thresholds import met_slots
from maia.authority.tuples import FiveTuple, NameNode, Node, PrincipalNode, Root, ThresholdNode, describe_node
from maia.errors import (
    ChainError,
    ExpiredError,
    RevokedError,
    SignatureError,
    UncheckedError,
    VerificationError,
)
from maia.principals import CertificateId, KeyId, fingerprint

_STAGE_OF: tuple[tuple[type[VerificationError], Stage], ...] = (
    (SignatureError, Stage.SIGNATURES),
    (ExpiredError, Stage.VALIDITY),
    (RevokedError, Stage.TESTS),
    (UncheckedError, Stage.TESTS),
)


_FORGED_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The first stage that failed, and what to do about it."""

    stage: Stage
    error: VerificationError


@dataclass(frozen=True, slots=True)
class _Probe:
    """One relaxed search."""

    pool: CertificatePool
    leading: Mapping[KeyId, Sequence[FiveTuple]]
    request: Request
    roots: Sequence[Root]
    principal: KeyId
    signed: Callable[[CertificateId], bool]
    limits: VerifierLimits
    budget: Budget

    def admits(self, link: FiveTuple) -> bool:
        return self.request.admitted_by(link.tag, self.budget)

    def proof(
        self,
        *,
        usable: Callable[[CertificateId], bool],
        admits: Callable[[FiveTuple], bool],
        relax: Callable[[FiveTuple], FiveTuple] | None = None,
        roots: Sequence[Root] | None = None,
        budget: Budget | None = None,
    ) -> tuple[Graph, Reach, Proof | None]:
        links = self.leading
        if relax is not None:
            links = {issuer: [relax(link) for link in issued] for issuer, issued in links.items()}
        graph = Graph(links, self.pool.namings, usable, self.limits, budget or self.budget)
        start = self.roots if roots is None else roots
        found = reach(graph, start, self.principal, admits)
        return graph, found, find_proof(graph, start, found)


def diagnose(  # noqa: PLR0917 - all that a decision knows
    pool: CertificatePool,
    leading: Sequence[FiveTuple],
    request: Request,
    roots: Sequence[Root],
    principal: KeyId,
    usable: Callable[[CertificateId], bool],
    signed: Callable[[CertificateId], bool],
    problems: Mapping[CertificateId, VerificationError],
    limits: VerifierLimits,
    budget: Budget,
) -> Diagnosis:
    """Name the first failing stage and the nearest missing link of a request that was not proven.

    Args:
        pool: The evidence.
        leading: The links of the pool on some way to the principal, whatever they grant; no proof can use another.
        request: What was asked.
        roots: The roots that count for it.
        principal: Who asked.
        usable: Whether a certificate is in force and signed by its issuer.
        signed: Whether a certificate was signed by its issuer.
        problems: Why certificates are not usable, filled by ``usable`` and ``signed``.
        limits: Bounds on the search.
        budget: What is left to the decision.
    """
    if not len(pool):
        code = pool.refused[0].code if pool.refused else "NO_EVIDENCE"
        return Diagnosis(Stage.EVIDENCE, ChainError("no readable certificate was presented", code=code))
    by_issuer: dict[KeyId, list[FiveTuple]] = {}
    for link in leading:
        by_issuer.setdefault(link.issuer, []).append(link)
    probe = _Probe(pool, by_issuer, request, roots, principal, signed, limits, budget)
    try:
        for look in (_invalid_link, _forbidden_delegation, _closed_speech, _missing_members, _narrow_right):
            answer = look(probe, usable, problems, probe.admits)
            if answer is not None:
                return answer
        return _broken_chain(probe, usable, probe.admits)
    except UncheckedError as error:
        return Diagnosis(Stage.REDUCTION, error)


def _invalid_link(
    probe: _Probe,
    usable: Callable[[CertificateId], bool],
    problems: Mapping[CertificateId, VerificationError],
    admits: Callable[[FiveTuple], bool],
) -> Diagnosis | None:
    _, _, proof = probe.proof(usable=probe.signed, admits=admits)
    if proof is None:
        proof = _forged_proof(probe, admits)
    if proof is None:
        return None
    failed = [problems[i] for i in proof.certificate_ids() if not (probe.signed(i) and usable(i))]
    for kind, stage in _STAGE_OF:
        for error in failed:
            if isinstance(error, kind):
                return Diagnosis(stage, error)
    return None


def _forged_proof(probe: _Probe, admits: Callable[[FiveTuple], bool]) -> Proof | None:
    """Look whether only a signature is missing, at little cost: what nobody signed earns no search."""
    try:
        return probe.proof(usable=lambda _: True, admits=admits, budget=probe.budget.part(_FORGED_STEPS))[2]
    except UncheckedError:
        return None


def _forbidden_delegation(
    probe: _Probe,
    usable: Callable[[CertificateId], bool],
    _problems: Mapping[CertificateId, VerificationError],
    admits: Callable[[FiveTuple], bool],
) -> Diagnosis | None:
    _, _, proof = probe.proof(
        usable=usable,
        admits=admits,
        relax=lambda link: replace(link, delegate=True),
        roots=[replace(root, delegate=True) for root in probe.roots],
    )
    if proof is None:
        return None
    originals = {link.source: link for links in probe.leading.values() for link in links}
    for held in walk(proof.tree):
        passes_on = held.link is not None and held.then is not None and not _ends(held.then)
        if held.link is not None and passes_on and not originals[held.link.source].delegate:
            who = describe_node(held.link.issuer)
            return Diagnosis(
                Stage.REDUCTION, ChainError(f"delegation forbidden by `{who}`", code="DELEGATION_FORBIDDEN")
            )
    return None


def _closed_speech(
    probe: _Probe,
    usable: Callable[[CertificateId], bool],
    _problems: Mapping[CertificateId, VerificationError],
    admits: Callable[[FiveTuple], bool],
) -> Diagnosis | None:
    graph, found, proof = probe.proof(usable=usable, admits=admits)
    if proof is None:
        return None
    offences: list[ChainError] = []
    request = probe.request
    for _ in derive(graph, probe.roots, found, request.wanted, offences, versions=request.versions):
        return None  # pragma: no cover - what is proven is not diagnosed
    return Diagnosis(Stage.REDUCTION, offences[0]) if offences else None


def _ends(tree: Held | Joined) -> bool:
    return isinstance(tree, Held) and tree.link is None


def _missing_members(
    probe: _Probe,
    usable: Callable[[CertificateId], bool],
    _problems: Mapping[CertificateId, VerificationError],
    admits: Callable[[FiveTuple], bool],
) -> Diagnosis | None:
    def lowered(node: Node) -> Node:
        if isinstance(node, ThresholdNode):
            return ThresholdNode(1, tuple(lowered(member) for member in node.members))  # type: ignore[misc]
        return node

    thresholds = [root.node for root in probe.roots] + [
        link.subject for links in probe.leading.values() for link in links
    ]
    if not any(isinstance(node, ThresholdNode) for node in thresholds):
        return None
    relaxed_roots = [_LoweredRoot(root, lowered(root.node)) for root in probe.roots]
    graph, found, proof = probe.proof(
        usable=usable,
        admits=admits,
        relax=lambda link: replace(link, subject=lowered(link.subject)),
        roots=relaxed_roots,  # type: ignore[arg-type]
    )
    if proof is None:
        return None
    willing = found.willing(delegate=True)

    def ready(leaf: PrincipalNode) -> frozenset[KeyId]:
        return frozenset(key for key in graph.keys_of(leaf) if willing(key))

    for node in thresholds:
        if isinstance(node, ThresholdNode) and 0 < met_slots(node, ready) < node.k:
            present = met_slots(node, ready)
            message = f"{node.k} of {len(node.members)} needed, {present} present"
            return Diagnosis(Stage.REDUCTION, ChainError(message, code="THRESHOLD_NOT_MET"))
    return Diagnosis(
        Stage.REDUCTION, ChainError("a threshold is met by too few distinct keys", code="THRESHOLD_NOT_MET")
    )


@dataclass(frozen=True, slots=True)
class _LoweredRoot:
    """A root whose thresholds are taken for one of n; it proves nothing, it only finds what is missing."""

    original: Root
    node: Node

    @property
    def delegate(self) -> bool:
        return self.original.delegate


def _narrow_right(
    probe: _Probe,
    usable: Callable[[CertificateId], bool],
    _problems: Mapping[CertificateId, VerificationError],
    admits: Callable[[FiveTuple], bool],
) -> Diagnosis | None:
    _, _, proof = probe.proof(usable=usable, admits=lambda _: True)
    if proof is None:
        return None
    for link in proof.links():
        if not admits(link):
            who = describe_node(link.issuer)
            message = f"what `{who}` grants does not include: {probe.request}"
            return Diagnosis(Stage.REQUEST, ChainError(message, code="NOT_PERMITTED"))
    message = f"the links of the chain leave nothing of: {probe.request}"
    return Diagnosis(Stage.REQUEST, ChainError(message, code="EMPTY_AUTHORITY"))


def _broken_chain(
    probe: _Probe, usable: Callable[[CertificateId], bool], admits: Callable[[FiveTuple], bool]
) -> Diagnosis:
    """Tell a chain that starts at the wrong key from one with a gap, and from no chain at all."""
    graph = Graph(probe.pool.links, probe.pool.namings, usable, probe.limits, probe.budget)
    leading = [link for links in probe.leading.values() for link in links]
    leading.sort(key=lambda link: link.subject != probe.principal)  # one that needs no names tells as much, for less
    ends = (link for link in leading if usable(link.source) and probe.principal in graph.keys_of(link.subject))
    towards = next(ends, None)
    unresolved = _unresolved_name(probe, graph, admits, stranger=towards is None)
    if unresolved is not None:
        return unresolved
    if towards is None:
        message = f"no valid certificate names `{fingerprint(probe.principal)}`"
        return Diagnosis(Stage.REDUCTION, ChainError(message, code="NO_EVIDENCE"))
    from_roots = {key for root in probe.roots for key in graph.keys_of(root.node)}
    if any(True for key in from_roots for _ in graph.links_of(key)):
        owners = ", ".join(describe_node(root.node) for root in probe.roots)
        message = f"no chain leads from `{owners}` to `{fingerprint(probe.principal)}`"
        return Diagnosis(Stage.REDUCTION, ChainError(message, code="BROKEN_CHAIN"))
    top = describe_node(towards.issuer)
    return Diagnosis(Stage.ROOT, ChainError(f"the chain starts at `{top}`, which is no root here", code="WRONG_ROOT"))


def _unresolved_name(
    probe: _Probe, graph: Graph, admits: Callable[[FiveTuple], bool], *, stranger: bool
) -> Diagnosis | None:
    """Name a right that waits for a name certificate, where it may be that of the principal."""
    found = reach(graph, probe.roots, probe.principal, admits)
    # SECURITY: among rights of others, a name that nobody bears here says nothing of a key that no certificate names;
    # an outsider would learn with whom a domain shares.
    if stranger and any(isinstance(link.subject, bytes) for issued in probe.pool.links.values() for link in issued):
        return None
    for link in found.candidates:
        if isinstance(link.subject, NameNode) and not graph.keys_of(link.subject):
            message = f"the name `{describe_node(link.subject)}` stands for no key"
            return Diagnosis(Stage.NAMES, ChainError(message, code="NAME_UNRESOLVED"))
    return None
