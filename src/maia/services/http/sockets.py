"""WebSocket as uvicorn serves it, with what it leaves open closed."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

_MAX_FRAGMENTS = 1024


class GuardedSocket(WebSocketsSansIOProtocol):
    """A message has a limited number of fragments, and text that is no UTF-8 reaches the service as octets."""

    def handle_cont(self, event: Frame) -> None:
        """Cut off who sends fragments without end; empty ones count against no limit of octets."""
        if len(self.frames) >= _MAX_FRAGMENTS:
            self.transport.abort()
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Hand a message on; what should be text and is none is refused by the service, with its code."""
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()
