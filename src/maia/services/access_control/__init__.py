"""The access control service of a domain over HTTP. Its logic is `maia.access_control`, which knows no HTTP."""

from maia.services.access_control.routes import access_control_routes
from maia.services.access_control.service import make_access_control

__all__ = ["access_control_routes", "make_access_control"]
