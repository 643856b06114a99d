"""How much work a verifier does for a stranger before it gives up."""

from __future__ import annotations

from dataclasses import dataclass, fields

from maia.authority.budget import Budget, MonotonicClock
from maia.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierLimits:
    """Bounds on one decision. Passing one is a denial with the code ``LIMIT_EXCEEDED``, never a longer wait.

    Attributes:
        max_certificates: Largest pool that is searched.
        max_certificate_bytes: Largest single certificate.
        max_evidence_bytes: Octets of all certificates of a pool together.
        max_chain_length: Longest chain from a root to the principal.
        max_steps: Steps of one decision, whatever its parts and however little evidence there is.
        octets_per_step: Octets of evidence that earn one step more, so that a large pool can be searched.
        max_signatures: Signatures checked for one decision.
        max_seconds: Wall time of one decision, where a clock is handed in; steps end it long before.
        max_clauses: Largest number of clauses kept for one principal.
        max_statements: Validity statements kept per signer and kind.
        max_signers: Signers of validity statements, each kind counted by itself.
        max_answers: One-time answers held, and nonces remembered as spent.
        max_memory: Decisions remembered for reuse.
    """

    max_certificates: int = 100_000
    max_certificate_bytes: int = 1 << 16
    max_evidence_bytes: int = 64 << 20
    max_chain_length: int = 256
    max_steps: int = 4_000
    octets_per_step: int = 8
    max_signatures: int = 10_000
    max_seconds: float = 10.0
    max_clauses: int = 1_000
    max_statements: int = 10_000
    max_signers: int = 10_000
    max_answers: int = 10_000
    max_memory: int = 65_536

    def __post_init__(self) -> None:
        """Refuse limits that allow nothing."""
        for item in fields(self):
            if getattr(self, item.name) <= 0:
                raise UsageError(f"{item.name} must be positive")

    def budget(self, octets: int = 0, *, clock: MonotonicClock | None = None) -> Budget:
        """Start the budget of one decision on so many octets of evidence."""
        return Budget(
            steps=self.max_steps + octets // self.octets_per_step,
            signatures=self.max_signatures,
            clock=clock,
            seconds=self.max_seconds,
        )


DEFAULT_VERIFIER_LIMITS = VerifierLimits()
