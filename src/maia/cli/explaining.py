"""All chains of a right, each walked from its root."""

from __future__ import annotations

from maia.authority import Derived, Grant, Verifier
from maia.cli.asking import Question
from maia.cli.show.output import note
from maia.cli.show.proofs import Step, explain_proof
from maia.cli.show.rights import describe_tag

MAX_CHAINS = 64


def explain_chains(question: Question, grant: Grant) -> list[Step]:
    """Walk every chain that gives a part of what was asked for, the one of the grant first."""
    proofs = {grant.proof.certificate_ids(): grant.proof}
    for clause in _clauses(question):
        proofs.setdefault(clause.proof.certificate_ids(), clause.proof)
    if len(proofs) > MAX_CHAINS:
        note(f"showing {MAX_CHAINS} of {len(proofs)} chains")
    return [explain_proof(proof, grant.request, question.home) for proof in list(proofs.values())[:MAX_CHAINS]]


def effective_text(question: Question, grant: Grant) -> str:
    """Say what of the request is held, by all chains together."""
    tags = [clause.tag for clause in _clauses(question)] or [grant.tag]
    return "; ".join(dict.fromkeys(describe_tag(tag.to_sexp(), question.home) for tag in tags[:MAX_CHAINS]))


def _clauses(question: Question) -> tuple[Derived, ...]:
    """List the chains of an open request; for an exact one every chain gives the same, and one is enough."""
    if question.request.ground is not None:
        return ()
    verifier = Verifier(question.roots, statements=question.book)
    return verifier.clauses(question.request, principal=question.principal, evidence=question.pool, at=question.at)
