"""What the services share over HTTP: the app around every request, its limits, sessions and standbys."""

from maia.services.http.app import Body, Now, Signed, blob_field, make_app, octets_field
from maia.services.http.envelope import Envelope, HttpLimits
from maia.services.http.serving import App, Listening, serve
from maia.services.http.sessions import Caller
from maia.services.http.standby import ROUND_SECONDS, Standby
from maia.services.http.unproven import UnprovenKeys

__all__ = [
    "ROUND_SECONDS",
    "App",
    "Body",
    "Caller",
    "Envelope",
    "HttpLimits",
    "Listening",
    "Now",
    "Signed",
    "Standby",
    "UnprovenKeys",
    "blob_field",
    "make_app",
    "octets_field",
    "serve",
]
