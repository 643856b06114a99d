"""All chains of a right, each walked from its root."""

from __future__ import annotations

from maia.authority import Grant, Verifier
from maia.cli.asking import Question
from maia.cli.output import note
from maia.cli.proof_view import Step, explain_proof

MAX_CHAINS = 64


def explain_chains(question: Question, grant: Grant) -> list[Step]:
    """Walk every chain that gives a part of what was asked for, the one of the grant first."""
    verifier = Verifier(question.roots, statements=question.book)
    # For an exact request every chain gives the same; one explanation is enough.
    clauses = (
        ()
        if question.request.ground is not None
        else verifier.clauses(question.request, principal=question.principal, evidence=question.pool, at=question.at)
    )
    proofs = {grant.proof.certificate_ids(): grant.proof}
    for clause in clauses:
        proofs.setdefault(clause.proof.certificate_ids(), clause.proof)
    if len(proofs) > MAX_CHAINS:
        note(f"showing {MAX_CHAINS} of {len(proofs)} chains")
    return [explain_proof(proof, grant.request, question.home) for proof in list(proofs.values())[:MAX_CHAINS]]
