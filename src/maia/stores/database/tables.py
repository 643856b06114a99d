"""All tables of all services: importing this module puts every one of them on ``metadata``."""

from maia.stores.database import access_control, requests
from maia.stores.database.columns import metadata

MODULES = (requests, access_control)
"""The modules whose tables the migrations make; the key manager's and the access control service's join here."""

__all__ = ["MODULES", "metadata"]
