"""A domain's services: key manager, access control, gateway, log and console: thin HTTP over logic that knows none.

They need FastAPI; a program that uses none of them does not import this package.
"""

from maia.services import access_control, console, gateway, http, key_manager, log

__all__ = ["access_control", "console", "gateway", "http", "key_manager", "log"]
