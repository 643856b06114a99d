"""Handlers on image streams, run in sandboxes: WebAssembly by default, Python in a locked process."""

from maia.domain.handlers.catalogue import BUILT_IN_HANDLERS, open_handler
from maia.domain.handlers.channel import ImageChannel, Sink
from maia.domain.handlers.entitlement import CameraView, TypeChannel, entitled_posts, tried_posts
from maia.domain.handlers.frame_files import HandledFrames, handle_file

__all__ = [
    "BUILT_IN_HANDLERS",
    "CameraView",
    "HandledFrames",
    "ImageChannel",
    "Sink",
    "TypeChannel",
    "entitled_posts",
    "handle_file",
    "open_handler",
    "tried_posts",
]
