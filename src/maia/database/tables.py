"""All tables of all services: importing this module puts every one of them on ``metadata``."""

from maia.database import key_groups, requests
from maia.database.access_control import tables as access_control
from maia.database.columns import metadata

MODULES = (requests, key_groups, access_control)
"""The modules whose tables the migrations make."""

__all__ = ["MODULES", "metadata"]
