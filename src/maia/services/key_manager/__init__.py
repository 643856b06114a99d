"""The key manager over HTTP. Its logic is `maia.key_manager`, which knows no HTTP."""

from maia.services.key_manager.routes import MAX_CERTIFICATE, MAX_EVIDENCE, MAX_LABEL, MAX_REQUEST, key_manager_routes
from maia.services.key_manager.service import make_key_manager

__all__ = [
    "MAX_CERTIFICATE",
    "MAX_EVIDENCE",
    "MAX_LABEL",
    "MAX_REQUEST",
    "key_manager_routes",
    "make_key_manager",
]
