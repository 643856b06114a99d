"""The console over HTTP: who sees what of a domain, why, by whom, and since when; for whoever oversees it."""

from maia.services.console.login import LoginDesk
from maia.services.console.service import invite, make_console

__all__ = ["LoginDesk", "invite", "make_console"]
