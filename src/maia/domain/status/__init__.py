"""How a domain stands, and what to do next."""

from maia.domain.status.look import domain_status, who_lacks
from maia.domain.status.steps import publish_step
from maia.domain.status.values import DomainStatus, LogStatus, Step, TypeStatus

__all__ = ["DomainStatus", "LogStatus", "Step", "TypeStatus", "domain_status", "publish_step", "who_lacks"]
