"""Access control over a domain's home: what it reads there, whom it tells, and the service that runs in process."""

from maia.domain.access_control.agreements import HomeAgreements
from maia.domain.access_control.holdings import HomeHoldings
from maia.domain.access_control.listeners import HomeKeyGroups, HomeTelling
from maia.domain.access_control.service import domain_signer, open_access_control, open_register, prove_key

__all__ = [
    "HomeAgreements",
    "HomeHoldings",
    "HomeKeyGroups",
    "HomeTelling",
    "domain_signer",
    "open_access_control",
    "open_register",
    "prove_key",
]
