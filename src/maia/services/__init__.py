"""A domain's services: the key manager and access control, each thin HTTP over logic that knows no HTTP.

They need FastAPI; a program that uses none of them does not import this package.
"""

from maia.services import access_control, http, key_manager

__all__ = ["access_control", "http", "key_manager"]
