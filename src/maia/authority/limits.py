"""How much work a verifier does for a stranger before it says no."""

from __future__ import annotations

from dataclasses import dataclass, fields

from maia.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierLimits:
    """Bounds on one decision. Passing one is a denial with the code ``LIMIT_EXCEEDED``, never a longer wait.

    Attributes:
        max_certificates: Largest pool that is searched.
        max_certificate_bytes: Largest single certificate.
        max_chain_length: Longest chain from a root to the principal.
        max_name_steps: Steps of the name closure: one per certificate, position and key.
        max_search_steps: Steps of the search for chains, symbolic intersections included.
        max_clauses: Largest number of clauses kept for one principal.
        max_threshold_steps: Steps of the search for distinct members of one threshold.
        max_statements: Validity statements kept per signer and kind.
        max_signers: Signers of validity statements, each kind counted by itself.
        max_answers: One-time answers held, and nonces remembered as spent.
        max_memory: Decisions remembered for reuse.
    """

    max_certificates: int = 100_000
    max_certificate_bytes: int = 1 << 16
    max_chain_length: int = 256
    max_name_steps: int = 500_000
    max_search_steps: int = 200_000
    max_clauses: int = 1_000
    max_threshold_steps: int = 100_000
    max_statements: int = 10_000
    max_signers: int = 10_000
    max_answers: int = 10_000
    max_memory: int = 65_536

    def __post_init__(self) -> None:
        """Refuse limits that allow nothing."""
        for item in fields(self):
            if getattr(self, item.name) < 1:
                raise UsageError(f"{item.name} must be positive")


DEFAULT_VERIFIER_LIMITS = VerifierLimits()
