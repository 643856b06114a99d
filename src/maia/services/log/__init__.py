"""A domain's log, served read-only to the domains of its network."""

from maia.services.log.service import make_log

__all__ = ["make_log"]
